"""Nodes as the API server has them: what is kept of them, and whether they take pods."""

from typing import Any

import pytest

from streamgraft_operator.kit.nodes import takes_pods, trimmed


def node(ready: str = "True", **spec: Any) -> dict[str, Any]:
    """Return a node, large as they are."""
    conditions = [
        {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": "2026-01-01T00:00:00Z"},
        {"type": "Ready", "status": ready, "lastHeartbeatTime": "2026-01-01T00:00:00Z"},
    ]
    return {
        "metadata": {
            "name": "n",
            "labels": {"zone": "z"},
            "resourceVersion": "7",
            "managedFields": [{"manager": "kubelet"}],
        },
        "spec": {"podCIDR": "10.0.0.0/24", **spec},
        "status": {"conditions": conditions, "images": [{"names": ["large"]}]},
    }


def test_no_more_is_kept_than_what_is_read() -> None:
    assert trimmed(node()) == {
        "metadata": {"name": "n", "labels": {"zone": "z"}, "resourceVersion": "7"},
        "spec": {"unschedulable": False},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


@pytest.mark.parametrize(
    ("item", "takes"),
    [
        (node(), True),
        (node(taints=[{"key": "gpu", "effect": "NoSchedule"}]), True),
        (node(unschedulable=True), False),
        (node("False"), False),
        (node("Unknown"), False),
        ({"metadata": {"name": "new"}}, True),
    ],
    ids=["ready", "tainted", "cordoned", "not ready", "lost", "says nothing"],
)
def test_whether_a_node_takes_pods(item: dict[str, Any], takes: bool) -> None:
    assert takes_pods(trimmed(item)) is takes
