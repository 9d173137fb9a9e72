"""The API as tables and as JSON."""

from __future__ import annotations

from typing import List

from document import Part, aligned
from fs.chart import digits
from running import chart
from running import figures as shared
from running.report import (
    LEGEND,
    Run,
    crowds_table,
    factors_table,
    limit,
    marked,
    memory_table,
    notes,
    outputs_table,
    times_table,
    unit_sentence,
)

from . import figures
from .rows import CONTESTS, HOLDINGS, ROWS


def api_part(run: Run) -> Part:
    results = run.results
    pieces = [LEGEND, unit_sentence(results), times_table(run, ROWS), overheads_table(run), crowds_table(run)]
    pieces += [outputs_table(run), copies_table(run), uploads_table(run), memory_table(run, HOLDINGS)]
    reasons = [f"{series}: {why}" for series, why in results.unavailable.items()]
    pieces.append(notes(results.notes + reasons))
    return Part(
        title="API",
        tables="\n\n".join(piece for piece in pieces if piece),
        settings=run.settings,
        data={"micros": results.micros, "held": results.held, "unavailable": results.unavailable},
        chart_name="api.svg",
        chart=chart.svg(shared.lines(results, ROWS)),
    )


def overheads_table(run: Run) -> str:
    shares = figures.shares(run.results)
    if not shares:
        return ""
    rows = [["server's time over a bare tonic server", "ratio", "must", "aim"]]
    for share in shares:
        limits = [limit(share.overhead.must), limit(share.overhead.aim)]
        rows.append([share.overhead.title, marked(digits(share.ratio), share.is_over), *limits])
    return aligned(rows)


def copies_table(run: Run) -> str:
    copied = figures.copies(run.results)
    if not copied:
        return ""
    counts = sorted({files for each in copied for files in each.milliseconds})
    rows = [["ms, with files changed", *map(str, counts), "must", "aim"]]
    for each in copied:
        cells: List[str] = []
        for files in counts:
            value = each.milliseconds.get(files)
            cells.append("–" if value is None else marked(digits(value), value > each.copy.must))
        rows.append([each.copy.title, *cells, limit(each.copy.must), limit(each.copy.aim)])
    return aligned(rows)


def uploads_table(run: Run) -> str:
    return factors_table(run, CONTESTS, ("files, against the published client", "its ms", "our ms"))
