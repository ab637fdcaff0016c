"""A pod's phase and conditions from its containers' states."""

from typing import Any

import pytest

from streamgraft_local.node.states import Running, State, Terminated, Waiting
from streamgraft_local.node.status import ContainerView, conditions, phase, pod_status

AT = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T01:00:00Z"
RUNNING = Running(AT)
WAITING = Waiting("ContainerCreating")
BACK_OFF = Waiting("CrashLoopBackOff")


def ended(code: int) -> Terminated:
    """Return the state of a container that ended with a code."""
    return Terminated(code, "Error" if code else "Completed", AT, AT, "process://1")


def view(state: State, *, ready: bool = False, name: str = "main") -> ContainerView:
    """Return a container in a state; one in back-off ran before."""
    last = ended(1) if state is BACK_OFF else None
    return ContainerView(name, "image", state, last=last, ready=ready)


@pytest.mark.parametrize(
    ("policy", "inits", "mains", "expected"),
    [
        ("Always", [], [WAITING], "Pending"),
        ("Always", [], [RUNNING], "Running"),
        ("Always", [], [RUNNING, WAITING], "Pending"),
        ("Always", [], [BACK_OFF], "Running"),
        ("Always", [], [ended(0)], "Running"),
        ("Never", [], [ended(0), ended(0)], "Succeeded"),
        ("Never", [], [ended(0), ended(1)], "Failed"),
        ("Never", [], [ended(1), RUNNING], "Running"),
        ("OnFailure", [], [ended(0)], "Succeeded"),
        ("OnFailure", [], [ended(1)], "Running"),
        ("OnFailure", [], [BACK_OFF], "Running"),
        ("Never", [RUNNING], [WAITING], "Pending"),
        ("Never", [ended(1)], [WAITING], "Failed"),
        ("Always", [ended(1)], [WAITING], "Pending"),
        ("Never", [ended(0)], [ended(0)], "Succeeded"),
    ],
)
def test_phase(policy: str, inits: list[State], mains: list[State], expected: str) -> None:
    assert phase(policy, [view(item) for item in inits], [view(item) for item in mains]) == expected


def pod(*known: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a pod with these conditions."""
    return {"spec": spec, "status": {"conditions": list(known)}}


def by_type(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return conditions by type."""
    return {item["type"]: item for item in items}


def test_ready_follows_the_containers() -> None:
    views = [view(RUNNING, ready=True), view(RUNNING, name="slow")]
    found = by_type(conditions(pod(), "Running", [], views, AT))
    assert found["Initialized"]["status"] == "True"
    assert found["Ready"]["status"] == found["ContainersReady"]["status"] == "False"
    assert found["Ready"]["message"] == "containers with unready status: [slow]"
    views = [view(RUNNING, ready=True)]
    assert by_type(conditions(pod(), "Running", [], views, AT))["Ready"]["status"] == "True"


def test_transition_time_moves_only_with_the_status() -> None:
    known = {"type": "Ready", "status": "True", "lastTransitionTime": AT}
    same = by_type(conditions(pod(known), "Running", [], [view(RUNNING, ready=True)], LATER))
    other = by_type(conditions(pod(known), "Running", [], [view(RUNNING)], LATER))
    assert same["Ready"]["lastTransitionTime"] == AT
    assert other["Ready"]["lastTransitionTime"] == LATER


def test_a_readiness_gate_holds_ready_back() -> None:
    gates = [{"conditionType": "example.com/open"}]
    views = [view(RUNNING, ready=True)]
    found = by_type(conditions(pod(readinessGates=gates), "Running", [], views, AT))
    assert found["ContainersReady"]["status"] == "True"
    assert found["Ready"]["reason"] == "ReadinessGatesNotReady"
    opened = {"type": "example.com/open", "status": "True"}
    found = by_type(conditions(pod(opened, readinessGates=gates), "Running", [], views, AT))
    assert found["Ready"]["status"] == "True"


def test_an_ended_pod_is_not_ready() -> None:
    found = by_type(conditions(pod(), "Succeeded", [], [view(ended(0))], AT))
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", "PodCompleted")


def test_status_has_addresses_and_containers() -> None:
    inits, mains = [view(ended(0), name="init")], [view(RUNNING, ready=True)]
    status = pod_status(pod(), inits, mains, ("127.20.7.9", "127.20.7.1"), AT)
    assert status["phase"] == "Running"
    assert status["podIPs"] == [{"ip": "127.20.7.9"}]
    assert status["hostIP"] == "127.20.7.1"
    assert status["startTime"] == AT
    assert status["initContainerStatuses"][0]["ready"] is True
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": AT}}


def test_a_signal_shows_in_the_state() -> None:
    assert ended(137).as_api()["terminated"]["signal"] == 9
    assert "signal" not in ended(1).as_api()["terminated"]
