"""What is done for each row, except for trees of files. A task returns microseconds by series."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, Optional, Tuple

from running.driver import Times
from running.rows import CROWDS, OUTPUTS, UNIT, Output
from running.tasks import ENOUGH_OF_A_CROWD, TRUE, Task, crowd_series, lives_of, output_commands, renamed

from .rows import CHANGED, COPIES, DOORS
from .server import Served


@dataclass(frozen=True)
class Counts:
    """How often each is done in one repetition, and how many repetitions there are of what."""

    repeats: int
    heavy_repeats: int
    spawns: int
    calls: int
    lives: int
    megabytes: int
    crowds: Tuple[int, ...]
    changed: Tuple[int, ...]
    copies: int
    files: int
    tree: int
    recorded: int
    running: int
    execs: int
    kept_lives: int

    def named(self) -> Dict[str, int]:
        """The numbers that stand in titles."""
        return {
            "files": self.files,
            "tree": self.tree,
            "recorded": self.recorded,
            "running": self.running,
            "execs": self.execs,
            "lives": self.kept_lives,
        }


FULL = Counts(
    repeats=10,
    heavy_repeats=3,
    spawns=50,
    calls=500,
    lives=10,
    megabytes=20,
    crowds=CROWDS,
    changed=CHANGED,
    copies=2,
    files=1000,
    tree=25_000,
    recorded=500,
    running=100,
    execs=10_000,
    kept_lives=1000,
)
QUICK = Counts(
    repeats=3,
    heavy_repeats=1,
    spawns=20,
    calls=100,
    lives=3,
    megabytes=5,
    crowds=CROWDS[:2],
    changed=CHANGED[:1],
    copies=1,
    files=200,
    tree=5_000,
    recorded=30,
    running=10,
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
    scratch: Path
    served: Served
    # Python with the published client, if it could be had.
    published: Optional[Path]
    counts: Counts


def tasks(site: Site) -> Iterator[Task]:
    """The short ones, which are repeated and visited in rotating order."""
    spawn = {"argv": [TRUE], "count": site.counts.spawns}
    yield Task((UNIT,), lambda: renamed(site.served.driver.times("spawn", **spawn), UNIT))
    yield Task(lives_of("small"), lambda: lived(site, "small", site.small))
    yield Task(lives_of("large"), lambda: lived(site, "large", site.large))
    yield Task(("straight",), lambda: asked(site, "straight", "straight", text="true", count=site.counts.calls))
    for door in DOORS:
        yield from tasks_of(site, door)


def tasks_of(site: Site, door: str) -> Iterator[Task]:
    """What is asked over TCP and over the Unix socket."""
    counts = site.counts

    def task(series: str, ask: str, count: int, **details: object) -> Task:
        name = f"{series}/{door}"
        return Task((name,), lambda: asked(site, name, ask, via=door, count=count, **details))

    yield task("echo", "echo", counts.calls)
    yield task("info", "info", counts.calls)
    yield task("get", "get", counts.calls)
    yield task("exec", "exec", counts.spawns, argv=[TRUE])
    yield task("session", "session-exec", counts.calls, text="true")
    yield task("session-open", "session-open", counts.lives)


def output_tasks(site: Site) -> Iterator[Task]:
    """What a reader gets of a command that prints much, over TCP."""
    for output in OUTPUTS:
        yield from output_tasks_of(site, output)


def output_tasks_of(site: Site, output: Output) -> Iterator[Task]:
    _, inside, size = output_commands(site, output)
    in_exec, in_session = f"{output.name}/exec", f"{output.name}/session"
    much = {"via": "tcp", "bytes": size, "count": 1}
    yield Task((in_exec,), lambda: asked(site, in_exec, "exec-output", argv=inside, **much))
    text = " ".join(inside)
    yield Task((in_session,), lambda: asked(site, in_session, "session-output", text=text, **much))


def crowd_task(site: Site, size: int) -> Task:
    name, count = crowd_series(size), max(1, ENOUGH_OF_A_CROWD // size)
    order = {"via": "tcp", "base": str(site.small), "size": size, "count": count}
    return Task((name,), lambda: asked(site, name, "crowd", **order))


def copy_tasks(site: Site) -> Iterator[Task]:
    for copy in COPIES:
        for files in site.counts.changed:
            yield copy_task(site, copy.name, files)


def copy_task(site: Site, copying: str, files: int) -> Task:
    name = copy_series(copying, files)
    order = {"via": "tcp", "base": str(site.small), "copying": copying, "files": files}
    return Task((name,), lambda: asked(site, name, "copy", **order, count=site.counts.copies))


def copy_series(copying: str, files: int) -> str:
    return f"{copying}/{files}"


def lived(site: Site, name: str, base: Path) -> Times:
    times = site.served.times("life", via="tcp", base=str(base), count=site.counts.lives)
    return {f"{name}/{part}": micros for part, micros in times.items()}


def asked(site: Site, series: str, ask: str, **details: object) -> Times:
    return renamed(site.served.times(ask, **details), series)


def describe(counts: Counts) -> Dict[str, str]:
    """How much work stands behind the figures."""
    return {
        "repetitions": f"{counts.repeats}, of crowds, outputs, copies and uploads {counts.heavy_repeats}",
        "in each": f"{counts.spawns} spawns and execs, {counts.calls} short calls, {counts.lives} sandboxes, "
        f"{counts.copies} forks and snapshots, {counts.megabytes} files of 1 MB",
    }
