"""Makes the Grafana dashboard from the panels: `python -m dashboards.generate`, `make generate`."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dashboards.panels import JOBS, REGIONS, Panel

FILE = Path(__file__).with_name("streamgraft.json")

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_KNOWN = '__name__=~"streamgraft_pe_shards|streamgraft_pe_lag_records"'
"""PEs have shards; of a region that sleeps the operator tells the lag."""
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 2
_VARIABLE = re.compile(r"\$(__rate_interval|[a-z]+)\b")


def dashboard() -> dict[str, Any]:
    """Return the dashboard in Grafana's JSON model."""
    rows = [*_section("Parallel regions", REGIONS, 0)]
    rows += _section("Jobs", JOBS, 1 + _HEIGHT * -(-len(REGIONS) // _COLUMNS))
    return {
        "uid": "streamgraft",
        "title": "Streamgraft: regions and jobs",
        "tags": ["streamgraft"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables()},
        "panels": [{"id": number, **panel} for number, panel in enumerate(rows, 1)],
    }


def render() -> str:
    """Return the file's text."""
    return json.dumps(dashboard(), indent=2) + "\n"


def queries(document: Mapping[str, Any], values: Mapping[str, str]) -> list[str]:
    """Return every query of a dashboard, its variables replaced by `values`."""

    def replaced(text: str) -> str:
        return _VARIABLE.sub(lambda found: values[found[1]], text)

    return [
        replaced(target["expr"])
        for panel in document["panels"]
        for target in panel.get("targets", [])
    ]


def _section(title: str, panels: Sequence[Panel], top: int) -> Iterable[dict[str, Any]]:
    place = {"h": 1, "w": _WIDTH * _COLUMNS, "x": 0, "y": top}
    yield {"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": place}
    for index, panel in enumerate(panels):
        x, y = index % _COLUMNS * _WIDTH, top + 1 + index // _COLUMNS * _HEIGHT
        yield _panel(panel, {"h": _HEIGHT, "w": _WIDTH, "x": x, "y": y})


def _panel(panel: Panel, place: Mapping[str, int]) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "gridPos": dict(place),
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"tooltip": {"mode": "multi"}, "legend": {"displayMode": "list"}},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": _SOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
            }
            for number, query in enumerate(panel.queries)
        ],
    }


def _variables() -> list[dict[str, Any]]:
    source = {"name": "datasource", "label": "Data source", "type": "datasource"}
    return [
        {**source, "query": "prometheus"},
        _variable("namespace", f"label_values({{{_KNOWN}}}, namespace)"),
        _variable("job", f'label_values({{{_KNOWN}, namespace="$namespace"}}, streams_job)'),
        {
            **_variable(
                "region",
                f'label_values({{{_KNOWN}, namespace="$namespace", streams_job="$job"}}, region)',
            ),
            "includeAll": True,
            "allValue": ".+",
            "current": {"text": "All", "value": "$__all"},
        },
    ]


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": query,
        "refresh": 2,
        "sort": 1,
    }


def main() -> None:
    """Write the file."""
    FILE.write_text(render())


if __name__ == "__main__":
    main()
