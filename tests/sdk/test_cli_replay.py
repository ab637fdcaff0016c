"""`streamgraft replay`: from a load to what a policy would have done."""

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamgraft.cli._app import app

MODEL = ["--true-rate", "100", "--shards", "12"]


@pytest.fixture
def load(tmp_path: Path) -> Path:
    """Half a day with a peak in its middle, as CSV."""
    rows = (f"{minute * 60},{50 + 500 * math.sin(minute / 720 * math.pi)}" for minute in range(720))
    file = tmp_path / "load.csv"
    file.write_text("\n".join(["seconds,records_per_second", *rows]))
    return file


def test_a_load_is_replayed_and_plotted(load: Path, tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    result = CliRunner().invoke(app, ["replay", str(load), *MODEL, "--svg", str(plot)])
    assert result.exit_code == 0, result.output
    assert "12.0 h of load" in result.output
    assert "objective missed  0.00% of the time" in result.output
    assert "demand above target" in result.output
    assert plot.read_text().startswith("<svg")


def test_programs_can_read_what_came_of_it(load: Path) -> None:
    result = CliRunner().invoke(app, ["replay", str(load), *MODEL, "-o", "json"])
    found = json.loads(result.stdout)
    assert (found["hours"], found["violationRatio"]) == (pytest.approx(12), 0)
    assert {"seconds", "width", "why"} <= set(found["changes"][0])
    assert 0 < found["podHoursRatio"] < 1
    assert found["changePrice"]["reason"].startswith("measured in ")
    assert 30 < found["changePrice"]["channelSeconds"] < 300


def test_a_higher_price_buys_fewer_changes(load: Path) -> None:
    """Asked for in seconds of the largest width, which is at most twelve here."""
    runs = [["--set", "change_cost_seconds=2700"], []]
    outcomes = [
        json.loads(
            CliRunner().invoke(app, ["replay", str(load), *MODEL, *run, "-o", "json"]).stdout
        )
        for run in runs
    ]
    dear, measured = outcomes
    assert len(dear["changes"]) < len(measured["changes"])
    assert dear["changePrice"]["channelSeconds"] % 2700 == 0


def test_a_saved_range_query_is_a_load(tmp_path: Path) -> None:
    values = [[1_700_000_000 + 60 * i, "300"] for i in range(60)]
    file = tmp_path / "range.json"
    file.write_text(json.dumps({"data": {"result": [{"metric": {}, "values": values}]}}))
    result = CliRunner().invoke(app, ["replay", str(file), *MODEL])
    assert result.exit_code == 0, result.output
    assert "1.0 h of load" in result.output


def test_settings_of_the_autoscaling_are_tried(load: Path) -> None:
    result = CliRunner().invoke(app, ["replay", str(load), *MODEL, "--set", "max_width=1"])
    assert "width changes     0" in result.output
    assert "objective missed  0.00%" not in result.output


@pytest.mark.parametrize(
    "seen",
    [
        ["--largest-shard", "0.9"],
        ["--largest-shard", "0.25", "--median-shard", "0"],
        ["--loss-per-channel", "0.2"],
        ["--launch", "600"],
        ["--pause", "300"],
        ["--batch-cost", "0.5"],
        ["--batch", "300"],
    ],
)
def test_what_was_seen_of_a_region_makes_it_worse(load: Path, seen: list[str]) -> None:
    runs = (CliRunner().invoke(app, ["replay", str(load), *MODEL, *it]).output for it in ([], seen))
    even, worse = runs
    assert "width changes" in worse
    assert worse != even


@pytest.mark.parametrize("result", [[], [{"metric": {}, "values": [[1e9, "1"]]}]])
def test_too_little_of_prometheus_says_what_to_do(tmp_path: Path, result: list[object]) -> None:
    """A job that has just started, or a query that finds nothing."""
    file = tmp_path / "range.json"
    file.write_text(json.dumps({"data": {"result": result}}))
    refused = CliRunner().invoke(app, ["replay", str(file), *MODEL])
    assert refused.exit_code == 1
    assert "a replay needs two: look whether the query is right" in " ".join(refused.output.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.csv"], "No such file"),
        (["http://127.0.0.1:1"], "--query is needed"),
        (["LOAD", "--set", "target=2"], "Autoscaling has no 'target'"),
    ],
)
def test_what_is_wrong_is_reported(load: Path, arguments: list[str], message: str) -> None:
    typed = [str(load) if item == "LOAD" else item for item in arguments]
    result = CliRunner().invoke(app, ["replay", *typed, *MODEL])
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())


HPA = """
spec:
  minReplicas: 1
  maxReplicas: {most}
  metrics:
    - type: Object
      object: {{metric: {{name: demand}}, target: {{type: AverageValue, averageValue: "{target}"}}}}
"""


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (HPA.format(most="eight", target=1), "maxReplicas must be a whole number, 1 or more"),
        (HPA.format(most=8, target=0), "the averageValue of a target must be above 0, not '0'"),
        (HPA.format(most=8, target="1.2.3"), "'1.2.3' is no quantity"),
        (HPA.format(most=8, target="1e999"), "'1e999' is no quantity"),
        ("a: b: c", "mapping values are not allowed"),
        ("", "not a HorizontalPodAutoscaler"),
        (b"\xff\xfe", "is no text in UTF-8"),
    ],
)
def test_what_is_wrong_with_an_hpa_is_said(
    load: Path, tmp_path: Path, manifest: str | bytes, message: str
) -> None:
    file = tmp_path / "hpa.yaml"
    file.write_bytes(manifest if isinstance(manifest, bytes) else manifest.encode())
    result = CliRunner().invoke(app, ["replay", str(load), *MODEL, "--hpa", str(file)])
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())


def test_an_hpa_of_ones_own_is_tried(load: Path, tmp_path: Path) -> None:
    file = tmp_path / "hpa.yaml"
    file.write_text(HPA.format(most=2, target=1))
    result = CliRunner().invoke(app, ["replay", str(load), *MODEL, "--hpa", str(file)])
    assert result.exit_code == 0, result.output
    assert "width 2: demand above target" in result.output
    assert "width 3" not in result.output


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ((0, 60, 60.001, 86_400), "points in time that are 0.001 s apart, and lasts 86400 s"),
        ((0, 60, math.inf), "each later than the one before"),
        ((0, math.nan, 60), "each later than the one before"),
    ],
)
def test_times_that_make_no_load_are_refused(
    tmp_path: Path, times: tuple[float, ...], message: str
) -> None:
    file = tmp_path / "load.csv"
    file.write_text("\n".join(["seconds,records_per_second", *(f"{at},5" for at in times)]))
    result = CliRunner().invoke(app, ["replay", str(file), *MODEL])
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())


def test_a_quiet_night_is_slept_through(tmp_path: Path) -> None:
    rows = (f"{60 * m},{50 if m < 120 or m >= 480 else 0}" for m in range(600))
    file = tmp_path / "night.csv"
    file.write_text("\n".join(["seconds,records_per_second", *rows]))
    result = CliRunner().invoke(app, ["replay", str(file), *MODEL, "--set", "min_width=0"])
    assert result.exit_code == 0, result.output
    assert "width changes     2 " in result.output
    assert "width 0: All metrics below target" in result.output
    assert "width 1: demand above target" in result.output
