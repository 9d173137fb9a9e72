"""Digests that were computed before, so that an unchanged tree is not read twice.

A digest is found by what the filesystem says of a file: device, inode, size and the times of its
last changes. Like git's index this trusts no file that changed just before it was looked at,
because a second change within the same tick of the clock would not show.

A cache is never needed. One that is broken, belongs to somebody else or cannot be written is left
alone without a word.
"""

from __future__ import annotations

import os
import stat
import struct
import tempfile
import time

from blake3 import blake3

from ringfence._regular import chunks, open_regular

# One record: device, inode, size, modified, changed; digest.
_KEY = struct.Struct("<5Q")
_DIGEST_SIZE = 32
_RECORD_SIZE = _KEY.size + _DIGEST_SIZE
_MAGIC = b"ringfence digests 1\n"

_UNSETTLED_NS = 2_000_000_000
_KEPT_SECONDS = 30 * 86_400
_LARGEST = 1 << 30


def key_of(status: os.stat_result) -> bytes:
    """What tells one state of a file from another."""
    fields = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return _KEY.pack(*(field & 0xFFFF_FFFF_FFFF_FFFF for field in fields))


class DigestCache:
    """The digests of one directory's files; `save` keeps those that were asked for."""

    def __init__(self, file: str | None, now_ns: int) -> None:
        self._file = file
        self._settled_before = now_ns - _UNSETTLED_NS
        self._known = _load(file) if file else {}
        self._used: dict[bytes, bytes] = {}

    def find(self, status: os.stat_result) -> str | None:
        key = key_of(status)
        digest = self._known.get(key)
        if digest is None:
            return None
        self._used[key] = digest
        return digest.hex()

    def add(self, status: os.stat_result, digest: str) -> None:
        """Remembers a digest, unless the file may change once more without a trace."""
        if self._file and max(status.st_mtime_ns, status.st_ctime_ns) < self._settled_before:
            self._used[key_of(status)] = bytes.fromhex(digest)

    def save(self) -> None:
        if self._file is None or self._used == self._known:
            return
        try:
            _write(self._file, self._used)
            _forget_old_files(os.path.dirname(self._file))
        except OSError:
            pass


NO_CACHE = DigestCache(None, 0)


def open_cache(root: bytes) -> DigestCache:
    """The cache of the directory `root`. To be opened before the directory is looked at."""
    directory = _private_directory() if _wanted() else None
    if directory is None:
        return NO_CACHE
    return DigestCache(os.path.join(directory, blake3(root).hexdigest()[:32]), time.time_ns())


def _wanted() -> bool:
    return os.environ.get("RINGFENCE_NO_CACHE", "") in ("", "0")


def _private_directory() -> str | None:
    """Where caches are, made if need be; nothing if others could write there."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.expanduser("~/.cache")
    if not os.path.isabs(home):
        return None
    directory = os.path.join(home, "ringfence", "digests")
    try:
        os.makedirs(os.path.dirname(directory), mode=0o700, exist_ok=True)
        if not os.path.isdir(directory):
            os.mkdir(directory, 0o700)
        status = os.lstat(directory)
    except OSError:
        return None
    private = stat.S_ISDIR(status.st_mode) and status.st_mode & 0o077 == 0
    return directory if private and status.st_uid == os.geteuid() else None


def _load(file: str) -> dict[bytes, bytes]:
    try:
        with open_regular(os.fsencode(file)) as (descriptor, status):
            if status.st_uid != os.geteuid():
                return {}
            content = b"".join(chunks(descriptor, min(status.st_size, _LARGEST)))
            # Being used is what keeps it from being forgotten.
            os.utime(descriptor)
    except OSError:
        return {}
    return _unpack(content)


def _unpack(content: bytes) -> dict[bytes, bytes]:
    start = len(_MAGIC) + _DIGEST_SIZE
    body = content[start:]
    if content[:start] != _header(body) or len(body) % _RECORD_SIZE:
        return {}
    records = range(0, len(body), _RECORD_SIZE)
    return {body[at : at + _KEY.size]: body[at + _KEY.size : at + _RECORD_SIZE] for at in records}


def _header(body: bytes) -> bytes:
    """Written in front of the records: nothing is flushed, so a crash may leave half of them."""
    return _MAGIC + blake3(body).digest()


def _write(file: str, digests: dict[bytes, bytes]) -> None:
    body = b"".join(key + digest for key, digest in digests.items())
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(file), prefix="new-")
    try:
        with open(descriptor, "wb") as made:
            made.write(_header(body) + body)
        os.replace(temporary, file)
    except OSError:
        os.unlink(temporary)
        raise


def _forget_old_files(directory: str) -> None:
    oldest = time.time() - _KEPT_SECONDS
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < oldest:
                os.unlink(entry.path)
