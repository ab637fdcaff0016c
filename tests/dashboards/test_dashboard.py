"""The dashboard is what its generator makes, and stands on the metrics that PEs promise."""

import json
import re
from pathlib import Path

from dashboards.generate import FILE, dashboard, queries, render

CONTRACTS = Path(__file__).parents[2] / "docs" / "contracts.md"
VALUES = {"namespace": "default", "job": "flights", "region": ".+", "__rate_interval": "1m"}


def test_file_is_generated() -> None:
    """`make generate` was run."""
    assert FILE.read_text() == render()


def test_every_variable_is_known() -> None:
    """After replacement nothing of Grafana's is left in a query."""
    found = queries(dashboard(), VALUES)
    assert len(found) > 15
    assert not [query for query in found if "$" in query]


def test_metrics_are_promised() -> None:
    """Each metric and its labels stand in the contract."""
    text = CONTRACTS.read_text()
    names = re.findall(r"streamgraft_\w+", " ".join(queries(dashboard(), VALUES)))
    assert names
    for name in names:
        assert re.sub(r"_(bucket|sum|count)$", "", name) in text or name in text


def test_panels_do_not_overlap() -> None:
    """The layout has every cell once, and ids are unique."""
    panels = json.loads(FILE.read_text())["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert len({panel["id"] for panel in panels}) == len(panels)
