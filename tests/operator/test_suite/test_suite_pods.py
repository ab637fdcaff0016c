"""What is seen of the pods of tests."""

from typing import Any

import pytest

from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.test_suite.pods import scenario_pod


def pod(phase: str, finished: str, code: int = 3, **metadata: Any) -> dict[str, Any]:
    """Return a pod whose test ended then; a sidecar ended later, or runs on."""
    made = {"name": "s--a", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    ended = {"exitCode": code, "message": "one\ntwo\n", "finishedAt": finished}
    later = {"terminated": {"exitCode": 143, "finishedAt": "2026-01-01T00:01:00Z"}}
    sidecar = {"running": {}} if phase == "Running" else later
    containers = [
        {"name": "sidecar", "state": sidecar},
        {"name": "test", "state": {"terminated": ended}},
    ]
    return {
        "metadata": {**made, **metadata},
        "status": {"phase": phase, "containerStatuses": containers},
    }


@pytest.mark.parametrize("phase", ["Running", "Failed"])
@pytest.mark.parametrize(("code", "outcome"), [(3, "Failed"), (0, "Succeeded")])
def test_a_pod_has_ended_with_its_test(phase: str, code: int, outcome: str) -> None:
    """Whatever becomes of its sidecar."""
    seen = scenario_pod(pod(phase, "2026-01-01T00:00:20Z", code))
    assert (seen.phase, seen.ended) == (outcome, from_rfc3339("2026-01-01T00:00:20Z"))
    assert (seen.exited, seen.deleted) == (True, None)
    assert seen.message == f"exit code {code}: two"


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
        seen = scenario_pod(pod("Failed", finished, 0, **deleted))
        assert seen.deleted == from_rfc3339("2026-01-01T00:00:10Z")
        assert seen.killed == from_rfc3339("2026-01-01T00:00:40Z")
        assert seen.cut_short is cut_short
    assert not scenario_pod(pod("Failed", "2026-01-01T00:00:09Z", 0)).cut_short
