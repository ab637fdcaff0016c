"""OpenAPI documents of the metrics APIs, which the aggregator merges into the cluster's own.

Version 3 is one document per group version; version 2 is one of all. Schemas are those of
k8s.io/metrics, under its names.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from streamgraft_common import VERSION
from streamgraft_metrics_adapter.api import custom_metrics, external_metrics

_INFO = {"title": "Streamgraft metrics adapter", "version": VERSION}
_TEXT = {"type": "string"}
_TIME = {"type": "string", "format": "date-time"}
_SECONDS = {"type": "integer", "format": "int64"}
_QUANTITY = {"type": "string", "description": "A Kubernetes quantity."}
_LABELS = {"type": "object", "additionalProperties": _TEXT}

_STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"

Document = dict[str, Any]

GROUP_VERSIONS = (
    *(f"{custom_metrics.GROUP}/{version}" for version in custom_metrics.VERSIONS),
    f"{external_metrics.GROUP}/{external_metrics.VERSION}",
)


def v3_index() -> Document:
    """Return where the document of each group version is."""
    return {
        "paths": {
            f"apis/{name}": {"serverRelativeURL": f"/openapi/v3/apis/{name}"}
            for name in GROUP_VERSIONS
        }
    }


def v3(group_version: str) -> Document:
    """Return the document of one of `GROUP_VERSIONS`."""
    form = _Form("#/components/schemas/", lambda schema: {"schema": schema}, _content)
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": _paths(group_version, form),
        "components": {"schemas": _schemas(group_version, form)},
    }


def v2() -> Document:
    """Return one document of all group versions."""
    form = _Form("#/definitions/", lambda schema: schema, lambda schema: {"schema": schema})
    paths: Document = {}
    definitions: Document = {}
    for name in GROUP_VERSIONS:
        paths |= _paths(name, form)
        definitions |= _schemas(name, form)
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": definitions}


@dataclass(frozen=True)
class _Form:
    """What the two versions of OpenAPI write differently: references, parameters and answers."""

    references: str
    parameter: Callable[[Document], Document]
    answer: Callable[[Document], Document]

    def reference(self, name: str) -> Document:
        return {"$ref": self.references + name}


def _content(schema: Document) -> Document:
    return {"content": {"application/json": {"schema": schema}}}


def _prefix(group_version: str) -> str:
    group, version = group_version.split("/")
    return f"io.k8s.metrics.pkg.apis.{group.partition('.')[0]}_metrics.{version}."


def _paths(group_version: str, form: _Form) -> Document:
    base = f"/apis/{group_version}"
    answer = f"{_kind(group_version)}List"
    if group_version.startswith(external_metrics.GROUP):
        place = f"{base}/namespaces/{{namespace}}/{{metric}}"
        return {place: _get(group_version, form, answer, place, ["labelSelector"])}
    objects = "{resource}/{name}/{metric}"
    selectors = ["labelSelector", "metricLabelSelector"]
    places = {
        f"{base}/namespaces/{{namespace}}/{objects}": selectors,
        f"{base}/namespaces/{{namespace}}/metrics/{{metric}}": selectors[1:],
        f"{base}/{objects}": selectors,
    }
    return {
        place: _get(group_version, form, answer, place, query) for place, query in places.items()
    }


def _get(
    group_version: str, form: _Form, answer: str, place: str, query: Sequence[str]
) -> Document:
    parameters = [
        *({"name": n, "in": "path", "required": True} for n in re.findall(r"{(\w+)}", place)),
        *({"name": name, "in": "query", "required": False} for name in query),
    ]
    names = "".join(part.title() for part in re.findall(r"\w+", place.removeprefix("/apis/")))
    good = form.reference(_prefix(group_version) + answer)
    bad = form.reference(_STATUS)
    return {
        "get": {
            "operationId": f"read{names}",
            "parameters": [{**item, **form.parameter(_TEXT)} for item in parameters],
            "responses": {
                "200": {"description": "OK", **form.answer(good)},
                "default": {"description": "No value, and why", **form.answer(bad)},
            },
        }
    }


def _kind(group_version: str) -> str:
    external = group_version.startswith(external_metrics.GROUP)
    return "ExternalMetricValue" if external else "MetricValue"


def _schemas(group_version: str, form: _Form) -> Document:
    group, version = group_version.split("/")
    prefix, item = _prefix(group_version), _kind(group_version)
    items = {"type": "array", "items": form.reference(prefix + item)}
    listing = {"kind": _TEXT, "apiVersion": _TEXT, "metadata": {"type": "object"}, "items": items}
    kinds = [{"group": group, "kind": f"{item}List", "version": version}]
    return {
        prefix + item: _object(_item(group_version), ["timestamp", "value"]),
        f"{prefix}{item}List": {
            **_object(listing, ["items"]),
            "x-kubernetes-group-version-kind": kinds,
        },
        _STATUS: _object({"kind": _TEXT, "reason": _TEXT, "message": _TEXT, "code": _SECONDS}, []),
    }


def _item(group_version: str) -> Document:
    common = {"timestamp": _TIME, "value": _QUANTITY}
    described = {"describedObject": _LABELS}
    if group_version.startswith(external_metrics.GROUP):
        return {**common, "metricName": _TEXT, "metricLabels": _LABELS, "window": _SECONDS}
    # Without a type, since it may be null, which version 2 can't say.
    selector = {"description": "A LabelSelector; null selects everything."}
    if group_version.endswith("v1beta1"):
        return {
            **common,
            **described,
            "metricName": _TEXT,
            "window": _SECONDS,
            "selector": selector,
        }
    metric = _object({"name": _TEXT, "selector": selector}, ["name"])
    return {**common, **described, "metric": metric, "windowSeconds": _SECONDS}


def _object(properties: Document, required: Sequence[str]) -> Document:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed}
