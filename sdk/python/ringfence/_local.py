"""Directories of this machine, as the other end of a copy. What comes out of a sandbox is not
trusted: it must not get to write anywhere but below the directory that was named for it."""

from __future__ import annotations

import getpass
import os
import posixpath
import stat
import warnings
from typing import List, Type, Union

from ._regular import open_regular
from ._walk import SkippedFilesWarning
from .exceptions import InvalidConfigurationError, SandboxError, readable


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
        self._leading_out: List[str] = []
        self._gone: List[str] = []

    def make_directory(self, below: str) -> None:
        path = os.path.join(self._root, below) if below else self._root
        try:
            os.mkdir(path) if below else os.makedirs(path, exist_ok=True)
        except FileExistsError:
            # A link that was there would be followed by everything that is written below it.
            if not below or not stat.S_ISDIR(os.lstat(path).st_mode):
                raise SandboxError(f"{path} is there already, and is not a directory") from None
        except OSError as error:
            raise SandboxError(f"cannot make {path}: {error.strerror}") from None

    def make_symlink(self, below: str, target: str) -> None:
        if not _stays_inside(below, target):
            self._leading_out.append(f"{below} -> {target}")
            return
        path = os.path.join(self._root, below)
        try:
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink(target, path)
        except OSError as error:
            raise SandboxError(f"cannot make the link {path}: {error.strerror}") from None

    def write(self, below: str, content: bytes, mode: int) -> None:
        path = os.path.join(self._root, below)
        if os.path.islink(path):
            raise SandboxError(f"{path} is there already, and is a symbolic link")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise SandboxError(f"cannot write {path}: {error.strerror}") from None
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode & 0o777)

    def leave_out(self, below: str) -> None:
        """It was listed, and then it was not there."""
        self._gone.append(below)

    def warn(self) -> None:
        if self._leading_out:
            _warn(f"left out, because they lead out of {self._root}", self._leading_out,
                  SkippedLinksWarning)
        if self._gone:
            _warn("left out, because they are gone or their names are no text", self._gone,
                  SkippedFilesWarning)


def _stays_inside(below: str, target: str) -> bool:
    """Whether a link leads nowhere but below the place. `..` is taken at its word only at the
    beginning, from where the link is: after a name it may go up from wherever that name leads."""
    if target.startswith("/"):
        return False
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return up <= below.count("/") and ".." not in parts[up:]


def _warn(why: str, names: List[str], kind: Type[Warning]) -> None:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    warnings.warn(f"{why}: {', '.join(map(readable, names[:10]))}{more}", kind, stacklevel=5)
