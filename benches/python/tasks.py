"""What is done for each row, except for the large tree. A task returns microseconds by series."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Dict, Iterator, List, Tuple

from api.pushes import MEGABYTE, fresh_files
from fs import processes
from running.driver import Driver, Times
from running.rows import UNIT
from running.tasks import ENOUGH_OF_A_CROWD, TRUE, Task, crowd_series, renamed

from .rows import CROWDS

if TYPE_CHECKING:
    from .site import Place, Site

HERE = Path(__file__).resolve().parent
PATIENCE = 120
LIFE = ("usable", "destroy")


@dataclass(frozen=True)
class Counts:
    """How often each is done in one repetition, and how many repetitions there are of what."""

    repeats: int
    heavy_repeats: int
    tree_repeats: int
    spawns: int
    calls: int
    lives: int
    programs: int
    megabytes: int
    crowds: Tuple[int, ...]
    files: int
    tree: int

    def named(self) -> Dict[str, int]:
        """The numbers that stand in titles."""
        return {"files": self.files, "tree": self.tree, "crowd": max(self.crowds)}


FULL = Counts(
    repeats=10,
    heavy_repeats=3,
    tree_repeats=2,
    spawns=50,
    calls=300,
    lives=10,
    programs=3,
    megabytes=20,
    crowds=CROWDS,
    files=1000,
    tree=25_000,
)
QUICK = Counts(
    repeats=3,
    heavy_repeats=1,
    tree_repeats=1,
    spawns=20,
    calls=100,
    lives=3,
    programs=1,
    megabytes=5,
    crowds=CROWDS[:2],
    files=200,
    tree=5_000,
)


def tasks(site: "Site") -> Iterator[Task]:
    """The short ones, which are repeated and visited in rotating order."""
    place, counts = site.place, site.counts
    spawn = {"argv": [TRUE], "count": counts.spawns}
    yield Task((UNIT,), lambda: renamed(site.served.driver.times("spawn", **spawn), UNIT))
    yield Task(("program/nothing",), lambda: {"program/nothing": programs(place, ["-c", "pass"])})
    yield Task(("program/import",), lambda: {"program/import": programs(place, ["-c", "import ringfence"])})
    yield Task(("program/whole", "program/usable", "program/block"), lambda: programs_with_one_sandbox(place))
    yield Task(lives_of("small"), lambda: lived(site, "small", place.small))
    yield Task(lives_of("large"), lambda: lived(site, "large", place.large))
    yield task(site.embedded, "run/embedded", "run", counts.spawns)
    yield task(site.embedded, "session/embedded", "session", counts.calls)
    yield task(site.embedded, "session-open/embedded", "session-open", counts.lives)
    yield task(site.embedded, "run/async", "async-run", counts.spawns)
    yield task(site.embedded, "session/async", "async-session", counts.calls)
    for client, door in ((site.ours, "tcp"), (site.published, "published")):
        yield task(client, f"run/{door}", "run", counts.spawns)
        yield task(client, f"session/{door}", "session", counts.calls)


def task(client: Driver, series: str, order: str, times: int) -> Task:
    return Task((series,), lambda: renamed(client.times(order, count=times), series))


def lives_of(base: str) -> Tuple[str, ...]:
    return tuple(f"{base}/{part}" for part in LIFE)


def lived(site: "Site", name: str, base: Path) -> Times:
    times = site.embedded.times("life", base=str(base), count=site.counts.lives)
    return {f"{name}/{part}": micros for part, micros in times.items()}


def programs(place: "Place", arguments: List[str]) -> List[float]:
    """The whole of an interpreter's life, as often as others are measured in a repetition."""
    return [program(place, arguments)[0] for _ in range(place.counts.programs)]


def programs_with_one_sandbox(place: "Place") -> Times:
    found: Times = {"program/whole": [], "program/usable": [], "program/block": []}
    for _ in range(place.counts.programs):
        micros, said = program(place, [str(HERE / "one_sandbox.py"), str(place.small)])
        found["program/whole"].append(micros)
        for part, taken in json.loads(said).items():
            found[f"program/{part}"].append(taken)
    return found


def program(place: "Place", arguments: List[str]) -> Tuple[float, str]:
    """Microseconds from start to end, and what it printed."""
    command, environment = [str(place.python), *arguments], processes.clean_environment(place.variables)
    begin = time.perf_counter()
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
    )
    micros = (time.perf_counter() - begin) * 1e6
    if done.returncode != 0:
        raise processes.CommandFailed(f"{arguments[0]}: {done.stderr.strip()[-500:]}")
    return micros, done.stdout


def upload_tasks(site: "Site") -> Iterator[Task]:
    """Every upload is of files the server has never seen: what it knows need not be sent."""
    numbers = count()
    for client, door in ((site.ours, "tcp"), (site.published, "published")):
        yield start_task(site, client, door, numbers)
        yield file_task(site, client, door)


def start_task(site: "Site", client: Driver, door: str, numbers: Iterator[int]) -> Task:
    series = f"start/{door}"

    def run() -> Times:
        base = fresh_files(site, next(numbers))
        return renamed(client.times("start", base=str(base)), series)

    return Task((series,), run)


def file_task(site: "Site", client: Driver, door: str) -> Task:
    def run() -> Times:
        times = client.times("files", size=MEGABYTE, count=site.counts.megabytes)
        return {f"{way}/{door}": micros for way, micros in times.items()}

    return Task((f"upload/{door}", f"download/{door}"), run)


def crowd_task(site: "Site", size: int) -> Task:
    name, times = crowd_series(size), max(1, ENOUGH_OF_A_CROWD // size)
    order = {"base": str(site.place.small), "size": size, "count": times}
    return Task((name,), lambda: renamed(site.embedded.times("crowd", **order), name))


def describe(counts: Counts) -> Dict[str, str]:
    """How much work stands behind the figures."""
    return {
        "repetitions": f"{counts.repeats}, of crowds and uploads {counts.heavy_repeats}, "
        f"of the large tree {counts.tree_repeats}",
        "in each": f"{counts.spawns} spawns and runs, {counts.calls} commands of a session, "
        f"{counts.lives} sandboxes, {counts.programs} programs, {counts.megabytes} files of 1 MB",
    }
