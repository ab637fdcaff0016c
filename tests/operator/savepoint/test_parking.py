"""Since when stages run again behind savepoints."""

from types import SimpleNamespace
from typing import Any, cast

from streamgraft_common.kube.client import Object
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.savepoint.parking import parked_until

BEGUN = {"startedAt": to_rfc3339(90.0)}


def savepoint(**status: Any) -> Object:
    return {"metadata": {"name": "s"}, "status": status}


def until(*savepoints: Object) -> float:
    by_job = SimpleNamespace(get=lambda _: list(savepoints))
    return parked_until(cast(Caches, SimpleNamespace(savepoints_by_job=by_job)), ("ns", "job"))


def test_the_last_one_that_stopped_stages_counts_however_it_ended() -> None:
    failed = savepoint(phase="Failed", completedAt=to_rfc3339(100.0), **BEGUN)
    done = savepoint(phase="Completed", completedAt=to_rfc3339(80.0), **BEGUN)
    runs = savepoint(phase="Saving", **BEGUN)
    assert until() == 0.0
    assert until(done, failed, runs) == 100.0


def test_one_that_never_stopped_a_stage_prolongs_nothing() -> None:
    assert until(savepoint(phase="Failed", completedAt=to_rfc3339(100.0))) == 0.0


def test_a_rollback_stops_all_at_once() -> None:
    back = savepoint(phase="Completed", completedAt=to_rfc3339(70.0), drainedAt=to_rfc3339(60.0))
    assert until(back) == 70.0
