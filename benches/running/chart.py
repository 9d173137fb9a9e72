"""The times as a bar chart, in the manner of the filesystem's."""

from __future__ import annotations

from typing import List

from fs.chart import WIDTH, Scale, digits, rectangle, text

from .figures import Line

LEFT = 400
TOP = 86
BAR = 14
GAP = 8
LOWEST = 0.05
TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
OURS, OTHERS = "#1f5fa8", "#9e9e9e"


def svg(lines: List[Line]) -> str:
    """One bar per row, from one spawn to the row's time; ticks for "must" and "aim"."""
    shown = [line for line in lines if line.ratio is not None]
    scale = Scale(max((line.ratio for line in shown), default=1), lowest=LOWEST, left=LEFT, ticks=TICKS)
    height = TOP + (BAR + GAP) * len(shown) + 30
    body = [heading(), axis(scale, height)]
    body += [draw(line, scale, TOP + index * (BAR + GAP)) for index, line in enumerate(shown)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def heading() -> str:
    return (
        text(20, 28, "Time / one spawn of true on the host, logarithmic scale, further left is better", size=17)
        + rectangle(20, 42, 12, 12, OURS)
        + text(37, 52, "ringfence")
        + rectangle(110, 42, 12, 12, OTHERS)
        + text(127, 52, "host and peers")
        + rectangle(230, 42, 3, 12, "#000000")
        + text(240, 52, "must")
        + rectangle(290, 42, 1.2, 12, "#000000")
        + text(298, 52, "aim")
    )


def axis(scale: Scale, height: int) -> str:
    pieces = []
    for tick in TICKS:
        if tick > scale.highest:
            break
        colour = "#444444" if tick == 1 else "#dddddd"
        pieces.append(rectangle(scale.x(tick) - 0.5, TOP - 10, 1, height - TOP - 8, colour))
        pieces.append(text(scale.x(tick), height - 6, f"{tick:g}", anchor="middle"))
    return "\n".join(pieces)


def draw(line: Line, scale: Scale, top: float) -> str:
    is_peer = line.row.title.startswith(("peer:", "host:"))
    start, end = sorted((scale.x(1), scale.x(line.ratio)))
    pieces = [rectangle(start, top, max(end - start, 1.5), BAR, OTHERS if is_peer else OURS)]
    for limit, width in ((line.row.must, 3), (line.row.aim, 1.2)):
        if limit is not None:
            pieces.append(rectangle(scale.x(limit) - width / 2, top - 3, width, BAR + 6, "#000000"))
    label = line.row.title.replace("`", "")
    pieces.append(text(LEFT - 14, top + BAR - 3, label, anchor="end"))
    if line.ratio < 1:
        pieces.append(text(start - 5, top + BAR - 3, digits(line.ratio), anchor="end", size=11))
    else:
        pieces.append(text(end + 5, top + BAR - 3, digits(line.ratio), size=11))
    return "\n".join(pieces)
