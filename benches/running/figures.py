"""From times to figures: ratios to a spawn, rates, and where ringfence stands with them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence

from .measure import Results
from .rows import CONTESTS, HOLDINGS, OUTPUTS, PRINTERS, ROWS, UNIT, Contest, Holding, Output, Row
from .tasks import crowd_series

# Medians of the unit that lie further apart than this make the figures doubtful.
UNSTEADY = 1.3


@dataclass(frozen=True)
class Line:
    """One row: its time in units of a spawn and in milliseconds, or why there is none."""

    row: Row
    ratio: Optional[float]
    milliseconds: Optional[float]
    p99_milliseconds: Optional[float]
    reason: Optional[str] = None

    @property
    def is_over(self) -> bool:
        return self.ratio is not None and self.row.must is not None and self.ratio > self.row.must


@dataclass(frozen=True)
class Score:
    contest: Contest
    factor: float

    @property
    def is_under(self) -> bool:
        return self.contest.must is not None and self.factor < self.contest.must


@dataclass(frozen=True)
class Rates:
    """Megabytes a second by who prints."""

    output: Output
    rates: Dict[str, float]


@dataclass(frozen=True)
class Crowd:
    """So many at once: the time of all, and the share of one."""

    size: int
    milliseconds: float
    each_milliseconds: float


@dataclass(frozen=True)
class Held:
    holding: Holding
    value: float

    @property
    def is_bad(self) -> bool:
        must = self.holding.must
        if must is None:
            return False
        return self.value < must if self.holding.at_least else self.value > must


def lines(results: Results, rows: Sequence[Row] = ROWS) -> List[Line]:
    """The rows that were measured or could not be, in the order of the table."""
    known = [row for row in rows if row.series in results.micros or row.series in results.unavailable]
    return [make_line(results, row) for row in known]


def make_line(results: Results, row: Row) -> Line:
    repetitions = results.micros.get(row.series)
    unit = results.micros.get(UNIT)
    if not repetitions or not unit:
        return Line(row, None, None, None, results.unavailable.get(row.series, "the unit is missing"))
    all_times = pooled(repetitions)
    micros = quantile(all_times, row.quantile)
    if row.quantile == 0.5:
        ratio = median_ratio(repetitions, unit)
    else:
        ratio = micros / statistics.median(pooled(unit))
    return Line(row, ratio, micros / 1000, quantile(all_times, 0.99) / 1000)


def median_ratio(repetitions: List[List[float]], reference: List[List[float]]) -> float:
    """The median of the ratios within one repetition: both sides met the same noise."""
    medians = zip(map(statistics.median, repetitions), map(statistics.median, reference))
    return statistics.median(one / other for one, other in medians)


def pooled(repetitions: List[List[float]]) -> List[float]:
    return [time for times in repetitions for time in times]


def quantile(times: List[float], share: float) -> float:
    """The value that the given share of all times does not exceed."""
    ordered = sorted(times)
    if share == 0.5:
        return statistics.median(ordered)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def unit_milliseconds(results: Results) -> Optional[float]:
    unit = results.micros.get(UNIT)
    return statistics.median(pooled(unit)) / 1000 if unit else None


def is_steady(results: Results) -> bool:
    medians = [statistics.median(times) for times in results.micros.get(UNIT, [])]
    return not medians or max(medians) <= min(medians) * UNSTEADY


def scores(results: Results, contests: Sequence[Contest] = CONTESTS) -> List[Score]:
    """How far ahead of docker or another peer, repetition by repetition."""
    found = []
    for contest in contests:
        peer, ours = results.micros.get(contest.peer), results.micros.get(contest.ours)
        if peer and ours:
            found.append(Score(contest, median_ratio(peer, ours)))
    return found


def rates(results: Results) -> List[Rates]:
    """The median rate of each that printed."""
    found = []
    for output in OUTPUTS:
        by_printer = {}
        for printer in PRINTERS:
            repetitions = results.micros.get(f"{output.name}/{printer}")
            if repetitions:
                by_printer[printer] = output.megabytes * 1e6 / statistics.median(pooled(repetitions))
        if by_printer:
            found.append(Rates(output, by_printer))
    return found


def crowds(results: Results) -> List[Crowd]:
    prefix = crowd_series(0)[:-1]
    sizes = sorted(int(name[len(prefix) :]) for name in results.micros if name.startswith(prefix))
    found = []
    for size in sizes:
        milliseconds = statistics.median(pooled(results.micros[crowd_series(size)])) / 1000
        found.append(Crowd(size, milliseconds, milliseconds / size))
    return found


def held(results: Results, holdings: Sequence[Holding] = HOLDINGS) -> List[Held]:
    return [Held(holding, results.held[holding.name]) for holding in holdings if holding.name in results.held]
