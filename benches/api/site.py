"""Where one part of the run takes place: a driver, a server of its own, and the material."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Optional

from running import driver

from .server import served
from .tasks import Counts, Site


@dataclass(frozen=True)
class Place:
    """The programs, the disk with the material on it, and a directory for logs."""

    binary: Path
    driver: Path
    root: Path
    logs: Path

    @contextmanager
    def site(self, name: str, counts: Counts, published: Optional[Path] = None) -> Iterator[Site]:
        scratch = self.root / name
        scratch.mkdir()
        with driver.driver(self.driver, self.binary, scratch, self.logs / f"{name}.log") as worker:
            with served(worker) as server:
                yield Site(
                    small=self.root / "small",
                    large=self.root / "large",
                    outputs=self.root / "outputs",
                    binary=self.binary,
                    scratch=scratch,
                    served=server,
                    published=published,
                    counts=counts,
                )
