"""Python as tables and as JSON."""

from __future__ import annotations

from document import Part
from running import chart, figures
from running.report import (
    LEGEND,
    Run,
    crowds_table,
    factors_table,
    memory_table,
    notes,
    times_table,
    unit_sentence,
)

from .rows import AGAIN, HOLDINGS, PEERS, ROWS


def python_part(run: Run) -> Part:
    results = run.results
    pieces = [LEGEND, unit_sentence(results), times_table(run, ROWS), crowds_table(run)]
    pieces += [peers_table(run), again_table(run), memory_table(run, HOLDINGS)]
    reasons = [f"{series}: {why}" for series, why in results.unavailable.items()]
    pieces.append(notes(results.notes + reasons))
    return Part(
        title="Python",
        tables="\n\n".join(piece for piece in pieces if piece),
        settings=run.settings,
        data={"micros": results.micros, "held": results.held, "unavailable": results.unavailable},
        chart_name="python.svg",
        chart=chart.svg(figures.lines(results, ROWS)),
    )


def peers_table(run: Run) -> str:
    return factors_table(run, PEERS, ("against the published client, TCP", "its ms", "our ms"))


def again_table(run: Run) -> str:
    title = "tree of {tree} files, TCP".format(**run.counts.named())
    return factors_table(run, AGAIN, (title, "first ms", "again ms"))
