"""What is seen of the pods of tests."""

from typing import Any

from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.test_suite.pods import scenario_pod


def pod(phase: str, *finished: str, **metadata: Any) -> dict[str, Any]:
    """Return a pod whose containers ended at these times, all with exit code 3."""
    made = {"name": "s--a", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    exits = [
        {"state": {"terminated": {"exitCode": 3, "message": "one\ntwo\n", "finishedAt": at}}}
        for at in finished
    ]
    return {
        "metadata": {**made, **metadata},
        "status": {"phase": phase, "containerStatuses": exits},
    }


def test_a_pod_has_ended_with_its_last_container() -> None:
    seen = scenario_pod(pod("Failed", "2026-01-01T00:00:20Z", "2026-01-01T00:00:10Z"))
    assert seen.ended == from_rfc3339("2026-01-01T00:00:20Z")
    assert (seen.exited, seen.deleted, seen.message) == (True, None, "two")
    assert scenario_pod(pod("Running", "2026-01-01T00:00:20Z")).ended is None


def test_an_eviction_is_no_exit() -> None:
    evicted = pod("Failed", "2026-01-01T00:00:20Z")
    evicted["status"]["reason"] = "Evicted"
    assert not scenario_pod(evicted).exited


def test_a_deletion_began_its_grace_period_before_its_timestamp() -> None:
    """A container that ends with 0 when it is told to end has not passed."""
    deleted = {"deletionTimestamp": "2026-01-01T00:00:40Z", "deletionGracePeriodSeconds": 30}
    ends = {
        "2026-01-01T00:00:09Z": False,
        "2026-01-01T00:00:10Z": True,
        "2026-01-01T00:00:39Z": True,
    }
    for finished, cut_short in ends.items():
        seen = scenario_pod(pod("Succeeded", finished, **deleted))
        assert seen.deleted == from_rfc3339("2026-01-01T00:00:10Z")
        assert seen.cut_short is cut_short
    assert not scenario_pod(pod("Succeeded", "2026-01-01T00:00:09Z")).cut_short
