"""What PEs say to a consistent region."""

from typing import Any

import pytest

from streamgraft_common.resources import ConsistentRegionSpec
from streamgraft_operator.consistent_region.elements import (
    failures,
    let_pass,
    matters,
    over,
    requests,
    unheld,
)

STAGES = {"counted"}


def region(policy: str) -> ConsistentRegionSpec:
    return ConsistentRegionSpec.model_validate(
        {"job": "job", "region": "all", "trigger": "operatorDriven", "rollBackOn": policy}
    )


def element(reason: str = "Created", shard: object = None, **runtime: object) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ns", "name": "job-1", "uid": "u1", "resourceVersion": "1"},
        "spec": {"job": "job", "peId": 1, "stageName": "counted"},
        "status": {
            "launchCount": 3,
            "launchReason": reason,
            "runtime": {"shards": {"0": shard} if shard else {}, **runtime},
        },
    }


def failed(reason: str, at: str = "T1") -> dict[str, Any]:
    said = {"state": "Failed", "epoch": 1, "message": "bad", "reason": reason, "startedAt": at}
    return element(shard=said)


def started_again(after: str, launch: int = 3) -> dict[str, Any]:
    """Return what a PE says of a query that failed and runs again; `launch`: whose pod says so."""
    said = {"state": "Running", "epoch": 1, "startedAt": "T9", "failedRun": after}
    return element(shard=said, launchCount=launch)


AGAIN = "shard 0 of job-1 failed, and was started again"


@pytest.mark.parametrize(
    ("policy", "item", "found"),
    [
        ("failure", element(), {}),
        ("failure", element("GraphChanged"), {}),
        ("failure", element("PodFailed"), {"u1:3": "job-1 had to be launched again (PodFailed)"}),
        ("failure", failed("QueryFailed"), {"u1:3:0:T1": "shard 0 of job-1: bad"}),
        ("failure", started_again("T1"), {"u1:3:0:T1": AGAIN}),
        ("failure", started_again("T1", launch=2), {}),
        ("damage", started_again("T1"), {}),
        ("damage", element("PodFailed"), {}),
        ("damage", failed("QueryFailed"), {}),
        ("damage", failed("CheckpointDamaged"), {"u1:3:0:T1": "shard 0 of job-1: bad"}),
        ("never", failed("CheckpointDamaged"), {}),
    ],
)
def test_which_failures_a_policy_goes_back_for(
    policy: str, item: dict[str, Any], found: dict[str, str]
) -> None:
    assert failures(region(policy), STAGES, [item]) == found
    assert failures(region(policy), {"other"}, [item]) == {}, "it is in no cut"


def test_which_failures_are_over_and_which_concern_no_shard() -> None:
    died, again, now = element("PodFailed"), started_again("T1"), failed("QueryFailed")
    assert over([died, again, now]) == {"u1:3:0:T1"} == over([again])
    assert over([died, now]) == frozenset()
    died["spec"]["shards"] = []
    now["spec"]["shards"] = [0]
    assert unheld([now]) == frozenset()
    assert unheld([died]) == {"u1:3"}


def test_which_failures_a_policy_lets_pass() -> None:
    died, spoiled = element("PodFailed"), failed("CheckpointDamaged")
    assert let_pass(region("never"), STAGES, [died]) == {"u1:3"}
    assert let_pass(region("damage"), STAGES, [died, spoiled]) == {"u1:3"}
    assert let_pass(region("failure"), STAGES, [died, spoiled]) == frozenset()


def test_the_cuts_that_functions_ask_for() -> None:
    asks, other = element(cutRequests={"all": "p.2"}), element(cutRequests={"rest": "p.1"})
    assert requests(region("never"), [asks]) == {"job-1": "p.2"}
    assert requests(region("never"), [other]) == {}


def test_what_a_region_is_to_hear_of() -> None:
    quiet = element()
    assert not matters(quiet, element(message="busy"))
    assert matters(quiet, element(cutRequests={"all": "p.2"}))
    assert matters(quiet, failed("QueryFailed"))
    assert matters(failed("QueryFailed"), failed("QueryFailed", "T2"))
    assert matters(quiet, started_again("T1"))
    assert matters(quiet, None)
