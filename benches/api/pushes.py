"""Trees of files on their way to the server: our way, and the published client's."""

from __future__ import annotations

import json
import re
import subprocess
import time
from itertools import count
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional

from fs import processes
from fs.measure import progress
from running.driver import Times
from running.measure import Results
from running.tasks import Task

from .tasks import Site, asked

HERE = Path(__file__).resolve().parent
MEGABYTE = 10**6
FILE_BYTES = 10_000
PATIENCE = 600
# A second push is over quickly, so it is done more than once.
AGAIN = 3
_sent = re.compile(r": (\d+) sent")


class Pushed(NamedTuple):
    codebase: str
    micros: float
    files_sent: int


def tasks(site: Site) -> Iterator[Task]:
    """Every upload is of files the server has never seen: what it knows need not be sent."""
    numbers = count()
    one = {"via": "tcp", "bytes": MEGABYTE, "count": site.counts.megabytes}
    yield Task(("push/start",), lambda: push_and_start(site, fresh_files(site, next(numbers))))
    yield Task(("upload",), lambda: asked(site, "upload", "upload", **one))
    yield Task(("download",), lambda: asked(site, "download", "download", **one))
    if site.published is not None:
        series = ("published/start", "published/upload", "published/download")
        yield Task(series, lambda: published(site, fresh_files(site, next(numbers))))


def fresh_files(site: Site, number: int) -> Path:
    """A directory of small files with contents that no other has."""
    directory = site.scratch / "files" / str(number)
    directory.mkdir(parents=True)
    for index in range(site.counts.files):
        (directory / f"{index}.txt").write_bytes(distinct(f"{number} {index}\n", FILE_BYTES))
    return directory


def distinct(text: str, size: int) -> bytes:
    return (text * (size // len(text) + 1)).encode()[:size]


def push_and_start(site: Site, directory: Path) -> Times:
    """`ringfence codebase push`, then a sandbox on it."""
    pushed = push(site, directory)
    life = site.served.times("life-of", via="tcp", codebase=pushed.codebase, count=1)
    return {"push/start": [pushed.micros + life["start"][0]]}


def push(site: Site, directory: Path, codebase: Optional[str] = None) -> Pushed:
    command = [str(site.binary), "codebase", "push", "--endpoint", site.served.address]
    command += ["--codebase", codebase] if codebase else ["--name", "bench"]
    start = time.perf_counter()
    done = run([*command, str(directory)])
    micros = (time.perf_counter() - start) * 1e6
    return Pushed(done.stdout.strip(), micros, files_sent(done.stderr))


def run(command: List[str]) -> "subprocess.CompletedProcess[str]":
    environment = processes.clean_environment()
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
    )
    if done.returncode != 0:
        raise processes.CommandFailed(f"{command[0]}: {done.stderr.strip()[-500:]}")
    return done


def files_sent(said: str) -> int:
    """What the command says of itself."""
    found = _sent.search(said)
    if found is None:
        raise processes.CommandFailed(f"how many files were sent is not in {said!r}")
    return int(found.group(1))


def published(site: Site, directory: Path) -> Times:
    """The published client's own loops, timed by its own process without the start of it."""
    script = str(HERE / "published.py")
    order = [site.served.address, str(directory), str(MEGABYTE), str(site.counts.megabytes)]
    times: Dict[str, List[float]] = json.loads(run([str(site.published), script, *order]).stdout)
    return {f"published/{name}": micros for name, micros in times.items()}


def measure_tree(site: Site, results: Results) -> None:
    """The large tree twice. The second time nothing has changed."""
    progress("pushing the large tree")
    try:
        first = push(site, site.large)
        later = [push(site, site.large, first.codebase) for _ in range(AGAIN)]
    except processes.CommandFailed as error:
        results.unavailable["push/second"] = str(error)
        return
    results.add("push/first", [first.micros])
    results.add("push/second", [again.micros for again in later])
    results.held["sent-again"] = max(again.files_sent for again in later)
    results.notes.append(f"first push of the tree: {first.files_sent} files sent, equal ones once")
