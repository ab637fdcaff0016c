"""How a benchmark tells its figures: on the terminal and in `bench/results/NAME.json`."""

import json
import math
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


def write(name: str, settings: Mapping[str, object], figures: Mapping[str, float]) -> Path:
    """Print the figures, write them to `bench/results/<name>.json` and return its path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    document = {"settings": dict(settings), "figures": dict(figures)}
    path.write_text(json.dumps(document, indent=2) + "\n")
    show(name, figures)
    return path


def write_cases(
    name: str,
    settings: Mapping[str, object],
    found: Mapping[str, float],
    ran: Collection[str],
    case_of: Callable[[str], str],
    day: str,
) -> dict[str, float]:
    """Write the figures of the cases that ran beside those of others from before; return all.

    `case_of`: tells in which case a figure is measured. The setting `run_on` has the day of each.
    """
    last = read(name)
    before: dict[str, float] = last.get("figures", {})
    every = {figure: value for figure, value in before.items() if case_of(figure) not in ran}
    every |= found
    run_on = last.get("settings", {}).get("run_on", {}) | dict.fromkeys(ran, day)
    write(name, {**settings, "run_on": run_on}, every)
    return every


def today() -> str:
    """Return the day, as `run_on` has it."""
    return datetime.now(UTC).date().isoformat()


def show(name: str, figures: Mapping[str, float]) -> None:
    """Print the figures."""
    table = Table(title=name, title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for figure, value in figures.items():
        table.add_row(figure, f"{value:g}")
    Console().print(table)


def note(name: str, figures: Mapping[str, float]) -> None:
    """Add figures to those that are written under a name."""
    RESULTS.mkdir(exist_ok=True)
    before = read(name)
    document = {**before, "figures": {**before.get("figures", {}), **figures}}
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")


def read(name: str) -> dict[str, Any]:
    """Return the settings and figures that were written last; {} if there are none."""
    path = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return found


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` (0 to 1) of `values` lie: the nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the straight line that fits the points best (least squares)."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def determination(points: list[tuple[float, float]]) -> float:
    """Return R²: the share of the values' variance that their straight line explains."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    rise = slope(points)
    left = sum((y - mean_y - rise * (x - mean_x)) ** 2 for x, y in points)
    whole = sum((y - mean_y) ** 2 for _, y in points)
    return 1 - left / whole if whole else 1.0
