"""From times to figures, where those of `running` do not do."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Dict, List, Optional

from running.figures import pooled
from running.measure import Results

from .rows import COPIES, OVERHEADS, Copy, Overhead
from .tasks import copy_series


@dataclass(frozen=True)
class Share:
    overhead: Overhead
    ratio: float

    @property
    def is_over(self) -> bool:
        return self.ratio > self.overhead.must


@dataclass(frozen=True)
class Copied:
    """Milliseconds by how many files were changed."""

    copy: Copy
    milliseconds: Dict[int, float]


def shares(results: Results) -> List[Share]:
    found = []
    for overhead in OVERHEADS:
        ratio = ratio_to_echo(results, overhead)
        if ratio is not None:
            found.append(Share(overhead, ratio))
    return found


def ratio_to_echo(results: Results, overhead: Overhead) -> Optional[float]:
    """The median of the ratios within one repetition."""
    series, echo = results.micros.get(overhead.series), results.micros.get(overhead.echo)
    if not series or not echo:
        return None
    elsewhere = [0.0] * len(series)
    if overhead.without is not None:
        taken = results.micros.get(overhead.without)
        if not taken:
            return None
        elsewhere = [statistics.median(times) for times in taken]
    parts = zip(map(statistics.median, series), elsewhere, map(statistics.median, echo))
    return statistics.median((whole - part) / bare for whole, part, bare in parts)


def copies(results: Results) -> List[Copied]:
    found = []
    for copy in COPIES:
        prefix = copy_series(copy.name, 0)[:-1]
        counts = sorted(int(name[len(prefix) :]) for name in results.micros if name.startswith(prefix))
        times = {files: results.micros[copy_series(copy.name, files)] for files in counts}
        if times:
            medians = {files: statistics.median(pooled(each)) / 1000 for files, each in times.items()}
            found.append(Copied(copy, medians))
    return found
