"""One report of several parts: Markdown, JSON and charts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Sequence


@dataclass(frozen=True)
class Part:
    """What one group of benchmarks has to say."""

    title: str
    tables: str
    settings: Dict[str, str]
    data: Dict[str, object]
    chart_name: Optional[str] = None
    chart: str = ""


def write(parts: Sequence[Part], facts: Dict[str, str], out: Path) -> None:
    """Write `report.md`, `results.json` and a chart for each part that has one into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "report.md").write_text(markdown(parts, facts))
    content = {"machine": facts, "parts": {part.title: {"run": part.settings, **part.data} for part in parts}}
    (out / "results.json").write_text(json.dumps(content, indent=2) + "\n")
    for part in parts:
        if part.chart_name is not None:
            (out / part.chart_name).write_text(part.chart)


def markdown(parts: Sequence[Part], facts: Dict[str, str]) -> str:
    pieces = ["# Benchmarks"]
    for part in parts:
        pieces += [f"## {part.title}", part.tables]
        if part.chart_name is not None:
            pieces.append(f"![chart]({part.chart_name})")
        if part.settings:
            pieces.append(listed(part.settings))
    pieces += ["## Machine", listed(facts)]
    return "\n\n".join(pieces) + "\n"


def listed(values: Dict[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in values.items())


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table that can be read as plain text too."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    shown: List[Sequence[str]] = [rows[0], rule, *rows[1:]]
    return "\n".join(
        "| " + " | ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + " |" for row in shown
    )
