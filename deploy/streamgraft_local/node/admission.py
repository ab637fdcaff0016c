"""What the process node refuses, with the reason shown in the pod's status."""

from streamgraft_common.kube.client import Object
from streamgraft_local.node.volumes import SUPPORTED


def refusal(pod: Object) -> str:
    """Return why the node can't run this pod; empty if it can."""
    spec = pod["spec"]
    for volume in spec.get("volumes", []):
        if not any(kind in volume for kind in SUPPORTED):
            kinds = ", ".join(sorted(set(volume) - {"name"}))
            return f"volume {volume['name']}: the process node has no volumes of kind {kinds}"
    for container in spec.get("initContainers", []):
        if container.get("restartPolicy") == "Always":
            return f"container {container['name']}: the process node has no sidecar init containers"
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if "grpc" in container.get(probe, {}):
                return f"container {container['name']}: the process node has no gRPC probes"
    return ""
