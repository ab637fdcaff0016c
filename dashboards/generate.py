"""Writes the Grafana dashboards: `python -m dashboards.generate`, `make generate`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from dashboards.boards import DASHBOARDS
from dashboards.layout import json_model
from dashboards.model import Dashboard

FOLDER = Path(__file__).with_name("grafana")

_VARIABLE = re.compile(r"\$(__rate_interval|[a-z]+)\b")


def render(dashboard: Dashboard) -> str:
    """Return a file's text."""
    return json.dumps(json_model(dashboard), indent=2) + "\n"


def file_of(dashboard: Dashboard) -> Path:
    """Return a dashboard's file."""
    return FOLDER / f"{dashboard.uid}.json"


def queries(dashboard: Dashboard, values: Mapping[str, str], *, quiet: bool = True) -> list[str]:
    """Return the queries of a dashboard, its variables replaced by `values`.

    Without `quiet` only those that have something to show wherever a job runs.
    """
    return [
        _VARIABLE.sub(lambda found: values[found[1]], query.expression)
        for panel in dashboard.panels
        for query in panel.queries
        if quiet or not query.quiet
    ]


def answered(values: Mapping[str, str]) -> list[str]:
    """Return the queries of all dashboards that have data wherever a job runs: anything in five
    minutes, since a signal has no value amid a width change."""
    asked = [query for board in DASHBOARDS for query in queries(board, values, quiet=False)]
    return [f"last_over_time(({query})[5m:5s])" for query in asked]


def main() -> None:
    """Write the files, and remove those of dashboards that are no more."""
    FOLDER.mkdir(exist_ok=True)
    for file in FOLDER.glob("*.json"):
        file.unlink()
    for dashboard in DASHBOARDS:
        file_of(dashboard).write_text(render(dashboard))


if __name__ == "__main__":
    main()
