"""Directories of this machine, as the other end of a copy. What comes out of a sandbox is not
trusted: it must not get to write anywhere but below the directory that was named for it."""

from __future__ import annotations

import getpass
import os
import posixpath
import stat
import warnings
from typing import List, Union

from ._regular import open_regular
from .exceptions import InvalidConfigurationError, SandboxError


class SkippedLinksWarning(UserWarning):
    """Symbolic links were left out, because they lead out of where they were to be written."""


def existing_directory(path: Union[str, "os.PathLike[str]"]) -> str:
    """Its absolute path; anything else is refused with a sentence."""
    try:
        named = os.fspath(path)
    except TypeError:
        raise InvalidConfigurationError(f"{path!r} is not a path") from None
    if not isinstance(named, str) or not named:
        raise InvalidConfigurationError(f"{path!r} is not a path")
    named = os.path.expanduser(named)
    if not os.path.exists(named):
        raise InvalidConfigurationError(f"there is no directory {named}")
    if not os.path.isdir(named):
        raise InvalidConfigurationError(f"{named} is not a directory")
    return os.path.realpath(named)


def name_of(path: str) -> str:
    """What a codebase made of it is called."""
    return os.path.basename(path) or "root"


def user() -> str:
    """Whose it is, unless somebody else is named."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}" if hasattr(os, "getuid") else "unknown"


def joined(directory: str, name: str) -> str:
    return posixpath.join(directory, name) if name else directory


def plain_name(name: str) -> str:
    """A name that stays where it is put."""
    if not name or name in (".", "..") or "/" in name or "\0" in name or (os.altsep or "/") in name:
        raise SandboxError(f"{name!r} is no name of a file")
    return name


def read(path: str) -> bytes:
    with open_regular(os.fsencode(path)) as (descriptor, _):
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read()


class Place:
    """Where a directory is written to."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._left_out: List[str] = []

    def make_directory(self, below: str) -> None:
        path = os.path.join(self._root, below)
        if not below:
            os.makedirs(path, exist_ok=True)
            return
        try:
            os.mkdir(path)
        except FileExistsError:
            # A link that was there would be followed by everything that is written below it.
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise SandboxError(f"{path} is there already, and is not a directory") from None

    def make_symlink(self, below: str, target: str) -> None:
        inside = posixpath.normpath(posixpath.join("/", posixpath.dirname(below), target))
        depth = posixpath.normpath(posixpath.join(posixpath.dirname(below) or ".", target))
        if target.startswith("/") or depth.split("/")[0] == ".." or not inside:
            self._left_out.append(f"{below} -> {target}")
            return
        path = os.path.join(self._root, below)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(target, path)

    def write(self, below: str, content: bytes, mode: int) -> None:
        path = os.path.join(self._root, below)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise SandboxError(f"cannot write {path}: {error.strerror}") from None
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode & 0o777)

    def warn(self) -> None:
        if self._left_out:
            listed = ", ".join(self._left_out[:10])
            more = f" and {len(self._left_out) - 10} more" if len(self._left_out) > 10 else ""
            warnings.warn(
                f"left out, because they lead out of {self._root}: {listed}{more}",
                SkippedLinksWarning, stacklevel=4)
