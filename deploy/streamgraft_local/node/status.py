"""A pod's status, computed from the states of its containers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamgraft_common.kube.client import Object
from streamgraft_local.node.states import State, Terminated, Waiting


@dataclass(frozen=True)
class ContainerView:
    """All that the status shows of one container."""

    name: str
    image: str
    state: State
    last: Terminated | None = None
    restart_count: int = 0
    started: bool = False
    ready: bool = False
    container_id: str = ""

    def as_api(self) -> Object:
        """Return a ContainerStatus."""
        status: Object = {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "state": self.state.as_api(),
            "lastState": self.last.as_api() if self.last else {},
            "restartCount": self.restart_count,
            "started": self.started,
            "ready": self.ready,
        }
        return status | ({"containerID": self.container_id} if self.container_id else {})


def readiness(status: Object) -> list[str]:
    """Return what the condition Ready of a pod or node says; nothing if there is none."""
    return [item["status"] for item in status.get("conditions", []) if item["type"] == "Ready"]


def initialized(inits: Iterable[ContainerView]) -> bool:
    """Return whether every init container has ended well."""
    return all(isinstance(view.state, Terminated) and not view.state.exit_code for view in inits)


def phase(policy: str, inits: Sequence[ContainerView], mains: Sequence[ContainerView]) -> str:
    """Return the pod's phase, by the kubelet's rules."""
    if not initialized(inits):
        ended_badly = any(
            isinstance(view.state, Terminated) and view.state.exit_code for view in inits
        )
        return "Failed" if ended_badly and policy == "Never" else "Pending"
    if any(isinstance(view.state, Waiting) and view.last is None for view in mains):
        return "Pending"
    if any(not isinstance(view.state, Terminated) for view in mains):
        return "Running"
    if policy == "Always":
        return "Running"
    codes = [view.state.exit_code for view in mains if isinstance(view.state, Terminated)]
    if not any(codes):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def conditions(
    pod: Object,
    current_phase: str,
    inits: Sequence[ContainerView],
    mains: Sequence[ContainerView],
    at: str,
) -> list[Object]:
    """Return the node's conditions; a transition time is kept while the status stays the same."""
    before = {item["type"]: item for item in pod.get("status", {}).get("conditions", [])}
    done = current_phase in ("Succeeded", "Failed")
    unready = [view.name for view in mains if not view.ready]
    closed = [
        gate["conditionType"]
        for gate in pod["spec"].get("readinessGates", [])
        if before.get(gate["conditionType"], {}).get("status") != "True"
    ]
    finished = ("PodCompleted" if current_phase == "Succeeded" else "PodFailed", "")
    lacking = ("ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    gates = ("ReadinessGatesNotReady", f"conditions that are not True: {', '.join(closed)}")
    incomplete = [view.name for view in inits if not initialized([view])]
    waiting = ("ContainersNotInitialized", f"containers with incomplete status: {incomplete}")
    why_not_ready = finished if done else lacking if unready else gates
    wanted = [
        ("Initialized", not incomplete, waiting),
        ("ContainersReady", not done and not unready, finished if done else lacking),
        ("Ready", not done and not unready and not closed, why_not_ready),
    ]
    return [_condition(before.get(kind), kind, true, why, at) for kind, true, why in wanted]


def _condition(
    before: Mapping[str, Any] | None, kind: str, true: bool, why_not: tuple[str, str], at: str
) -> Object:
    status = "True" if true else "False"
    same = before is not None and before["status"] == status
    since = before.get("lastTransitionTime", at) if before and same else at
    reason, message = (None, None) if true else (why_not[0], why_not[1] or None)
    # None deletes a reason that an earlier patch left behind.
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }


def pod_status(
    pod: Object,
    inits: Sequence[ContainerView],
    mains: Sequence[ContainerView],
    addresses: tuple[str, str],
    at: str,
) -> Object:
    """Return the status to merge into the pod's. `addresses`: the pod's and the node's."""
    policy = pod["spec"].get("restartPolicy", "Always")
    current = phase(policy, inits, mains)
    pod_ip, host_ip = addresses
    return {
        "phase": current,
        "conditions": conditions(pod, current, inits, mains, at),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": pod.get("status", {}).get("startTime") or at,
        "initContainerStatuses": [
            replace(view, ready=initialized([view])).as_api() for view in inits
        ],
        "containerStatuses": [view.as_api() for view in mains],
    }
