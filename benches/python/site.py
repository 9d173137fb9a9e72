"""Where it takes place: a server, the clients that ask it, and the material."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, Optional

from api.server import Served, served
from fs import processes
from running.driver import Driver, driver

from .environment import variables
from .tasks import Counts

WORKER = Path(__file__).resolve().parent / "worker"


@dataclass(frozen=True)
class Site:
    """A server with a state of its own, and one client of each kind."""

    place: "Place"
    scratch: Path
    served: Served
    embedded: Driver
    ours: Driver
    published: Driver

    @property
    def counts(self) -> Counts:
        return self.place.counts

    @property
    def binary(self) -> Path:
        return self.place.binary


@dataclass(frozen=True)
class Place:
    """The programs, the disk with the material on it, and a directory for logs."""

    binary: Path
    driver: Path
    python: Path
    root: Path
    logs: Path
    counts: Counts

    @property
    def small(self) -> Path:
        return self.root / "small"

    @property
    def large(self) -> Path:
        return self.root / "large"

    @property
    def variables(self) -> Dict[str, str]:
        return variables(self.binary, self.root / "python")

    @contextmanager
    def server(self, name: str) -> Iterator[Served]:
        """One that knows nothing yet."""
        scratch = self.root / name
        scratch.mkdir()
        with driver(self.driver, self.binary, scratch, self.logs / f"{name}.log") as starter:
            with served(starter) as server:
                yield server

    @contextmanager
    def worker(self, package: str, address: Optional[str] = None, **extra: str) -> Iterator[Driver]:
        """A program that uses a client; what it has open ends with it."""
        command = [str(self.python), str(WORKER), package, *([address] if address else [])]
        log = self.logs / f"worker-{package}-{'tcp' if address else 'embedded'}.log"
        process = processes.Server(command, log, takes_input=True, env={**self.variables, **extra})
        try:
            yield Driver(process)
        finally:
            process.stop(patience=30)

    @contextmanager
    def site(self) -> Iterator[Site]:
        with self.server("python-tcp") as server, self.worker("ringfence") as embedded:
            with self.worker("ringfence", server.address) as ours:
                with self.worker("agentfense", server.address) as published:
                    scratch = self.root / "python-tcp"
                    yield Site(self, scratch, server, embedded, ours, published)
