"""Bars for what takes a while, on a terminal only."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType
from typing import Dict, Optional, Sequence, Tuple, Type, TypeVar

from ._types import ImageStep
from ._walk import Entry

_PATIENCE = 0.5
"""Seconds after which a bar is shown."""
_STEP = 0.1


class _Bar:
    """`wanted`: True always, False never, None on a terminal."""

    def __init__(self, verb: str, wanted: Optional[bool]) -> None:
        self._verb = verb
        self._wanted = sys.stderr is not None and sys.stderr.isatty() if wanted is None else wanted
        self._begun = time.monotonic()
        self._drawn = 0.0
        self._lock = threading.Lock()

    def _show(self, done: int, total: int, rest: str) -> None:
        now = time.monotonic()
        if self._wanted and now - self._begun >= _PATIENCE and now - self._drawn >= _STEP:
            self._drawn = now
            self._draw(done, total, rest)

    def _draw(self, done: int, total: int, rest: str) -> None:
        text = f" {size(done)}/{size(total)}{rest}"
        left = shutil.get_terminal_size().columns - len(self._verb) - len(text) - 3
        width = max(10, min(40, left))
        full = round(done / total * width) if total else width
        bar = "#" * full + "-" * (width - full)
        sys.stderr.write(f"\r{self._verb} [{bar}]{text}\x1b[K")
        sys.stderr.flush()

    def __enter__(self: Self) -> Self:
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


Self = TypeVar("Self", bound=_Bar)


class Progress(_Bar):
    """How much of some files has been sent."""

    def __init__(self, files: Sequence[Entry], wanted: Optional[bool] = None) -> None:
        super().__init__("uploading", wanted)
        self._total = sum(entry.size for entry in files)
        self._count = len(files)
        self._sent = 0

    def sent(self, size: int) -> None:
        with self._lock:
            self._sent = min(self._sent + size, self._total)
            self._show(self._sent, self._total, f", {self._count} files")


class FetchProgress(_Bar):
    """How much of an image is there."""

    def __init__(self, image: str, wanted: Optional[bool] = None) -> None:
        super().__init__(f"fetching {image}", wanted)
        self._parts: Dict[str, Tuple[int, int]] = {}

    def step(self, step: ImageStep) -> None:
        # The same bytes are counted again when they are unpacked.
        if step.layer and step.total and step.status.startswith("Download"):
            self._parts[step.layer] = (step.current, step.total)
        done, total = map(sum, zip((0, 0), *self._parts.values()))
        self._show(done, total, "")


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
