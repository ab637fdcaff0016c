"""Lays a dashboard out, in Grafana's JSON model."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dashboards.model import Dashboard, Panel, Variable

TAG = "streamgraft"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_LABEL = re.compile(r"\{\{(\w+)\}\}")
_COLUMNS = 24
_WIDTH, _HEIGHT = 12, 8
_NUMBER_WIDTH, _NUMBER_HEIGHT = 6, 4
_TABLE_HEIGHT = 8
_CALM, _WARN, _ALARM = "green", "orange", "red"
_VARIABLE_OF = {"streams_job": "job"}
"""Variables that are not called as the label whose values they have."""


def json_model(dashboard: Dashboard) -> dict[str, Any]:
    """Return what Grafana reads."""
    panels = enumerate(_rows(dashboard), 1)
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": [TAG],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "timezone": "browser",
        "links": [_LINK],
        "templating": {"list": [_DATASOURCE, *map(_variable, dashboard.variables)]},
        "panels": [{"id": number, **panel} for number, panel in panels],
    }


def _rows(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    top = 0
    for title, panels in dashboard.sections.items():
        place = {"h": 1, "w": _COLUMNS, "x": 0, "y": top}
        yield {"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": place}
        top += 1
        numbers = [panel for panel in panels if panel.number]
        tables = [panel for panel in panels if panel.table]
        lines = [panel for panel in panels if not (panel.number or panel.table)]
        for placed, (width, height) in (
            (numbers, (_NUMBER_WIDTH, _NUMBER_HEIGHT)),
            (tables, (_COLUMNS, _TABLE_HEIGHT)),
            (lines, (_WIDTH, _HEIGHT)),
        ):
            yield from _grid(dashboard, placed, top, width, height)
            top += height * -(-len(placed) * width // _COLUMNS)


def _grid(
    dashboard: Dashboard, panels: Sequence[Panel], top: int, width: int, height: int
) -> Iterator[dict[str, Any]]:
    columns = _COLUMNS // width
    for index, panel in enumerate(panels):
        x, y = index % columns * width, top + index // columns * height
        yield _panel(panel, dashboard.variables, {"h": height, "w": width, "x": x, "y": y})


def _panel(panel: Panel, variables: Sequence[Variable], place: Mapping[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "thresholds": _thresholds(panel)}
    options: dict[str, Any] = {}
    if panel.number:
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}}
    elif not panel.table:
        options = {"tooltip": {"mode": "multi"}, "legend": {"displayMode": "list"}}
        shown = "off" if panel.warn is panel.alarm is None else "line"
        defaults["custom"] = {"axisSoftMin": 0, "thresholdsStyle": {"mode": shown}}
    if panel.leads_to:
        url = _address(panel, variables)
        defaults["links"] = [{"title": "Look closer", "url": url, "targetBlank": False}]
    found = {
        "type": "stat" if panel.number else "table" if panel.table else "timeseries",
        "title": panel.title,
        "description": panel.description,
        "gridPos": dict(place),
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {
                "refId": _id(number),
                "datasource": _SOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
            }
            for number, query in enumerate(panel.queries)
        ],
    }
    return _as_table(panel, found) if panel.table else found


def _id(number: int) -> str:
    return chr(ord("A") + number)


def _as_table(panel: Panel, found: dict[str, Any]) -> dict[str, Any]:
    """Return a panel whose queries are asked for now, and become one row where labels agree."""
    values = {f"Value #{_id(number)}": each.legend for number, each in enumerate(panel.queries)}
    hidden = ["Time", *(name for name, title in values.items() if not title)]
    titles = {name: title for name, title in values.items() if title}
    columns = {"excludeByName": dict.fromkeys(hidden, True), "renameByName": titles}
    texts = {
        text: {"color": color, "index": number}
        for number, (text, color) in enumerate(panel.states.items())
    }
    colored = {
        "matcher": {"id": "byName", "options": panel.colored},
        "properties": [
            {"id": "mappings", "value": [{"type": "value", "options": texts}]},
            {"id": "custom.cellOptions", "value": {"type": "color-text"}},
        ],
    }
    config = {**found["fieldConfig"], "overrides": [colored]}
    targets = [{**each, "format": "table", "instant": True} for each in found["targets"]]
    merged = [{"id": "merge", "options": {}}, {"id": "organize", "options": columns}]
    return {**found, "fieldConfig": config, "targets": targets, "transformations": merged}


def _thresholds(panel: Panel) -> dict[str, Any]:
    steps: list[tuple[float | None, str]]
    if panel.falls:
        healthy = panel.alarm if panel.warn is None else panel.warn
        steps = [(None, _ALARM), (healthy, _CALM)]
        if panel.warn is not None and panel.alarm is not None:
            steps.insert(1, (panel.alarm, _WARN))
    else:
        limits = ((panel.least, _CALM), (panel.warn, _WARN), (panel.alarm, _ALARM))
        steps = [(None, _CALM if panel.least is None else _ALARM)]
        steps += [(value, color) for value, color in limits if value is not None]
    shown = [{"value": value, "color": color} for value, color in steps]
    return {"mode": "absolute", "steps": shown}


def _address(panel: Panel, variables: Iterable[Variable]) -> str:
    """Return where a line leads: its labels choose there, what it lacks stays as chosen here."""
    labels = _LABEL.findall(panel.queries[0].legend)
    chosen = {_VARIABLE_OF.get(label, label): f"${{__field.labels.{label}}}" for label in labels}
    parts = [
        f"var-{item.name}={chosen[item.name]}"
        if item.name in chosen
        else f"${{{item.name}:queryparam}}"
        for item in variables
    ]
    return f"/d/{panel.leads_to}?{'&'.join([*parts, '${__url_time_range}'])}"


_LINK = {
    "type": "dashboards",
    "title": "Streamgraft",
    "tags": [TAG],
    "asDropdown": True,
    "includeVars": True,
    "keepTime": True,
    "targetBlank": False,
}
_DATASOURCE = {
    "name": "datasource",
    "label": "Data source",
    "type": "datasource",
    "query": "prometheus",
}


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "name": variable.name,
        "label": variable.name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": variable.query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"text": "All", "value": "$__all"},
    }
