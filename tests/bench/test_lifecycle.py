"""The parts of the life cycle benchmark: its application, its hollow PEs, its arithmetic."""

import pytest

from bench.hollow_node import runtime_status
from bench.lifecycle_failures import chosen
from bench.pipelines import bundle, pipelines
from bench.report import slope
from streamgraft_common import names
from streamgraft_common.bundle import read_bundle
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import Fusion
from streamgraft_operator.graph import JobContext, topology_of

POD: Object = {"metadata": {"name": "j-3-1", "uid": "u", "labels": {names.LABEL_LAUNCH: "1"}}}
AT = "2026-01-01T00:00:00.000Z"
RUNNING = {"state": "Running", "epoch": 2, "startedAt": AT, "firstBatchAt": AT}


def pe(shards: list[int], epoch: int, runtime: Object | None = None) -> Object:
    """Return a ProcessingElement as far as its runtime looks at it."""
    status = {"runtime": runtime} if runtime else {}
    return {"spec": {"shards": shards, "epoch": epoch}, "status": status}


@pytest.mark.parametrize(("size", "pes"), [(1, 4), (4, 19), (32, 1027)])
def test_application_has_the_papers_number_of_pes(size: int, pes: int) -> None:
    """n pipelines of n operators, a source, a split and a sink."""
    adl = read_bundle(bundle(pipelines(size, size, size))).adl
    context = JobContext("n", "j", "u", "0", "kafka:9092", fusion=Fusion(type="legacy"))
    assert len(topology_of(adl, context, {}).pes) == pes


def test_hollow_pe_serves_its_shards_at_once() -> None:
    assert runtime_status(pe([5], 2), POD, AT) == {
        "pod": "j-3-1",
        "podUid": "u",
        "launchCount": 1,
        "ready": True,
        "epoch": 2,
        "shards": {"5": RUNNING},
        "releases": {},
    }


def test_hollow_pe_releases_cleanly_what_is_taken_away() -> None:
    before = {"podUid": "u", "epoch": 1, "shards": {"5": RUNNING, "6": RUNNING}}
    said = runtime_status(pe([5], 2, before), POD, AT)
    assert said
    assert said["shards"] == {"6": None}
    release = {"epoch": 2, "releasedAt": AT, "lastBatchAt": AT, "clean": True}
    assert said["releases"] == {"6": release}


def test_a_hollow_pe_reports_a_state_once() -> None:
    before = {"podUid": "u", "epoch": 2, "shards": {"5": RUNNING}}
    assert runtime_status(pe([5], 2, before), POD, AT) is None


def test_pods_that_fail_are_spread_over_a_job() -> None:
    assert chosen(4) == [0, 1, 2, 3]
    assert chosen(19) == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
    assert (len(set(chosen(1027))), chosen(1027)[-1]) == (10, 1026)


def test_slope_of_a_straight_line() -> None:
    assert slope([(10, 3.0), (20, 5.0), (40, 9.0)]) == pytest.approx(0.2)
