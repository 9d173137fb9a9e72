"""Opening a regular file where a name may by now stand for anything else."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

# A name that became a symbolic link must not lead out of the directory, nor a FIFO make us wait.
# (Where there is no such thing, there is no such flag.)
_FLAGS = os.O_RDONLY
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)


class NotRegular(OSError):
    """What the name stands for is not a regular file."""


@contextmanager
def open_regular(path: bytes) -> Iterator[tuple[int, os.stat_result]]:
    """A descriptor of the regular file at `path`, and its status; raises `OSError`."""
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegular("it is not a regular file")
        yield descriptor, status
    finally:
        os.close(descriptor)


def chunks(descriptor: int, length: int, largest: int = 1 << 20) -> Iterator[bytes]:
    """The first `length` bytes of the file, or fewer if it has become shorter.

    A file that grows faster than it is read would otherwise have no end.
    """
    while length > 0:
        chunk = os.read(descriptor, min(length, largest))
        if not chunk:
            return
        length -= len(chunk)
        yield chunk
