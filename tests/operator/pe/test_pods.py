"""What is seen of pods: whether they have ended, and why they do not run."""

from typing import Any

import pytest

from streamgraft_common import names
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.pe.pods import (
    LONGEST_TEXT,
    ended_seconds,
    lacks_room,
    phase_of,
    pod_view,
    warm_pod_view,
    why_not_running,
)

RUNNING: dict[str, Any] = {"running": {}}
PULLING = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image x"}}
INITIALIZING = {"waiting": {"reason": "PodInitializing"}}
AT = "2026-01-01T00:00:20Z"


def ended(code: int, reason: str = "", message: str = "") -> dict[str, Any]:
    """Return the state of a container that has ended."""
    reason = reason or ("Error" if code else "Completed")
    said = {"message": message} if message else {}
    return {"terminated": {"exitCode": code, "reason": reason, "finishedAt": AT, **said}}


def pod(
    phase: str,
    pe: dict[str, Any],
    sidecar: dict[str, Any] | None = None,
    first: dict[str, Any] | None = None,
    **status: Any,
) -> dict[str, Any]:
    """Return a pod of these containers: a sidecar before the PE's, an init container."""
    containers = [{"name": "log-shipper", "state": sidecar}] if sidecar else []
    init = [{"name": "fetch", "state": first}] if first else []
    return {
        "metadata": {
            "name": "j-0-1",
            "namespace": "d",
            "uid": "u",
            "labels": {names.LABEL_LAUNCH: "1"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"nodeName": "n"},
        "status": {
            "phase": phase,
            "containerStatuses": [*containers, {"name": "pe", "state": pe}],
            "initContainerStatuses": init,
            **status,
        },
    }


@pytest.mark.parametrize(
    ("seen", "phase"),
    [
        (pod("Running", RUNNING, RUNNING), "Running"),
        (pod("Running", RUNNING, ended(1)), "Running"),
        (pod("Running", ended(137), RUNNING), "Failed"),
        (pod("Running", ended(0), RUNNING), "Succeeded"),
        (pod("Failed", ended(0), ended(143)), "Succeeded"),
        (pod("Failed", ended(1)), "Failed"),
        (pod("Failed", ended(0), reason="Evicted"), "Failed"),
        (pod("Failed", INITIALIZING, first=ended(1)), "Failed"),
        ({"metadata": {}}, "Pending"),
    ],
)
def test_a_pod_has_ended_with_its_pe(seen: dict[str, Any], phase: str) -> None:
    assert phase_of(seen) == phase


def test_a_sidecar_keeps_no_pod_alive() -> None:
    """Its shards are free, no PE adopts it, and its place in the pool is filled in a while."""
    dead = pod("Running", ended(1), RUNNING)
    assert not pod_view(dead).alive
    assert not warm_pod_view(dead).usable
    assert ended_seconds(dead, from_rfc3339(AT) + 5.0) == 5.0
    alive = pod("Running", RUNNING, RUNNING)
    assert pod_view(alive).alive
    assert warm_pod_view(alive).usable
    assert ended_seconds(alive, from_rfc3339(AT)) is None


LOW = "The node was low on resource: memory"
UNSCHEDULABLE = {
    "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes: 1 cordoned"}]
}


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (pod("Failed", ended(137), reason="Evicted", message=LOW), f"Evicted: {LOW}"),
        (
            pod("Pending", INITIALIZING, first=PULLING),
            "init container fetch: ImagePullBackOff: Back-off pulling image x",
        ),
        (
            pod("Failed", INITIALIZING, first=ended(1, message="no such bucket")),
            "init container fetch: exit code 1: no such bucket",
        ),
        (pod("Pending", INITIALIZING, first=RUNNING), "PodInitializing"),
        (pod("Pending", PULLING, ended(0)), "ImagePullBackOff: Back-off pulling image x"),
        (
            pod("Pending", RUNNING, PULLING),
            "container log-shipper: ImagePullBackOff: Back-off pulling image x",
        ),
        (pod("Failed", ended(1, message="boom"), ended(0)), "exit code 1: boom"),
        (pod("Failed", ended(1, message="boom"), first=ended(143)), "exit code 1: boom"),
        (pod("Failed", ended(1)), "exit code 1: Error"),
        (
            pod("Failed", ended(137, "OOMKilled", "INFO last line")),
            "exit code 137: OOMKilled: INFO last line",
        ),
        (
            pod("Failed", ended(1, message="a\n\nb\n  c\nValueError: d\n")),
            "exit code 1: b | c | ValueError: d",
        ),
        ({"status": UNSCHEDULABLE}, "0/1 nodes: 1 cordoned"),
        ({"status": {}}, ""),
    ],
)
def test_why_it_does_not_run(seen: dict[str, Any], why: str) -> None:
    assert why_not_running(seen) == why


@pytest.mark.parametrize(
    ("label", "message", "lacking"),
    [
        (names.LABEL_PE, "0/2 nodes are available: 2 Insufficient memory.", True),
        (names.LABEL_PE, "0/1 nodes are available: 1 Too many pods.", True),
        (names.LABEL_PE, "0/1 nodes are available: 1 node(s) were unschedulable.", False),
        (names.LABEL_POOL, "0/2 nodes are available: 2 Insufficient memory.", False),
    ],
)
def test_whether_a_pe_lacks_room(label: str, message: str, lacking: bool) -> None:
    waiting = {"type": "PodScheduled", "status": "False", "message": message}
    seen = {"metadata": {"labels": {label: "a"}}, "spec": {}, "status": {"conditions": [waiting]}}
    assert lacks_room(seen) is lacking
    assert not lacks_room({**seen, "spec": {"nodeName": "node"}})


def test_the_end_of_a_long_line_is_told() -> None:
    told = why_not_running(pod("Failed", ended(1, message="x" * 5000 + "end")))
    assert told.endswith("xend")
    assert len(told) < LONGEST_TEXT + 50
