"""The filesystem's part of the report."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Dict, List

from document import Part, aligned

from . import chart
from .figures import BEHIND_PEER, OVER_MUST, Line
from .measure import Results
from .variants import ALL, NATIVE, RINGFENCE

SIGNS = {OVER_MUST: "✗", BEHIND_PEER: "▼"}
LEGEND = (
    "Figures are time / time on native ext4, lower is better: the median over the repetitions of the "
    "ratio within one repetition. "
    f"{SIGNS[OVER_MUST]} above \"must\", {SIGNS[BEHIND_PEER]} slower than fuse-overlayfs or bindfs, "
    "– not measured (see the notes), ~ native itself scattered by more than 30 %: measure again."
)


@dataclass(frozen=True)
class Run:
    """One finished run, as it is reported."""

    settings: Dict[str, str]
    variants: List[str]
    lines: List[Line]
    results: Results


def part(run: Run) -> Part:
    return Part(
        title="Filesystem",
        tables=tables(run),
        settings=run.settings,
        data=as_json(run),
        chart_name="report.svg",
        chart=chart.svg(compared(run), columns(run)),
    )


def compared(run: Run) -> List[Line]:
    """The rows that compare variants with native."""
    return [line for line in run.lines if line.row.unit == "ratio"]


def columns(run: Run) -> List[str]:
    return [name for name in ALL if name in run.variants]


def tables(run: Run) -> str:
    """What is printed at the end as well: the figures, and why some are not there."""
    parts = [LEGEND]
    if compared(run):
        parts.append(variant_table(run))
    if len(compared(run)) < len(run.lines):
        parts.append(policy_table(run))
    notes = [f"{name}: skipped, {reason}" for name, reason in run.results.skipped.items()]
    notes += run.results.notes
    if notes:
        parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(parts)


def variant_table(run: Run) -> str:
    others = [name for name in columns(run) if name != NATIVE]
    heading = ["work", "native", *(title(name) for name in others), "must", "aim"]
    rows = []
    for line in compared(run):
        cells = [cell(line, name) for name in others]
        rows.append([line.row.title, native_cell(line), *cells, f"{line.row.must:g}", f"{line.row.aim:g}"])
    return aligned([heading, *rows])


def policy_table(run: Run) -> str:
    rows = [["policy", "ringfence", "unit", "must", "aim"]]
    for line in run.lines:
        if line.row.unit != "ratio":
            (name,) = line.values
            limits = [f"{line.row.must:g}", f"{line.row.aim:g}"]
            rows.append([line.row.title, cell(line, name), line.row.unit, *limits])
    return aligned(rows)


def title(variant: str) -> str:
    return f"rf {variant}" if variant in RINGFENCE else variant


def cell(line: Line, variant: str) -> str:
    if variant not in line.values:
        return "–"
    signs = "".join(SIGNS[mark] for mark in line.marks.get(variant, ()))
    return f"{chart.digits(line.values[variant])} {signs}".rstrip()


def native_cell(line: Line) -> str:
    sign = "" if line.is_steady else " ~"
    return f"{line.native_seconds:.3f} s{sign}"


def as_json(run: Run) -> Dict[str, object]:
    return {
        "variants": columns(run),
        "rows": [asdict(line) for line in run.lines],
        "seconds": run.results.seconds,
        "policy_change_ms": run.results.policy_change_ms,
        "skipped": run.results.skipped,
        "notes": run.results.notes,
    }
