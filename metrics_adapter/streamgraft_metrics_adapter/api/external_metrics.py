"""The objects of external.metrics.k8s.io."""

from collections.abc import Iterable
from typing import Any

from streamgraft_common.timestamps import to_rfc3339
from streamgraft_metrics_adapter.api.wire import quantity, resource_entry
from streamgraft_metrics_adapter.rules.rule_metrics import Measured

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"


def value_list(
    metric: str, window_seconds: float | None, values: Iterable[Measured]
) -> dict[str, Any]:
    """Return an ExternalMetricValueList."""
    window = {} if window_seconds is None else {"window": round(window_seconds)}
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {},
        "items": [
            {
                "metricName": metric,
                "metricLabels": dict(found.labels),
                "timestamp": to_rfc3339(found.sampled_at, "seconds"),
                "value": quantity(found.value),
                **window,
            }
            for found in values
        ],
    }


def resource_list(metrics: Iterable[str]) -> dict[str, Any]:
    """Return the resources of the version: one per metric."""
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{VERSION}",
        "resources": [resource_entry(name, True, "ExternalMetricValue") for name in metrics],
    }
