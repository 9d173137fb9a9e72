"""What of a directory is sent, or would be.

Symbolic links are taken as links and never followed, wherever they lead: nothing from outside of
the directory gets into a sandbox because something inside points there.
"""

from __future__ import annotations

import errno
import os
import stat
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Union

from ringfence._digest_cache import NO_CACHE, open_cache
from ringfence._digests import Outcome, digest_files
from ringfence._ignore import Ignores, checked
from ringfence._regular import NotRegular, chunks, open_regular

MAX_FILE_SIZE = 52_428_800

TOO_LARGE = "larger than max_file_size"
NAME_NOT_UTF8 = "its name is not UTF-8"
TARGET_NOT_UTF8 = "its target is not UTF-8"
CHANGED = "it changed while it was read"

_NAMED_AT_MOST = 10

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Entry:
    """Something that is sent. `path` is relative, with `/` between names."""

    path: str
    kind: str
    """`file`, `directory` or `symlink`."""
    mode: int
    """The permission bits."""
    size: int
    target: str | None = None
    blake3: str | None = None


@dataclass(frozen=True)
class Skipped:
    """Something that no pattern leaves out and that is not sent nevertheless."""

    path: str
    reason: str
    size: int | None = None


@dataclass
class Scan:
    """A directory as it was found; entries and skipped ones are sorted by path."""

    root: str
    entries: list[Entry]
    skipped: list[Skipped]


class SkippedFilesWarning(UserWarning):
    """Files of a directory are not part of what was made of it."""


def scan(
    root: PathLike,
    *,
    ignore_patterns: Sequence[str] = (),
    default_ignores: bool = True,
    gitignore: bool = True,
    max_file_size: int | None = MAX_FILE_SIZE,
    digests: bool = True,
    cache: bool = True,
) -> Scan:
    """Lists what is sent of the directory `root`; raises `OSError` if `root` cannot be listed.

    `max_file_size=None` is no limit. Without `digests` no file but ignore files is opened.
    `.sandboxignore` files count even without `gitignore`.
    """
    ignores = Ignores(checked(ignore_patterns), default_ignores=default_ignores, gitignore=gitignore)
    resolved = os.path.realpath(root)
    remembered = open_cache(os.fsencode(resolved)) if digests and cache else NO_CACHE
    walk = _Walk(os.fsencode(resolved), max_file_size)
    walk.run(ignores)
    if digests:
        walk.add_files(
            digest_files([(file.location, file.status) for file in walk.files], remembered)
        )
        remembered.save()
    else:
        walk.add_readable_files()
    return walk.result()


def walk_directory(
    path: PathLike,
    ignore_patterns: Sequence[str] | None = None,
    include_default_ignores: bool = True,
    max_file_size: int | None = MAX_FILE_SIZE,
    *,
    gitignore: bool = True,
) -> Iterator[tuple[str, bytes]]:
    """Yields path and content of every file that `scan` finds, and warns of what is skipped."""
    found = scan(
        path,
        ignore_patterns=ignore_patterns or (),
        default_ignores=include_default_ignores,
        gitignore=gitignore,
        max_file_size=max_file_size,
        digests=False,
    )
    warn_skipped(found)
    unread = Scan(found.root, [], [])
    for entry in found.entries:
        if entry.kind == "file":
            content = _read(unread, entry, max_file_size)
            if content is not None:
                yield entry.path, content
    warn_skipped(unread)


def warn_skipped(found: Scan, stacklevel: int = 2) -> None:
    """Issues one warning that names what was skipped, if there is any.

    It points at the line that called the function this is called from.
    """
    if not found.skipped:
        return
    named = ", ".join(map(_described, found.skipped[:_NAMED_AT_MOST]))
    more = len(found.skipped) - _NAMED_AT_MOST
    text = f"not part of the codebase: {named}" + (f" and {more} more" if more > 0 else "")
    if any(skipped.reason == TOO_LARGE for skipped in found.skipped):
        text += "; a larger max_file_size= (None: no limit) includes large files"
    warnings.warn(text, SkippedFilesWarning, stacklevel=stacklevel + 1)


def _described(skipped: Skipped) -> str:
    # Names come from anywhere and end up on terminals.
    path = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in skipped.path
    )
    size = "" if skipped.size is None else f", {skipped.size:,} bytes"
    return f"{path} ({skipped.reason}{size})"


def _read(unread: Scan, entry: Entry, limit: int | None) -> bytes | None:
    location = os.path.join(os.fsencode(unread.root), entry.path.encode())
    try:
        with open_regular(location) as (descriptor, status):
            if limit is not None and status.st_size > limit:
                unread.skipped.append(Skipped(entry.path, TOO_LARGE, status.st_size))
                return None
            return b"".join(chunks(descriptor, status.st_size))
    except OSError as error:
        unread.skipped += _failed(entry.path, error)
        return None


def _failed(path: str, error: OSError) -> list[Skipped]:
    """Why it is skipped; not at all if it is gone, since it then just is not there."""
    if isinstance(error, FileNotFoundError):
        return []
    changed = isinstance(error, (NotRegular, NotADirectoryError)) or error.errno == errno.ELOOP
    reason = CHANGED if changed else (error.strerror or str(error)).lower()
    return [Skipped(path, reason)]


@dataclass(frozen=True)
class _File:
    path: str
    location: bytes
    status: os.stat_result


class _Walk:
    """One pass over a directory tree."""

    def __init__(self, root: bytes, limit: int | None) -> None:
        self.files: list[_File] = []
        self._root = root
        self._limit = limit
        self._entries: list[Entry] = []
        self._skipped: list[Skipped] = []
        self._pending: list[tuple[bytes, str, os.stat_result, Ignores]] = []

    def run(self, ignores: Ignores) -> None:
        self._list(self._root, "", ignores)
        while self._pending:
            location, path, status, below = self._pending.pop()
            try:
                self._list(location, path + "/", below)
            except OSError as error:
                self._skipped += _failed(path, error)
            else:
                self._entries.append(Entry(path, "directory", _mode(status), 0))

    def add_files(self, outcomes: Sequence[Outcome]) -> None:
        for file, outcome in zip(self.files, outcomes):
            if isinstance(outcome, OSError):
                self._skipped += _failed(file.path, outcome)
            elif self._is_too_large(outcome.size):
                self._skipped.append(Skipped(file.path, TOO_LARGE, outcome.size))
            else:
                mode = _mode(file.status)
                entry = Entry(file.path, "file", mode, outcome.size, blake3=outcome.digest)
                self._entries.append(entry)

    def add_readable_files(self) -> None:
        effective = os.access in os.supports_effective_ids
        for file in self.files:
            if os.access(file.location, os.R_OK, effective_ids=effective):
                entry = Entry(file.path, "file", _mode(file.status), file.status.st_size)
                self._entries.append(entry)
            else:
                self._skipped.append(Skipped(file.path, os.strerror(errno.EACCES).lower()))

    def result(self) -> Scan:
        self._entries.sort(key=lambda entry: entry.path)
        self._skipped.sort(key=lambda skipped: skipped.path)
        return Scan(os.fsdecode(self._root), self._entries, self._skipped)

    def _list(self, directory: bytes, prefix: str, ignores: Ignores) -> None:
        with os.scandir(directory) as listing:
            entries = list(listing)
        ignores.read(directory, [entry.name for entry in entries])
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            if not ignores.leaves_out(entry.name, is_directory):
                self._take(entry, prefix, is_directory, ignores)

    def _take(
        self, entry: os.DirEntry[bytes], prefix: str, is_directory: bool, ignores: Ignores
    ) -> None:
        try:
            path = prefix + entry.name.decode()
        except UnicodeDecodeError:
            shown = prefix + entry.name.decode(errors="backslashreplace")
            self._skipped.append(Skipped(shown, NAME_NOT_UTF8))
            return
        try:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode) != is_directory:
                # Whether it is left out was asked about something else.
                raise NotRegular
            self._take_kind(entry, path, status, ignores)
        except OSError as error:
            self._skipped += _failed(path, error)

    def _take_kind(
        self, entry: os.DirEntry[bytes], path: str, status: os.stat_result, ignores: Ignores
    ) -> None:
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFDIR:
            self._pending.append((entry.path, path, status, ignores.enter(entry.name)))
        elif kind == stat.S_IFLNK:
            self._take_link(entry, path, status)
        elif kind != stat.S_IFREG:
            self._skipped.append(Skipped(path, _KINDS.get(kind, "not a regular file")))
        elif self._is_too_large(status.st_size):
            self._skipped.append(Skipped(path, TOO_LARGE, status.st_size))
        else:
            self.files.append(_File(path, entry.path, status))

    def _take_link(self, entry: os.DirEntry[bytes], path: str, status: os.stat_result) -> None:
        target = os.readlink(entry.path)
        try:
            text = target.decode()
        except UnicodeDecodeError:
            self._skipped.append(Skipped(path, TARGET_NOT_UTF8))
            return
        self._entries.append(Entry(path, "symlink", _mode(status), len(target), target=text))

    def _is_too_large(self, size: int) -> bool:
        return self._limit is not None and size > self._limit


_KINDS = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _mode(status: os.stat_result) -> int:
    return status.st_mode & 0o777
