"""The dashboard is what its generator makes, and stands on the metrics that PEs promise."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.promtool.check import passes

from dashboards.generate import FILE, dashboard, queries, render
from dashboards.panels import REGIONS

CONTRACTS = Path(__file__).parents[2] / "docs" / "develop" / "contracts.md"
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


def shown(title: str, *expected: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a panel is to show after two minutes: one dict per query, region to value."""
    (panel,) = (each for each in REGIONS if each.title == title)
    (described,) = (each for each in dashboard()["panels"] if each["title"] == title)
    texts = queries({"panels": [described]}, VALUES)
    assert len(panel.queries) == len(texts) == len(expected)
    return [
        {
            "expr": text,
            "eval_time": "2m",
            "exp_samples": [
                {"labels": f'{{region="{region}"}}', "value": value}
                for region, value in values.items()
            ],
        }
        for text, values in zip(texts, expected, strict=True)
    ]


@pytest.mark.integration
def test_a_region_that_sleeps_is_shown_as_what_it_is(tmp_path: Path) -> None:
    """No channels and no utilization; what waits in Kafka, as the operator tells it."""
    common = 'namespace="default", streams_job="flights"'
    asleep = f'{common}, region="asleep", topic="in", partition="0", instance="operator"'
    awake = f'{common}, region="awake", pe="2", pod="flights-2", channel="0"'
    owned = f'{awake}, topic="in", partition="0"'
    series = {
        f"streamgraft_pe_lag_records{{{asleep}}}": "7x20",
        f"streamgraft_pe_input_end_offset{{{asleep}}}": "0+60x20",
        f"streamgraft_pe_committed_offset{{{asleep}}}": "5x20",
        f"streamgraft_pe_lag_records{{{owned}}}": "3x20",
        f"streamgraft_pe_input_end_offset{{{owned}}}": "0+30x20",
        f"streamgraft_pe_committed_offset{{{owned}}}": "0+30x20",
        f"streamgraft_pe_shards{{{awake}}}": "4x20",
        f"streamgraft_pe_slots{{{awake}}}": "1x20",
        f"streamgraft_pe_handover_seconds_sum{{{awake}}}": "0x20",
        f"streamgraft_pe_handover_seconds_count{{{awake}}}": "0x20",
    }
    cases = [
        *shown("Channels", *2 * [{"awake": 1, "asleep": 0}]),
        *shown(
            "Records arriving and processed", {"asleep": 6, "awake": 3}, {"asleep": 0, "awake": 3}
        ),
        *shown("Lag", {"awake": 3, "asleep": 7}),
        *shown("Hand-over of shards, mean", {}),
    ]
    test = {
        "interval": "10s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": cases,
    }
    file = tmp_path / "cases.yaml"
    file.write_text(json.dumps({"rule_files": [], "evaluation_interval": "15s", "tests": [test]}))
    passes(file)
