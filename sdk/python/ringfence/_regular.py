"""Opening a regular file where a name may by now stand for anything else."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import Iterator

# A name that became a symbolic link must not lead out of the directory, and a FIFO must not make us wait.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotRegular(OSError):
    """What the name stands for is not a regular file."""


@contextmanager
def open_regular(path: bytes) -> Iterator[int]:
    """A descriptor of the regular file at `path`; raises `OSError`."""
    descriptor = os.open(path, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegular("it is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_up_to(descriptor: int, limit: int | None) -> bytes:
    """The file's bytes, at most `limit` of them."""
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(-1 if limit is None else limit)
