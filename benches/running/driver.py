"""The program that does the work and takes the times: `crates/cli/examples/bench_driver`."""

from __future__ import annotations

import json
import os
import select
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Optional

from fs import processes

from .docker import Docker

Times = Dict[str, List[float]]
PATIENCE = 300.0


class Unavailable(Exception):
    """This build of ringfence cannot do it; the reason in its own words."""


class Driver:
    """One order at a time; an answer is waited for, but not for ever."""

    def __init__(self, server: processes.Server) -> None:
        self._server = server
        self._pending = b""

    @property
    def pid(self) -> int:
        return self._server.pid

    def times(self, work: str, /, **details: object) -> Times:
        """Microseconds of every repetition, by what was timed."""
        return self.ask(work, "times", **details)

    def open(self, base: Path, size: int) -> List[int]:
        """Start sandboxes that stay; the pids of all wardens that are there now."""
        return self.ask("open", "wardens", base=str(base), size=size)

    def close(self) -> None:
        self.order("close")

    def order(self, work: str, /, **details: object) -> None:
        """Something that is done and not timed."""
        self.ask(work, "done", **details)

    def ask(self, work: str, expected: str, /, **details: object):
        """What the driver answers, if it is of the expected kind."""
        order = json.dumps({"work": work, **details}) + "\n"
        try:
            self._server.write(order.encode())
        except OSError:
            raise processes.CommandFailed(f"the driver has ended: {self._server.last_words()}") from None
        return understood(self._line(), expected, work)

    def _line(self) -> bytes:
        while b"\n" not in self._pending:
            if not select.select([self._server.stdout_fd], [], [], PATIENCE)[0]:
                raise processes.TimedOut(f"the driver did not answer within {PATIENCE:.0f} s")
            piece = os.read(self._server.stdout_fd, 1 << 16)
            if not piece:
                raise processes.CommandFailed(f"the driver has ended: {self._server.last_words()}")
            self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return line


def understood(line: bytes, expected: str, work: str):
    """What an answer says, or the reason why there is none as an exception."""
    answer = json.loads(line)
    if answer == expected:
        return None
    (kind, content), = answer.items() if isinstance(answer, dict) else ((answer, None),)
    if kind == "unavailable":
        raise Unavailable(content)
    if kind != expected:
        raise processes.CommandFailed(f"{work}: {content or kind}")
    return content


@contextmanager
def driver(
    program: Path, binary: Path, scratch: Path, log: Path, containers: Optional[Docker] = None
) -> Iterator[Driver]:
    """Sandboxes that are still open end with it. They are in containers, if those are given."""
    command = [str(program), str(binary), str(scratch)]
    if containers is None:
        server = processes.Server(command, log, takes_input=True)
    else:
        server = processes.Server(containers.beside(command), log, takes_input=True, env=containers.environment)
    try:
        yield Driver(server)
    finally:
        server.stop(patience=30)
