"""The dashboards are what their generator makes, and stand on metrics that are exported."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard as GrafanaDashboard
from tests.promtool.check import passes, promtool

from dashboards.boards import DASHBOARDS, REGIONS
from dashboards.boards.decisions import DECISIONS
from dashboards.boards.elements import ELEMENTS
from dashboards.boards.jobs import JOBS
from dashboards.boards.operator_health import OPERATOR
from dashboards.generate import FOLDER, file_of, queries, render
from dashboards.model import Dashboard, Panel
from streamgraft_autoscaler.lag import relative_lag_change
from streamgraft_common.resources import JobStatus

ROOT = Path(__file__).parents[2]
CONTRACTS = ROOT / "docs" / "develop" / "contracts.md"
EXPORTERS = ("operator", "metrics_adapter")
VALUES = {
    "namespace": "default",
    "job": "flights",
    "region": ".+",
    "pe": ".+",
    "__rate_interval": "1m",
}
each = pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.name)


def test_files_are_generated() -> None:
    """`make generate` was run."""
    assert {file_of(board) for board in DASHBOARDS} == set(FOLDER.iterdir())
    for board in DASHBOARDS:
        assert file_of(board).read_text() == render(board)


@each
def test_grafana_knows_every_field(board: Dashboard) -> None:
    """Read as Grafana's schema says and written again, nothing is gone: no field is misspelt."""
    document = json.loads(render(board))
    again = GrafanaDashboard.from_json(document)
    assert missing(document, json.loads(json.dumps(again, cls=JSONEncoder))) == []


def missing(wanted: Any, found: Any, path: str = "") -> list[str]:
    """Return the places of `wanted` that `found` has not, or otherwise."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [
            place
            for key, value in wanted.items()
            for place in missing(value, found.get(key), f"{path}.{key}")
        ]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [place for n, pair in pairs for place in missing(*pair, f"{path}[{n}]")]
    return [] if wanted == found else [path]


@each
def test_every_variable_is_known(board: Dashboard) -> None:
    """After replacement nothing of Grafana's is left in a query."""
    found = queries(board, VALUES)
    assert found
    assert not [query for query in found if "$" in query]
    assert {item.name for item in board.variables} <= VALUES.keys()


def test_metrics_are_exported() -> None:
    """Those of PEs stand in the contract, those of the programs in their code."""
    code = "".join(
        file.read_text() for folder in EXPORTERS for file in (ROOT / folder).rglob("*.py")
    )
    text = CONTRACTS.read_text()
    asked = " ".join(query for board in DASHBOARDS for query in queries(board, VALUES))
    found = set(re.findall(r"(?:streamgraft|metrics_apiserver)_\w+", asked))
    assert len(found) > 25
    for name in found - {"streamgraft_learned_records", "streamgraft_learned_busy_seconds"}:
        base = re.sub(r"_(bucket|sum|count|total)$", "", name)
        where = text if name.startswith("streamgraft_pe_") else code
        assert base in where or base.removeprefix("streamgraft_learned_") in where


@each
def test_lines_lead_to_dashboards_that_are_there(board: Dashboard) -> None:
    """With variables that these have."""
    variables = {item.uid: {variable.name for variable in item.variables} for item in DASHBOARDS}
    for found in re.finditer(r'"url": "/d/([^?]+)\?([^"]+)"', render(board)):
        names = re.findall(r"var-(\w+)=|\$\{(\w+):queryparam\}", found[2])
        assert {one or other for one, other in names} <= variables[found[1]]
    for panel in board.panels:
        assert not panel.leads_to or panel.leads_to in variables


@each
def test_panels_do_not_overlap(board: Dashboard) -> None:
    """The layout has every cell once, and ids are unique."""
    panels = json.loads(render(board))["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)


CHOSEN = [board for board in DASHBOARDS if board.variables]
"""Dashboards of jobs: those of the operator and the adapter have nothing to choose."""
WHOSE = ({"namespace", "streams_job"}, {"namespace", "pe"}, {"namespace", "name"})
"""What tells whose a line is: the objects of processing elements and regions have the job's name in
theirs."""


@pytest.mark.parametrize("board", CHOSEN, ids=lambda board: board.name)
def test_no_line_adds_up_different_jobs(board: Dashboard) -> None:
    """Jobs of two namespaces may have one name, and regions of two jobs: each line is of one, and
    its legend says of which. Only numbers are of all that is chosen, and a table shows all labels
    as columns."""
    lines = [panel for panel in board.panels if not panel.number]
    for panel, query in ((line, query) for line in lines for query in line.queries):
        if "ALERTS" in query.expression:
            continue  # by name: an alert says itself whose it is
        kept = [set(by.split(", ")) for by in re.findall(r"by \(([^)]*)\)", query.expression)]
        assert len(kept) == len(re.findall(r"\b(?:sum|count|max|min|avg)\b", query.expression))
        assert all(any(whose <= labels for whose in WHOSE) for labels in kept), query.expression
        if panel.table:
            continue
        shown = set(re.findall(r"{{(\w+)}}", query.legend))
        assert any(whose <= shown for whose in WHOSE), query.legend
        assert not kept or kept[0] - {"le"} == shown, query.legend


def color(board: Dashboard, title: str, value: float) -> str:
    """Return the color that Grafana gives a value of a panel."""
    panels = {panel["title"]: panel for panel in json.loads(render(board))["panels"]}
    steps = panels[title]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    limits = [float("-inf"), *(step["value"] for step in steps[1:])]
    assert limits == sorted(limits)
    assert steps[0]["value"] is None
    return str(
        [step["color"] for step, limit in zip(steps, limits, strict=True) if limit <= value][-1]
    )


@pytest.mark.parametrize(
    ("lag_change", "expected"), [(-50, "green"), (0, "green"), (20, "orange"), (50, "red")]
)
def test_a_region_that_keeps_up_is_green(lag_change: float, expected: str) -> None:
    """As the signal is computed, at 100 records/s."""
    signal = relative_lag_change(lag_change, 100).value
    assert color(DECISIONS, "Relative change of the lag", signal) == expected


def test_every_phase_of_a_job_has_a_color() -> None:
    """And titles of columns are none of them."""
    panel = panel_of(JOBS, "Health")
    assert set(panel.states) == set(get_args(JobStatus.model_fields["phase"].annotation))
    (found,) = (item for item in json.loads(render(JOBS))["panels"] if item["type"] == "table")
    assert found["title"] == "Health"
    (colored,) = found["fieldConfig"]["overrides"]
    assert colored["matcher"]["options"] == panel.colored == "phase"
    (mapping,) = colored["properties"][0]["value"]
    assert {text: shown["color"] for text, shown in mapping["options"].items()} == panel.states
    _, columns = found["transformations"]
    assert columns["options"]["excludeByName"] == {"Time": True, "Value #A": True}
    assert columns["options"]["renameByName"] == {"Value #B": "ready", "Value #C": "wanted"}
    assert all(target["instant"] for target in found["targets"])


def test_one_operator_leads() -> None:
    """None is what StreamgraftOperatorDown is about."""
    found = [color(OPERATOR, "Leaders", leaders) for leaders in (0, 1, 2)]
    assert found == ["red", "green", "orange"]


def texts_of(board: Dashboard, title: str) -> list[str]:
    """Return the queries of a panel."""
    panel = panel_of(board, title)
    return queries(Dashboard("one", "", "", {"": (panel,)}), VALUES)


def panel_of(board: Dashboard, title: str) -> Panel:
    """Return a panel by its title."""
    (panel,) = (panel for panel in board.panels if panel.title == title)
    return panel


def shown(title: str, *expected: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a panel is to show after two minutes: one dict per query, from a region (of the
    job flights in the namespace default, if it names none) to its value."""
    panel, texts = panel_of(REGIONS, title), texts_of(REGIONS, title)
    assert len(panel.queries) == len(texts) == len(expected)
    return [
        {
            "expr": text,
            "eval_time": "2m",
            "exp_samples": [
                {"labels": f"{{{where(region)}}}", "value": value}
                for region, value in values.items()
            ],
        }
        for text, values in zip(texts, expected, strict=True)
    ]


RATES = "Records arriving and processed"


def where(region: str) -> str:
    """Return the labels of `namespace/job/region`."""
    namespace, job, name = ["default", "flights", *region.split("/")][-3:]
    return f'namespace="{namespace}", streams_job="{job}", region="{name}"'


def passes_promtool(folder: Path, series: dict[str, str], cases: list[dict[str, Any]]) -> None:
    """Assert that Prometheus answers as the cases say."""
    test = {
        "interval": "10s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": cases,
    }
    file = folder / "cases.yaml"
    file.write_text(json.dumps({"rule_files": [], "evaluation_interval": "15s", "tests": [test]}))
    passes(file)


@pytest.mark.integration
def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    """promtool reads them as rules. That they have data is a promise of the demo."""
    rules = [
        {"record": f"query:number:{number}", "expr": query}
        for number, query in enumerate(
            query for board in DASHBOARDS for query in queries(board, VALUES)
        )
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"groups": [{"name": "dashboards", "rules": rules}]}))
    promtool("check", "rules", "--lint-fatal", str(file))


@pytest.mark.integration
def test_a_region_that_sleeps_is_shown_as_what_it_is(tmp_path: Path) -> None:
    """No channels and no utilization; what waits in Kafka, as the operator tells it."""
    asleep = f'{where("asleep")}, topic="in", partition="0", instance="operator"'
    awake = f'{where("awake")}, pe="2", pod="flights-2", channel="0"'
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
    passes_promtool(tmp_path, series, cases)


@pytest.mark.integration
def test_regions_of_one_name_have_lines_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two jobs, and in jobs of one name in two namespaces; both stages of a channel are one."""
    monkeypatch.setitem(VALUES, "namespace", ".+")
    monkeypatch.setitem(VALUES, "job", ".+")
    sizes = {"default/flights/work": 1, "default/trains/work": 2, "other/flights/work": 4}
    series: dict[str, str] = {}
    for region, size in sizes.items():
        job = region.split("/")[1]
        for channel in range(size):
            for stage in (0, 1):
                pe = f'pe="{job}-{2 * channel + stage}", pod="{job}-{2 * channel + stage}-1"'
                labels = f'{where(region)}, channel="{channel}", stage="{stage}", {pe}'
                partition = f'{labels}, topic="in", partition="{channel}"'
                series |= {
                    f"streamgraft_pe_lag_records{{{partition}}}": "3x20",
                    f"streamgraft_pe_input_end_offset{{{partition}}}": "0+30x20",
                    f"streamgraft_pe_committed_offset{{{partition}}}": "0+20x20",
                    f"streamgraft_pe_shards{{{labels}}}": "4x20",
                    f"streamgraft_pe_slots{{{labels}}}": "1x20",
                    f"streamgraft_pe_state_rows{{{labels}}}": "5x20",
                }
    times = [{region: factor * size for region, size in sizes.items()} for factor in range(11)]
    cases = [
        *shown("Channels", times[1], times[1]),
        *shown("Records arriving and processed", times[3], times[2]),
        *shown("Lag", times[6]),
        *shown("State", times[10]),
    ]
    passes_promtool(tmp_path, series, cases)


@pytest.mark.integration
def test_a_position_that_steps_back_is_no_burst(tmp_path: Path) -> None:
    """10 records/s of a log at a million; amid the window a crash takes 100 records back."""
    owned = f'{where("work")}, stage="0", topic="in", partition="0", pe="2", pod="flights-2"'
    series = {
        f"streamgraft_pe_input_end_offset{{{owned}}}": "1000000+100x20",
        f"streamgraft_pe_committed_offset{{{owned}}}": "1000000+100x9 1000800+100x10",
    }
    after = [{**case, "eval_time": "3m"} for case in shown(RATES, {"work": 10}, {"work": 10})]
    _, processed = texts_of(REGIONS, RATES)
    yes = {"labels": f"{{{where('work')}}}", "value": 1}
    amid = [
        {"expr": f"{processed} {within}", "eval_time": "2m", "exp_samples": [yes]}
        for within in ("< bool 10", "> bool -10")
    ]
    passes_promtool(tmp_path, series, [*after, *amid])


@pytest.mark.integration
def test_failures_are_shown_when_they_were(tmp_path: Path) -> None:
    """Five of a pod's first minute no longer matter two hours later."""
    ours = 'namespace="default", streams_job="flights", pe="flights-2", pod="flights-2-1"'
    series = {
        f'streamgraft_pe_query_restarts_total{{{ours}, shard="1"}}': "0x3 5x720",
        f"streamgraft_pe_unclean_stops_total{{{ours}}}": "0x3 5x720",
    }
    labels = '{namespace="default", pe="flights-2"}'
    cases = [
        {"expr": f"{text} {asked}", "eval_time": at, "exp_samples": [sample]}
        for text in texts_of(ELEMENTS, "Failures")
        for asked, at, sample in (
            (">= bool 5", "1m", {"labels": labels, "value": 1}),
            ("", "2h", {"labels": labels, "value": 0}),
        )
    ]
    passes_promtool(tmp_path, series, cases)


@pytest.mark.integration
def test_no_operator_is_shown_as_no_leader(tmp_path: Path) -> None:
    """Also if none can be scraped."""
    (text,) = texts_of(OPERATOR, "Leaders")
    case = {"expr": text, "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": 0}]}
    passes_promtool(tmp_path, {}, [case])


@pytest.mark.integration
def test_a_job_of_which_nothing_runs_is_listed(tmp_path: Path) -> None:
    """With its phase, beside one that is Healthy; of replicas that take turns none counts twice."""
    flights = 'namespace="default", streams_job="flights"'
    series = {
        f'streamgraft_job_phase{{{flights}, phase="Healthy"}}': "0x20",
        f'streamgraft_job_phase{{{flights}, phase="Submitted", instance="a"}}': "1x20",
        f'streamgraft_job_phase{{{flights}, phase="Submitted", instance="b"}}': "1x20",
        f'streamgraft_job_pes{{{flights}, kind="wanted"}}': "3x20",
        f'streamgraft_job_pes{{{flights}, kind="ready"}}': "1x20",
    }
    phase, ready, wanted = texts_of(JOBS, "Health")
    (jobs,) = texts_of(JOBS, "Jobs")
    expected = (
        (phase, f'{{{flights}, phase="Submitted"}}', 1),
        (ready, f"{{{flights}}}", 1),
        (wanted, f"{{{flights}}}", 3),
        (jobs, "{}", 1),
    )
    cases = [
        {"expr": text, "eval_time": "1m", "exp_samples": [{"labels": labels, "value": value}]}
        for text, labels, value in expected
    ]
    passes_promtool(tmp_path, series, cases)
