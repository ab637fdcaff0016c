"""What the queries of the signals make of samples, by Prometheus' own tests of queries."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.promtool.check import passes

from streamgraft_metrics_adapter.prometheus.queries import INPUT_LABEL, QUERIES, Input, queries
from streamgraft_metrics_adapter.rules.configuration import BUILT_IN, read

REGION = 'namespace="ns",streams_job="j",region="r",stage="0"'
WINDOW, MAX_AGE = 60.0, 45.0
RATES = (10, 30, 80)
"""Records/s of three partitions."""
AT = "5m"


@pytest.mark.parametrize(
    ("window", "refresh", "step"),
    [
        (60, 2, "5000ms"),
        (60, 8, "8000ms"),
        (60, 15, "15000ms"),
        (60, 30, "15000ms"),
        (12, 1, "1000ms"),
        (2, 1, "500ms"),
    ],
)
def test_looks_are_as_far_apart_as_refreshes_within_bounds(
    window: float, refresh: float, step: str
) -> None:
    query = queries(window, MAX_AGE, refresh)["lag_change"]
    assert f"[{window * 1000}ms:{step}]" in query


@pytest.mark.integration
@pytest.mark.parametrize(("scrape", "refresh"), [(5, 2.0), (15, 15.0)])
def test_slopes_are_those_of_the_offsets(scrape: int, refresh: float, tmp_path: Path) -> None:
    """Each partition goes to another pod in the middle of the window."""
    series = [
        each
        for partition, rate in enumerate(RATES)
        for metric, first in (("input_end_offset", 1000), ("committed_offset", 900))
        for each in _moving(metric, partition, first, rate, scrape)
    ]
    wanted = {
        Input.INPUT_RATE: sum(RATES),
        Input.PROCESSING_RATE: sum(RATES),
        Input.RESETS: 0,
        Input.LARGEST_RATE: max(RATES),
        Input.MEDIAN_RATE: 30,
    }
    _tried(tmp_path, scrape, series, refresh, wanted)


@pytest.mark.integration
@pytest.mark.parametrize(("scrape", "refresh"), [(5, 2.0), (15, 15.0)])
def test_a_step_back_is_seen(scrape: int, refresh: float, tmp_path: Path) -> None:
    ends = _series("input_end_offset", 0, f"1000x{600 // scrape}", "a")
    back = 270 // scrape
    committed = _series("committed_offset", 0, f"900x{back} 800x{600 // scrape}", "a")
    wanted = {Input.INPUT_RATE: 0, Input.RESETS: 1, Input.LARGEST_RATE: 0, Input.MEDIAN_RATE: 0}
    _tried(tmp_path, scrape, [ends, committed], refresh, wanted)


@pytest.mark.integration
@pytest.mark.parametrize(("gaps", "share"), [(0, 1.0), (5, 0.8), (60, 0.5)])
def test_records_are_told_from_offsets_without_any(gaps: int, share: float, tmp_path: Path) -> None:
    series = [
        {
            "series": f'streamgraft_pe_input_{name}_total{{{REGION},pod="{pod}",shard="{shard}"}}',
            "values": f"0+{step}x120",
        }
        for name, step in (("rows", 20), ("gaps", gaps))
        for pod, shard in (("a", 0), ("a", 1), ("b", 2))
    ]
    _tried(tmp_path, 5, series, 2.0, {Input.RECORD_SHARE: share})


@pytest.mark.integration
def test_batches_are_those_of_a_query_whatever_shards_have_records(tmp_path: Path) -> None:
    """Pods of two and of one batch a second; most of their shards are idle."""
    counts = {("a", 0): "0+10x120", ("a", 1): "0x120", ("b", 2): "0+5x120", ("b", 3): "0x120"}
    series = [
        {
            "series": "streamgraft_pe_batch_duration_seconds_count"
            f'{{{REGION},pod="{pod}",shard="{shard}"}}',
            "values": values,
        }
        for (pod, shard), values in counts.items()
    ]
    wanted = {Input.BATCH_RATE: 1.5}
    _tried(tmp_path, 5, series, 2.0, wanted, "busy")


@pytest.mark.integration
def test_positions_are_as_old_as_their_reading(tmp_path: Path) -> None:
    """A PE that can't ask Kafka is scraped all the same: its samples are fresh, its word is not."""
    labels = f'{REGION},topic="t",partition="{{}}",pod="a"'
    ages = {0: "1x40 0+5x80", 1: "1x120"}  # the reading of partition 0 stands still from 205 s on
    series = [
        {"series": f"streamgraft_pe_{metric}{{{labels.format(partition)}}}", "values": values}
        for partition, age in ages.items()
        for metric, values in (("lag_records", "7x120"), ("position_age_seconds", age))
    ]
    region = REGION.removesuffix(',stage="0"')
    samples = {
        Input.SAMPLE_TIME: (region, 205.0),
        Input.POSITION_AGE: (region, 95.0),
        Input.PARTITIONS: (f'{REGION},topic="t"', 2.0),
        Input.LAG: (f'{REGION},topic="t"', 14.0),
    }
    wanted = [
        {"labels": f'{{{labels},{INPUT_LABEL}="{name.value}"}}', "value": value}
        for name, (labels, value) in samples.items()
    ]
    _evaluated(tmp_path, 5, series, queries(WINDOW, 120.0, 2.0)["lag"], wanted)


@pytest.mark.integration
def test_one_targets_data_breaks_no_built_in_rule(tmp_path: Path) -> None:
    """A pod with two series where there should be one: the others keep their values."""
    good, bad = (f'namespace="ns",pod="{name}",pe="{name}"' for name in ("good", "bad"))
    busy = "streamgraft_pe_busy_seconds_total"
    series = [
        *({"series": f"{busy}{{{labels}}}", "values": "0+2.5x120"} for labels in (good, bad)),
        *(
            {"series": f"streamgraft_pe_slots{{{labels}}}", "values": "1x120"}
            for labels in (good, bad, f'{bad},odd="1"')
        ),
        {"series": f'{busy}{{{bad},odd="1"}}', "values": "0+2.5x120"},
    ]
    for rule in read(BUILT_IN):
        if rule.name != "utilization":
            continue
        label = "pe" if "max by (namespace, pe)" in rule.query else "pod"
        wanted = [
            {"labels": f'{{namespace="ns",{label}="{name}"}}', "value": 0.5}
            for name in ("good", "bad")
        ]
        _evaluated(tmp_path, 5, series, rule.query, wanted)


def _moving(
    metric: str, partition: int, first: int, rate: int, scrape: int
) -> list[dict[str, str]]:
    """Return the series of two pods: the one's until half a minute before AT, then the other's."""
    looks, step = 270 // scrape, rate * scrape
    then = first + step * (looks + 1)
    return [
        _series(metric, partition, f"{first}+{step}x{looks} stale", "a"),
        _series(metric, partition, f"_x{looks + 1} {then}+{step}x{600 // scrape}", "b"),
    ]


def _series(metric: str, partition: int, values: str, pod: str) -> dict[str, str]:
    labels = f'{REGION},topic="t",partition="{partition}",pod="{pod}"'
    return {"series": f"streamgraft_pe_{metric}{{{labels}}}", "values": values}


def _tried(
    folder: Path,
    scrape: int,
    series: list[dict[str, str]],
    refresh: float,
    wanted: Mapping[Input, float],
    query: str = "rates",
) -> None:
    """Fail unless a query brings these inputs, no matter what the others are."""
    found = queries(WINDOW, MAX_AGE, refresh)[query]
    for name in {*QUERIES[query]} - {*wanted}:
        other = f'label_replace(vector(0), "{INPUT_LABEL}", "{name.value}", "", "")'
        found = f"({found}) unless on ({INPUT_LABEL}) {other}"
    samples = [
        {"labels": f'{{{REGION},{INPUT_LABEL}="{name.value}"}}', "value": value}
        for name, value in wanted.items()
    ]
    _evaluated(folder, scrape, series, found, samples)


def _evaluated(
    folder: Path,
    scrape: int,
    series: list[dict[str, str]],
    query: str,
    samples: list[dict[str, Any]],
) -> None:
    """Fail unless a query over series brings these samples."""
    test: dict[str, Any] = {
        "interval": f"{scrape}s",
        "input_series": series,
        "promql_expr_test": [{"expr": query, "eval_time": AT, "exp_samples": samples}],
    }
    cases = folder / "cases.yaml"
    cases.write_text(yaml.safe_dump({"evaluation_interval": f"{scrape}s", "tests": [test]}))
    passes(cases)
