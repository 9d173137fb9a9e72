"""A bar for uploads that take a while, on a terminal only."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType
from typing import Optional, Sequence, Type

from ._walk import Entry

_PATIENCE = 0.5
"""Seconds after which a bar is shown."""
_STEP = 0.1


class Progress:
    """How much of some files has been sent. `wanted`: True always, False never, None on a terminal."""

    def __init__(self, files: Sequence[Entry], wanted: Optional[bool] = None) -> None:
        self._total = sum(entry.size for entry in files)
        self._count = len(files)
        self._sent = 0
        self._wanted = sys.stderr is not None and sys.stderr.isatty() if wanted is None else wanted
        self._begun = time.monotonic()
        self._drawn = 0.0
        self._lock = threading.Lock()

    def sent(self, size: int) -> None:
        with self._lock:
            self._sent = min(self._sent + size, self._total)
            now = time.monotonic()
            if self._wanted and now - self._begun >= _PATIENCE and now - self._drawn >= _STEP:
                self._drawn = now
                self._draw()

    def _draw(self) -> None:
        share = self._sent / self._total if self._total else 1.0
        text = f" {size(self._sent)}/{size(self._total)}, {self._count} files"
        width = max(10, min(40, shutil.get_terminal_size().columns - len(text) - 12))
        full = round(share * width)
        bar = "#" * full + "-" * (width - full)
        sys.stderr.write(f"\ruploading [{bar}]{text}\x1b[K")
        sys.stderr.flush()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def size(count: float) -> str:
    """
    >>> size(1536)
    '1.5 kB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
