"""Plots over time: rows of characters for the terminal, and SVG pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT, _LEFT, _GAP = 900, 130, 70, 34
_MARKS = 12
"""Marks of the time axis, at most."""
_STEPS = ((10, 1, "s"), (30, 1, "s"), (60, 1, "s"), (300, 1, "s"), (600, 60, "min"))
_LONG_STEPS = ((1800, 60, "min"), (3600, 3600, "h"), (21_600, 3600, "h"), (86_400, 86_400, "d"))


@dataclass(frozen=True)
class Line:
    """A line of a plot: a value per sample, None where it is unknown."""

    name: str
    colour: str
    values: Sequence[float | None]
    steps: bool = False
    """Drawn as steps: a width holds until it changes."""


@dataclass(frozen=True)
class Panel:
    """One plot; all panels share the time axis."""

    title: str
    lines: Sequence[Line]


def bars(values: Sequence[float | None], columns: int) -> str:
    """Return a row of bars, each the largest of its share of the values; unknown is a space."""
    largest = max((value for value in values if value is not None), default=0.0)
    row = []
    for column in range(min(columns, len(values))):
        count = min(columns, len(values))
        part = values[column * len(values) // count : (column + 1) * len(values) // count]
        value = max((item for item in part if item is not None), default=None)
        height = 0 if value is None or largest <= 0 else value / largest * (len(_BARS) - 1)
        row.append(_BARS[round(height)])
    return "".join(row)


def text_plot(panels: Sequence[Panel], columns: int = 76) -> str:
    """Return the panels as rows of bars, with the largest value of each."""
    rows = []
    for panel in panels:
        for line in panel.lines:
            largest = max((value for value in line.values if value is not None), default=0.0)
            title = line.name if len(panel.lines) > 1 else panel.title
            rows.append(f"{title:>18} {bars(line.values, columns)} max {_text(largest)}")
    return "\n".join(rows)


def _text(value: float) -> str:
    """Return a value as people read it: all digits of large ones, two of small ones."""
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def svg_plot(panels: Sequence[Panel], seconds: Sequence[float]) -> str:
    """Return the panels as an SVG picture, one below the other; `seconds`: time of each sample."""
    height = len(panels) * (_HEIGHT + _GAP) + _GAP
    body = [part for index, panel in enumerate(panels) for part in _panel(panel, index, seconds)]
    total = _LEFT + _WIDTH + 20
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}"'
            ' font-family="sans-serif" font-size="12">',
            f'<rect width="{total}" height="{height}" fill="white"/>',
            *body,
            *_axis(seconds, height),
            "</svg>\n",
        ]
    )


def _panel(panel: Panel, index: int, seconds: Sequence[float]) -> list[str]:
    top = _GAP + index * (_HEIGHT + _GAP)
    known = [value for line in panel.lines for value in line.values if value is not None]
    largest = max(known, default=0.0) or 1.0
    parts = [
        f'<text x="{_LEFT}" y="{top - 8}" font-weight="bold">{escape(panel.title)}</text>',
        f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" fill="#f7f7f7"/>',
        f'<text x="{_LEFT - 6}" y="{top + 10}" text-anchor="end">{_text(largest)}</text>',
        f'<text x="{_LEFT - 6}" y="{top + _HEIGHT}" text-anchor="end">0</text>',
    ]
    for number, line in enumerate(panel.lines):
        points = _points(line, seconds, top, largest)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{line.colour}" stroke-width="1.6"/>'
        )
        if len(panel.lines) > 1:
            place = _LEFT + 120 + number * 160
            parts.append(
                f'<text x="{place}" y="{top - 8}" fill="{line.colour}">{escape(line.name)}</text>'
            )
    return parts


def _points(line: Line, seconds: Sequence[float], top: float, largest: float) -> str:
    points: list[tuple[float, float]] = []
    for second, value in zip(seconds, line.values, strict=True):
        if value is None:
            continue
        x = _LEFT + _WIDTH * second / (seconds[-1] or 1.0)
        y = top + _HEIGHT * (1 - value / largest)
        if line.steps and points:
            points.append((x, points[-1][1]))
        points.append((x, y))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _axis(seconds: Sequence[float], height: int) -> list[str]:
    last = seconds[-1] if seconds else 0.0
    steps = [*_STEPS, *_LONG_STEPS]
    step, unit, name = next((item for item in steps if last / item[0] <= _MARKS), steps[-1])
    return [
        f'<text x="{_LEFT + _WIDTH * mark / last:.1f}" y="{height - 14}"'
        f' text-anchor="middle">{mark // unit} {name}</text>'
        for mark in range(0, int(last) + 1, step)
        if last
    ]
