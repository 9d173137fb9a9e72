"""What is done for each row. A task returns microseconds by series, several of each."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from fs import processes

from .docker import Docker
from .driver import Driver, Times
from .rows import CROWDS, OUTPUTS, UNIT, Output

TRUE = "/bin/true"
# So many sandboxes make a steady figure.
ENOUGH_OF_A_CROWD = 20
SHELL_TRUE = ["/bin/sh", "-c", "true"]


@dataclass(frozen=True)
class Counts:
    """How often each is done in one repetition, and how many repetitions there are of what."""

    repeats: int
    heavy_repeats: int
    spawns: int
    lives: int
    session_execs: int
    docker_execs: int
    docker_runs: int
    crowds: Tuple[int, ...]
    idle: int
    execs: int
    kept_lives: int

    def named(self) -> Dict[str, int]:
        """The numbers that stand in titles."""
        return {"crowd": self.idle, "execs": self.execs, "lives": self.kept_lives}


FULL = Counts(
    repeats=10,
    heavy_repeats=3,
    spawns=50,
    lives=10,
    session_execs=500,
    docker_execs=5,
    docker_runs=2,
    crowds=CROWDS,
    idle=100,
    execs=10_000,
    kept_lives=200,
)
QUICK = Counts(
    repeats=3,
    heavy_repeats=1,
    spawns=20,
    lives=3,
    session_execs=100,
    docker_execs=2,
    docker_runs=1,
    crowds=CROWDS[:2],
    idle=10,
    execs=1_000,
    kept_lives=20,
)


@dataclass(frozen=True)
class Site:
    """Where the material is, and who works with it."""

    small: Path
    large: Path
    outputs: Path
    binary: Path
    state: Path
    scratch: Path
    driver: Driver
    docker: Optional[Docker]
    # Whose sandboxes run in containers of that docker.
    containers: Optional[Driver]
    counts: Counts


@dataclass(frozen=True)
class Task:
    series: Tuple[str, ...]
    run: Callable[[], Times]


def tasks(site: Site) -> Iterator[Task]:
    """The short ones, which are repeated and visited in rotating order."""
    driver, counts = site.driver, site.counts
    yield Task((UNIT,), lambda: spawned(site, UNIT, [TRUE]))
    yield Task(("spawn-shell",), lambda: spawned(site, "spawn-shell", SHELL_TRUE))
    yield Task(("fork",), lambda: driver.times("fork", program=TRUE, count=counts.spawns))
    yield Task(("bwrap",), lambda: spawned(site, "bwrap", bwrap_command(site.small)))
    yield Task(lives_of("small"), lambda: lived(site, "small", site.small))
    yield Task(lives_of("large"), lambda: lived(site, "large", site.large))
    yield Task(("mount",), lambda: driver.times("mount", base=str(site.large), count=counts.lives))
    yield Task(("exec",), lambda: executed(site, "exec", [TRUE]))
    yield Task(("exec-shell",), lambda: executed(site, "exec-shell", SHELL_TRUE))
    yield Task(("session-open",), lambda: renamed(driver.times("session-open", count=counts.lives), "session-open"))
    yield Task(("session-exec",), lambda: in_session(site))
    yield Task(("command-line",), lambda: run_by_hand(site))
    if site.docker is not None:
        yield from docker_tasks(site, site.docker)
    if site.containers is not None:
        yield from container_tasks(site, site.containers)


def docker_tasks(site: Site, docker: Docker) -> Iterator[Task]:
    execs, runs = site.counts.docker_execs, site.counts.docker_runs
    yield Task(("docker-exec",), lambda: spawned(site, "docker-exec", docker.exec_command(), execs))
    yield Task(("docker-run",), lambda: spawned(site, "docker-run", docker.run_command(), runs))
    yield Task(("docker-exec-api",), lambda: {"docker-exec-api": timed(docker.exec_through_api, execs)})
    yield Task(("docker-run-api",), lambda: {"docker-run-api": timed(docker.run_through_api, runs)})


def container_tasks(site: Site, driver: Driver) -> Iterator[Task]:
    counts = site.counts
    lives = tuple(f"container/{part}" for part in LIFE)
    execs, in_sessions = "container/exec", "container/session-exec"
    yield Task((execs,), lambda: renamed(driver.times("exec", argv=[TRUE], count=counts.spawns), execs))
    yield Task(
        (in_sessions,),
        lambda: renamed(driver.times("session-exec", text="true", count=counts.session_execs), in_sessions),
    )
    yield Task(lives, lambda: under("container", driver.times("life", base=str(site.small), count=counts.docker_runs)))


def output_tasks(site: Site) -> Iterator[Task]:
    """What a reader gets of a command that prints much."""
    for output in OUTPUTS:
        yield from output_tasks_of(site, output)


def output_tasks_of(site: Site, output: Output) -> Iterator[Task]:
    host, inside, size = output_commands(site, output)
    text = " ".join(inside)
    ask = site.driver.times
    series = {printer: f"{output.name}/{printer}" for printer in ("host", "exec", "session")}
    yield Task(
        (series["host"],),
        lambda: renamed(ask("spawn-output", argv=host, bytes=size, count=1), series["host"]),
    )
    yield Task(
        (series["exec"],),
        lambda: renamed(ask("exec-output", argv=inside, bytes=size, count=1), series["exec"]),
    )
    yield Task(
        (series["session"],),
        lambda: renamed(ask("session-output", text=text, bytes=size, count=1), series["session"]),
    )


def output_commands(site: Site, output: Output) -> Tuple[List[str], List[str], int]:
    """The command on the host, the same inside, and the number of bytes it prints."""
    if output.kind == "seq":
        last = last_number(output.megabytes * 10**6)
        command = ["/usr/bin/seq", "1", str(last)]
        return command, command, length_of_numbers(last)
    name = output_file(output)
    return (
        ["/bin/cat", str(site.outputs / name)],
        ["/bin/cat", f"/workspace/{name}"],
        output.megabytes * 10**6,
    )


def output_file(output: Output) -> str:
    return f"{output.megabytes}.txt"


def length_of_numbers(last: int) -> int:
    """How many bytes `seq 1 LAST` prints."""
    length, digits, first = 0, 1, 1
    while first <= last:
        numbers = min(last, first * 10 - 1) - first + 1
        length += numbers * (digits + 1)
        digits, first = digits + 1, first * 10
    return length


def last_number(size: int) -> int:
    """The last number of a `seq` that prints at least `size` bytes."""
    low, high = 1, size
    while low < high:
        middle = (low + high) // 2
        if length_of_numbers(middle) < size:
            low = middle + 1
        else:
            high = middle
    return low


def crowd_task(site: Site, size: int) -> Task:
    """Small ones several times: the end of a single sandbox takes anything between 4 and 25 ms."""
    name, order = crowd_series(size), {"base": str(site.small), "size": size}
    count = max(1, ENOUGH_OF_A_CROWD // size)
    return Task((name,), lambda: renamed(site.driver.times("crowd", **order, count=count), name))


def crowd_series(size: int) -> str:
    return f"crowd/{size}"


def spawned(site: Site, series: str, command: List[str], count: Optional[int] = None) -> Times:
    times = site.driver.times("spawn", argv=command, count=count or site.counts.spawns)
    return renamed(times, series)


def executed(site: Site, series: str, command: List[str]) -> Times:
    return renamed(site.driver.times("exec", argv=command, count=site.counts.spawns), series)


def in_session(site: Site) -> Times:
    times = site.driver.times("session-exec", text="true", count=site.counts.session_execs)
    return renamed(times, "session-exec")


def run_by_hand(site: Site) -> Times:
    """As a person types it: a process that starts everything and waits for the end of it."""
    command = [str(site.binary), "run", "--state", str(site.state), str(site.small), "--", TRUE]
    return spawned(site, "command-line", command, site.counts.lives)


LIFE = ("start", "first-exec", "usable", "destroy", "whole")


def lives_of(base: str) -> Tuple[str, ...]:
    return tuple(f"{base}/{part}" for part in LIFE)


def lived(site: Site, name: str, base: Path) -> Times:
    return under(name, site.driver.times("life", base=str(base), count=site.counts.lives))


def under(name: str, times: Times) -> Times:
    return {f"{name}/{part}": micros for part, micros in times.items()}


def renamed(times: Times, series: str) -> Times:
    """The only list in an answer, under the name of its row."""
    (micros,) = times.values()
    return {series: micros}


def timed(work: Callable[[], None], count: int) -> List[float]:
    micros = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        micros.append((time.perf_counter() - start) * 1e6)
    return micros


def bwrap_command(base: Path, root: Path = Path("/")) -> List[str]:
    """A sandbox as near to ours as one command line makes it: the same namespaces and the same view."""
    command = ["bwrap", "--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session"]
    for name in ("usr", "bin", "sbin", "lib", "lib64"):
        if (root / name).is_symlink():
            command += ["--symlink", os.readlink(root / name), f"/{name}"]
        elif (root / name).is_dir():
            command += ["--ro-bind", f"/{name}", f"/{name}"]
    command += ["--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev"]
    for place in ("/dev/shm", "/run", "/var", "/tmp", "/home"):
        command += ["--tmpfs", place]
    return [*command, "--bind", str(base), "/workspace", "--chdir", "/workspace", "--", TRUE]


def describe(counts: Counts) -> Dict[str, str]:
    """How much work stands behind the figures."""
    return {
        "repetitions": f"{counts.repeats}, of crowds and outputs {counts.heavy_repeats}",
        "in each": f"{counts.spawns} spawns and execs, {counts.lives} sandboxes, "
        f"{counts.session_execs} session execs, {counts.docker_execs} docker execs, {counts.docker_runs} docker runs",
        "memory": f"{counts.idle} idle sandboxes, {counts.execs} execs, {counts.kept_lives} sandboxes",
    }


def check(binary: Path, program: Path) -> None:
    """Stop early for what nothing works without."""
    for needed in (binary, program):
        if not os.access(needed, os.X_OK):
            raise processes.CommandFailed(f"{needed} is not there or cannot be executed")
