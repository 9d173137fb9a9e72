"""The report as a bar chart: SVG written by hand, logarithmic scale."""

from __future__ import annotations

import math
from html import escape
from typing import List, Sequence, Tuple

from .figures import Line
from .variants import ALL, NATIVE, RINGFENCE

WIDTH = 1080
LEFT = 230
RIGHT = 60
TOP = 118
BAR = 9
GAP = 12
LOWEST = 0.5
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

# Peers in greys and warm tones, ringfence in blues and greens; told apart without colour by order.
COLOURS = {
    "overlayfs": "#9e9e9e",
    "fuse-overlayfs": "#e0862f",
    "bindfs": "#c0504d",
    "development": "#1f5fa8",
    "agent-safe": "#4a9bd9",
    "full-access": "#3c8d5a",
    "100-rules": "#8fc49f",
}


class Scale:
    """Ratios to pixels."""

    def __init__(
        self, highest: float, lowest: float = LOWEST, left: float = LEFT, ticks: Sequence[float] = TICKS
    ) -> None:
        self.highest = min((tick for tick in ticks if tick >= highest), default=ticks[-1])
        self._lowest, self._left = lowest, left
        self._per_unit = (WIDTH - left - RIGHT) / math.log(self.highest / lowest)

    def x(self, ratio: float) -> float:
        bounded = min(max(ratio, self._lowest), self.highest)
        return self._left + math.log(bounded / self._lowest) * self._per_unit


def svg(lines: List[Line], variants: List[str]) -> str:
    """One group of bars per row, one bar per variant, ticks for "must" and "aim"."""
    shown = [name for name in ALL if name in variants and name != NATIVE]
    values = [line.values[name] for line in lines for name in shown if name in line.values]
    scale = Scale(max(values + [line.row.must for line in lines], default=1))
    group = len(shown) * BAR + GAP
    height = TOP + group * len(lines) + 30
    body = [heading(), legend(shown), axis(scale, height)]
    body += [draw_group(line, shown, scale, TOP + index * group) for index, line in enumerate(lines)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def heading() -> str:
    return (
        text(20, 28, "Time / time on native ext4, logarithmic scale, further left is better", size=17)
        + rectangle(20, 64, 3, 12, "#000000")
        + text(30, 74, "must")
        + rectangle(80, 64, 1.2, 12, "#000000")
        + text(88, 74, "aim")
    )


def legend(shown: List[str]) -> str:
    pieces = []
    x = 20.0
    for name in shown:
        label = f"ringfence {name}" if name in RINGFENCE else name
        pieces.append(rectangle(x, 42, 12, 12, COLOURS[name]) + text(x + 17, 52, label))
        x += 34 + 6.6 * len(label)
    return "".join(pieces)


def axis(scale: Scale, height: int) -> str:
    pieces = []
    for tick in TICKS:
        if tick > scale.highest:
            break
        colour = "#444444" if tick == 1 else "#dddddd"
        pieces.append(rectangle(scale.x(tick) - 0.5, TOP - 12, 1, height - TOP - 6, colour))
        pieces.append(text(scale.x(tick), TOP - 18, f"{tick:g}", anchor="middle"))
        pieces.append(text(scale.x(tick), height - 6, f"{tick:g}", anchor="middle"))
    return "\n".join(pieces)


def draw_group(line: Line, shown: List[str], scale: Scale, top: float) -> str:
    """All bars and limits first, then the labels, which must stay readable on top of them."""
    tall = len(shown) * BAR
    bars, labels = [], [text(LEFT - 14, top + tall / 2 + 4, line.row.title, anchor="end")]
    for index, name in enumerate(shown):
        if name in line.values:
            bar, label = draw_bar(line.values[name], scale, top + index * BAR, COLOURS[name])
            bars.append(bar)
            labels.append(label)
    for limit, width in ((line.row.must, 3), (line.row.aim, 1.2)):
        bars.append(rectangle(scale.x(limit) - width / 2, top - 4, width, tall + 8, "#000000"))
    return "\n".join(bars + labels)


def draw_bar(ratio: float, scale: Scale, y: float, colour: str) -> Tuple[str, str]:
    """A bar and its label. It starts at 1, native: to the right is slower, to the left is faster."""
    start, end = sorted((scale.x(1), scale.x(ratio)))
    bar = rectangle(start, y + 0.5, max(end - start, 1.5), BAR - 1, colour)
    if ratio < 1:
        return bar, text(start - 5, y + BAR - 1, digits(ratio), anchor="end", size=9)
    return bar, text(end + 5, y + BAR - 1, digits(ratio), size=9)


def digits(value: float) -> str:
    """Three digits say all that the noise leaves."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def rectangle(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"/>'


def text(x: float, y: float, content: str, *, anchor: str = "start", size: int = 12) -> str:
    """Text with a white edge, so that it can be read across a line."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#222222" '
        f'stroke="#ffffff" stroke-width="3" paint-order="stroke">{escape(content)}</text>'
    )
