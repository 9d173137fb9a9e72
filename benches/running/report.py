"""Starting, running and memory as tables and as JSON."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Dict, List, Optional, Protocol, Sequence

from document import Part, aligned
from fs.chart import digits

from . import chart, figures
from .measure import Results
from .rows import HOLDINGS, IN_CONTAINERS, PRINTERS, ROWS, Contest, Holding, Row

LEGEND = (
    "Times are in units of one spawn of `true` on the host in the same repetition, lower is better: the "
    "median over the repetitions. ✗ misses \"must\", – no goal or not measured."
)


class Counts(Protocol):
    """How much was done."""

    def named(self) -> Dict[str, int]: ...


@dataclass(frozen=True)
class Run:
    """One finished run, as it is reported."""

    settings: Dict[str, str]
    counts: Counts
    results: Results


def running_part(run: Run) -> Part:
    pieces = [LEGEND, unit_sentence(run.results), times_table(run), contests_table(run)]
    pieces.append(factors_table(run, IN_CONTAINERS, ["in a container", "peer ms", "ours ms"]))
    pieces += [crowds_table(run), outputs_table(run)]
    pieces.append(notes([f"{series}: {why}" for series, why in run.results.unavailable.items()]))
    return Part(
        title="Starting and running",
        tables="\n\n".join(piece for piece in pieces if piece),
        settings=run.settings,
        data={"micros": run.results.micros, "unavailable": run.results.unavailable},
        chart_name="running.svg",
        chart=chart.svg(figures.lines(run.results)),
    )


def memory_part(run: Run) -> Part:
    return Part(
        title="Memory",
        tables="\n\n".join(piece for piece in (memory_table(run), notes(run.results.notes)) if piece),
        settings={},
        data={"held": run.results.held, "notes": run.results.notes},
    )


def unit_sentence(results: Results) -> str:
    unit = figures.unit_milliseconds(results)
    if unit is None:
        return ""
    doubt = "" if figures.is_steady(results) else " It scattered by more than 30 %: measure again."
    return f"One spawn took {unit:.2f} ms.{doubt}"


def times_table(run: Run, rows_shown: Sequence[Row] = ROWS) -> str:
    lines = figures.lines(run.results, rows_shown)
    if not lines:
        return ""
    rows = [["work", "x spawn", "ms", "p99 ms", "must", "aim"]]
    for line in lines:
        limits = [limit(line.row.must), limit(line.row.aim)]
        if line.ratio is None:
            rows.append([line.row.title, "–", "–", "–", *limits])
            continue
        times = [digits(line.milliseconds), digits(line.p99_milliseconds)]
        rows.append([line.row.title, marked(digits(line.ratio), line.is_over), *times, *limits])
    return aligned(rows)


def contests_table(run: Run) -> str:
    scores = figures.scores(run.results)
    if not scores:
        return ""
    rows = [["docker", "times faster", "must", "aim"]]
    for score in scores:
        contest = score.contest
        factor = marked(digits(score.factor), score.is_under)
        rows.append([contest.title, factor, limit(contest.must), limit(contest.aim)])
    return aligned(rows)


def factors_table(run: Run, contests: Sequence[Contest], heads: Sequence[str]) -> str:
    """With both times: how much faster says little without how long."""
    scores = figures.scores(run.results, contests)
    if not scores:
        return ""
    rows = [[*heads, "times faster", "must"]]
    for score in scores:
        contest, micros = score.contest, run.results.micros
        both = [statistics.median(figures.pooled(micros[series])) / 1000 for series in (contest.peer, contest.ours)]
        factor = marked(digits(score.factor), score.is_under)
        title = contest.title.format(**run.counts.named())
        rows.append([title, *map(digits, both), factor, limit(contest.must)])
    return aligned(rows)


def crowds_table(run: Run) -> str:
    crowds = figures.crowds(run.results)
    if not crowds:
        return ""
    rows = [["created, used and destroyed at once", "ms in all", "ms for each"]]
    rows += [[str(crowd.size), digits(crowd.milliseconds), digits(crowd.each_milliseconds)] for crowd in crowds]
    return aligned(rows)


def outputs_table(run: Run) -> str:
    all_rates = figures.rates(run.results)
    if not all_rates:
        return ""
    rows = [["output, MB/s", *PRINTERS, "must", "aim"]]
    for rates in all_rates:
        output = rates.output
        cells = [rate_cell(rates.rates.get(name), output.must if name != "host" else None) for name in PRINTERS]
        rows.append([output.title, *cells, limit(output.must), limit(output.aim)])
    return aligned(rows)


def rate_cell(rate: Optional[float], must: Optional[float]) -> str:
    if rate is None:
        return "–"
    return marked(f"{rate:.0f}", must is not None and rate < must)


def memory_table(run: Run, holdings: Sequence[Holding] = HOLDINGS) -> str:
    all_held = figures.held(run.results, holdings)
    if not all_held:
        return ""
    numbers = run.counts.named()
    rows = [["memory", "measured", "unit", "must", "aim"]]
    for held in all_held:
        holding = held.holding
        value = f"{held.value:.0f}" if not holding.unit else f"{held.value:.2f}"
        limits = [limit(holding.must), limit(holding.aim)]
        rows.append([holding.title.format(**numbers), marked(value, held.is_bad), holding.unit, *limits])
    return aligned(rows)


def limit(value: Optional[float]) -> str:
    return "–" if value is None else f"{round(value, 2):g}"


def marked(text: str, is_bad: bool) -> str:
    return f"{text} ✗" if is_bad else text


def notes(sentences: List[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)
