"""A server that the driver starts, and what is asked of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from running.driver import Driver, Times


@dataclass(frozen=True)
class Served:
    """The driver's server: its process, where it listens, and the way to have it asked."""

    driver: Driver
    pid: int
    address: str

    def times(self, ask: str, **details: object) -> Times:
        """Microseconds of every repetition, by what was timed."""
        return self.driver.times("api", ask=ask, **details)

    def open(self, base: Path, size: int, start: bool = True) -> None:
        """Create sandboxes that stay until they are closed."""
        self.driver.order("api", ask="open", base=str(base), size=size, start=start)

    def close(self) -> None:
        self.driver.order("api", ask="close")


@contextmanager
def served(driver: Driver) -> Iterator[Served]:
    answer = driver.ask("api", "server", ask="serve")
    yield Served(driver, answer["pid"], answer["address"])
    # After a failure it ends with its driver.
    driver.order("api", ask="end")
