"""The objects of custom.metrics.k8s.io, in both of its versions."""

from collections.abc import Iterable
from typing import Any, Literal

from streamgraft_common.kinds import Kind
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_metrics_adapter.api.wire import quantity, resource_entry
from streamgraft_metrics_adapter.objects import Item
from streamgraft_metrics_adapter.selectors import label_selector

GROUP = "custom.metrics.k8s.io"
Version = Literal["v1beta1", "v1beta2"]
VERSIONS: tuple[Version, ...] = ("v1beta2", "v1beta1")
"""Best first: the HPA asks for the preferred version."""


def metric_value_list(version: Version, items: Iterable[Item]) -> dict[str, Any]:
    """Return a MetricValueList."""
    return {
        "kind": "MetricValueList",
        "apiVersion": f"{GROUP}/{version}",
        "metadata": {},
        "items": [_item(version, item) for item in items],
    }


def _item(version: Version, item: Item) -> dict[str, Any]:
    described = {
        "kind": item.resource.kind,
        "name": item.name,
        "apiVersion": item.resource.api_version,
        **({"namespace": item.namespace} if item.namespace else {}),
    }
    common = {
        "describedObject": described,
        "timestamp": to_rfc3339(item.sampled_at, "seconds"),
        "value": quantity(item.value),
    }
    window = None if item.window_seconds is None else round(item.window_seconds)
    selector = label_selector(item.selector)
    if version == "v1beta1":
        measured = {} if window is None else {"window": window}
        return {**common, "metricName": item.metric, "selector": selector, **measured}
    measured = {} if window is None else {"windowSeconds": window}
    return {**common, "metric": {"name": item.metric, "selector": selector}, **measured}


def resource_list(version: Version, metrics: Iterable[tuple[Kind, str]]) -> dict[str, Any]:
    """Return the resources of a version: one per metric."""
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{version}",
        "resources": [
            resource_entry(f"{described.qualified}/{metric}", described.namespaced, "MetricValue")
            for described, metric in metrics
        ],
    }
