"""What savepoints hold up, and since when stages run again behind them."""

from types import SimpleNamespace
from typing import Any, cast

from streamgraft_common.kube.client import Object
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.savepoint.parking import HeldBack, holds_back, parked_until

BEGUN = {"startedAt": to_rfc3339(90.0)}


def savepoint(**status: Any) -> Object:
    return {"metadata": {"name": "s"}, "status": status}


def caches(*savepoints: Object) -> Caches:
    by_job = SimpleNamespace(get=lambda _: list(savepoints))
    return cast(Caches, SimpleNamespace(savepoints_by_job=by_job))


def until(*savepoints: Object) -> float:
    return parked_until(caches(*savepoints), ("ns", "job"))


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


def test_it_holds_back_the_regions_that_it_has_stages_of_until_it_is_over() -> None:
    """Though none of them is parked yet, or any more."""

    def held_back(phase: str, region: str) -> bool:
        stages = [
            {"name": "read", "shards": 1, "operators": ["read"]},
            {"name": "count", "shards": 4, "operators": ["count"], "region": "r"},
        ]
        found = savepoint(phase=phase, stages=stages, parked=["read"])
        return holds_back(caches(found), ("ns", "job"), region)

    active = ("Draining", "Saving", "Committing", "RollingBack")
    assert all(held_back(phase, "r") for phase in active)
    assert not any(held_back(phase, "beside") for phase in active)
    assert not any(held_back(phase, "r") for phase in ("Completed", "Failed"))


def test_what_held_a_region_back_is_known_though_it_is_deleted() -> None:
    """A consistent region deletes what has brought it back, and cuts that failed, at once."""
    held, region = HeldBack(), ("ns", "job-r")
    assert held.until(region, 90.0, held=False) == 0.0
    assert held.until(region, 100.0, held=True) == 100.0
    assert held.until(region, 110.0, held=True) == 110.0
    assert held.until(region, 120.0, held=False) == 110.0
    assert held.until(("ns", "job-other"), 120.0, held=False) == 0.0
    held.forget(region)
    assert held.until(region, 130.0, held=False) == 0.0
