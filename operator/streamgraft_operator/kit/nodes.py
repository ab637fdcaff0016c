"""What is kept of a node, and what it tells: whether it takes new pods. Pure."""

from streamgraft_common.kube.client import Object

_KEPT = ("name", "labels", "resourceVersion")


def trimmed(node: Object) -> Object:
    """Return what is kept of a node: most of one are its images, its addresses and the times at
    which it was heard of."""
    metadata = node["metadata"]
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = [{"type": "Ready", "status": c["status"]} for c in conditions if c["type"] == "Ready"]
    return {
        "metadata": {field: metadata[field] for field in _KEPT if field in metadata},
        "spec": {"unschedulable": bool((node.get("spec") or {}).get("unschedulable"))},
        "status": {"conditions": ready},
    }


def takes_pods(node: Object) -> bool:
    """Return whether a trimmed node is neither cordoned nor lost.

    One that tells nothing of itself is taken for ready. Taints do not count: pods may tolerate
    them.
    """
    lost = any(condition["status"] != "True" for condition in node["status"]["conditions"])
    return not (node["spec"]["unschedulable"] or lost)
