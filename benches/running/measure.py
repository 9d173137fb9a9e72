"""Visits the tasks in rotating order and keeps the times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Sequence, Set

from fs import processes
from fs.measure import progress, rotated

from .driver import Unavailable
from .tasks import Site, Task, crowd_task, output_tasks, tasks


@dataclass
class Results:
    """Everything that was measured: micros[series][repetition] is a list of times."""

    micros: Dict[str, List[List[float]]] = field(default_factory=dict)
    held: Dict[str, float] = field(default_factory=dict)
    unavailable: Dict[str, str] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)

    def add(self, series: str, times: List[float]) -> None:
        self.micros.setdefault(series, []).append(times)

    def discard(self, task: Task, reason: str) -> None:
        """Take a task out: a ratio needs every repetition."""
        for series in task.series:
            self.micros.pop(series, None)
            self.unavailable[series] = reason


def measure(site: Site, results: Results) -> None:
    """Short work many times, then what takes long a few times."""
    counts = site.counts
    site.driver.open(site.outputs, 1)
    if site.containers is not None:
        site.containers.open(site.outputs, 1)
    visit(list(tasks(site)), counts.repeats, results, "starting and running")
    visit(list(output_tasks(site)), counts.heavy_repeats, results, "output")
    site.driver.close()
    if site.containers is not None:
        site.containers.close()
    crowds = [crowd_task(site, size) for size in counts.crowds]
    visit(crowds, counts.heavy_repeats, results, "many at once")


def visit(all_tasks: Sequence[Task], repeats: int, results: Results, what: str) -> None:
    """The order rotates from repetition to repetition, so that no task is always first."""
    given_up: Set[Task] = set()
    for repeat in range(repeats):
        progress(f"{what}: {repeat + 1} of {repeats}")
        for task in rotated(list(all_tasks), repeat):
            if task in given_up:
                continue
            try:
                for series, times in task.run().items():
                    results.add(series, times)
            except (Unavailable, processes.CommandFailed) as error:
                given_up.add(task)
                reason = str(error)
                if isinstance(error, Unavailable):
                    reason = f"not available yet ({reason})"
                progress(f"  {', '.join(task.series)}: {reason}")
                results.discard(task, reason)
