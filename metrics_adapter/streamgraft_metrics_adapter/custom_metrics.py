"""The objects of custom.metrics.k8s.io, in both of its versions."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal

from streamgraft_common import names
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_metrics_adapter.provider import Reading

GROUP = "custom.metrics.k8s.io"
Version = Literal["v1beta1", "v1beta2"]
VERSIONS: tuple[Version, ...] = ("v1beta2", "v1beta1")
"""Best first: the HPA asks for the preferred version."""
RESOURCE = f"{PARALLEL_REGION.plural}.{names.GROUP}"


def quantity(value: float) -> str:
    """Return a finite number as a Kubernetes quantity, to the nearest thousandth."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no quantity")
    milli = round(value * 1000)
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def metric_value_list(
    version: Version, readings: Iterable[Reading], window_seconds: float
) -> dict[str, Any]:
    """Return a MetricValueList. Raises UnavailableError if one of the readings has no value."""
    return {
        "kind": "MetricValueList",
        "apiVersion": f"{GROUP}/{version}",
        "metadata": {},
        "items": [_item(version, reading, window_seconds) for reading in readings],
    }


def _item(version: Version, reading: Reading, window_seconds: float) -> dict[str, Any]:
    window = round(window_seconds)
    described = {
        "kind": PARALLEL_REGION.kind,
        "namespace": reading.region.namespace,
        "name": reading.region.name,
        "apiVersion": names.API_VERSION,
    }
    common = {
        "describedObject": described,
        "timestamp": timestamp(reading.sampled_at or 0.0),
        "value": quantity(reading.signal().value),
    }
    if version == "v1beta1":
        return {**common, "metricName": reading.metric, "window": window, "selector": None}
    metric = {"name": reading.metric, "selector": None}
    return {**common, "metric": metric, "windowSeconds": window}


def timestamp(unix: float) -> str:
    """Return a Unix time as RFC 3339 to the second, as Kubernetes writes times."""
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def group_list() -> dict[str, Any]:
    """Return what /apis answers."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]}


def group() -> dict[str, Any]:
    """Return what /apis/custom.metrics.k8s.io answers."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group()}


def _group() -> dict[str, Any]:
    versions = [{"groupVersion": f"{GROUP}/{version}", "version": version} for version in VERSIONS]
    return {"name": GROUP, "versions": versions, "preferredVersion": versions[0]}


def resource_list(version: Version, metrics: Iterable[str]) -> dict[str, Any]:
    """Return the resources of a version: one per metric."""
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{version}",
        "resources": [
            {
                "name": f"{RESOURCE}/{metric}",
                "singularName": "",
                "namespaced": True,
                "kind": "MetricValueList",
                "verbs": ["get"],
            }
            for metric in metrics
        ],
    }
