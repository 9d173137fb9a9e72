"""From times to figures: medians of ratios, and where ringfence stands with them."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from .measure import Results
from .rows import DERIVED, POLICY_SENSITIVE, ROWS, Row
from .variants import FUSE_PEERS, NATIVE, RINGFENCE

# A difference to a peer below this is noise.
NOISE = 1.05
# Native times of one row that lie further apart than this make its figures doubtful.
UNSTEADY = 1.3

OVER_MUST = "over must"
BEHIND_PEER = "behind a peer"


@dataclass(frozen=True)
class Line:
    """One row of the report: the figure of each variant and its marks."""

    row: Row
    native_seconds: Optional[float]
    is_steady: bool
    values: Dict[str, float]
    marks: Dict[str, Tuple[str, ...]]


def lines(results: Results, names: Tuple[str, ...]) -> List[Line]:
    """The report's rows, in the order of the table, without those that gave nothing."""
    made = [make_line(results, row) for row in ROWS if row.name in names]
    return [line for line in made if line.values]


def make_line(results: Results, row: Row) -> Line:
    values = figures_of(results, row)
    native = results.seconds.get(row.name, {}).get(NATIVE, [])
    return Line(
        row=row,
        native_seconds=statistics.median(native) if native else None,
        is_steady=not native or max(native) <= min(native) * UNSTEADY,
        values=values,
        marks={name: marks_of(row, name, values) for name in values if name in RINGFENCE},
    )


def figures_of(results: Results, row: Row) -> Dict[str, float]:
    if row.name == "policy-change":
        times = results.policy_change_ms
        return {"100-rules": statistics.median(times)} if times else {}
    if row.name in DERIVED:
        return policy_cost(results, *DERIVED[row.name])
    by_variant = results.seconds.get(row.name, {})
    if NATIVE not in by_variant:
        return {}
    return {name: median_ratio(times, by_variant[NATIVE]) for name, times in by_variant.items()}


def median_ratio(times: List[float], reference: List[float]) -> float:
    """The median of the ratios within one repetition: both sides met the same noise."""
    return statistics.median(time / other for time, other in zip(times, reference))


def policy_cost(results: Results, variant: str, reference: str) -> Dict[str, float]:
    """Geometric mean over the work that asks for levels; nothing unless all of it was measured."""
    ratios = []
    for name in POLICY_SENSITIVE:
        by_variant = results.seconds.get(name, {})
        if variant not in by_variant or reference not in by_variant:
            return {}
        ratios.append(median_ratio(by_variant[variant], by_variant[reference]))
    return {variant: math.exp(statistics.mean(math.log(ratio) for ratio in ratios))}


def marks_of(row: Row, variant: str, values: Dict[str, float]) -> Tuple[str, ...]:
    marks = []
    if values[variant] > row.must:
        marks.append(OVER_MUST)
    peers = [values[peer] for peer in FUSE_PEERS if peer in values]
    if peers and values[variant] > min(peers) * NOISE:
        marks.append(BEHIND_PEER)
    return tuple(marks)
