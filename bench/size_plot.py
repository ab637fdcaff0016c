"""Plots over sizes, numbers or times: both axes logarithmic, as SVG pictures."""

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 560, 260, 80, 44, 46

Points = Sequence[tuple[float, float]]


def size_text(size: float) -> str:
    """Return a number of bytes in short form."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024 or unit == "MiB":
            return f"{size:g} {unit}"
        size /= 1024
    raise AssertionError


def size_plot(
    title: str,
    unit: str,
    lines: Mapping[str, Points],
    over: str = "size of a record",
    text: Callable[[float], str] = size_text,
) -> str:
    """Return a picture of lines; of each point both are above 0.

    `unit`: of y; `over`: what x is, by default in bytes; `text`: how a value of x is written.
    """
    points = [point for line in lines.values() for point in line]
    sizes = sorted({x for x, _ in points})
    low = math.floor(math.log10(min(y for _, y in points)))
    high = max(math.ceil(math.log10(max(y for _, y in points))), low + 1)
    span = math.log(sizes[-1] / sizes[0]) or 1.0

    def x_of(size: float) -> float:
        return _LEFT + _WIDTH * math.log(size / sizes[0]) / span

    def y_of(value: float) -> float:
        return _TOP + _HEIGHT * (high - math.log10(value)) / (high - low)

    parts = [
        f'<text x="{_LEFT}" y="18" font-weight="bold">{escape(title)}</text>',
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" fill="#f7f7f7"/>',
    ]
    for power in range(low, high + 1):
        y = y_of(10**power)
        parts += [
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_LEFT + _WIDTH}" y2="{y:.1f}" stroke="#ddd"/>',
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:,g}</text>',
        ]
    parts += [
        f'<text x="{x_of(size):.1f}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">'
        f"{escape(text(size))}</text>"
        for size in sizes
    ]
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        drawn = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line)
        parts += [
            f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="1.6"/>',
            *(
                f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3" fill="{colour}"/>'
                for x, y in line
            ),
            f'<text x="{_LEFT + number * 170}" y="36" fill="{colour}">{escape(name)}</text>',
        ]
    total = _LEFT + _WIDTH + 40, _TOP + _HEIGHT + _BOTTOM
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total[0]} {total[1]}"'
            ' font-family="sans-serif" font-size="12">',
            f'<rect width="{total[0]}" height="{total[1]}" fill="white"/>',
            *parts,
            f'<text x="{_LEFT - 6}" y="{total[1] - 8}">{escape(f"{unit}, by {over}")}</text>',
            "</svg>\n",
        ]
    )
