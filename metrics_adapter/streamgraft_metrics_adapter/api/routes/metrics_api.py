"""custom.metrics.k8s.io and external.metrics.k8s.io.

A plain ASGI application: HPAs ask here all the time, the schema (`openapi`) is Kubernetes', and a
framework's own work would be most of an answer.
"""

import json
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from streamgraft_common import names
from streamgraft_common.kinds import NAMESPACE
from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.api import custom_metrics, external_metrics, wire
from streamgraft_metrics_adapter.api.catalog import Catalog
from streamgraft_metrics_adapter.api.custom_metrics import Version
from streamgraft_metrics_adapter.api.routes.answers import region_answer
from streamgraft_metrics_adapter.objects import REGIONS
from streamgraft_metrics_adapter.status import MethodNotAllowedError, NotFoundError, StatusError

CUSTOM, EXTERNAL = custom_metrics.GROUP, external_metrics.GROUP
GROUPS = {CUSTOM: custom_metrics.VERSIONS, EXTERNAL: (external_metrics.VERSION,)}

Document = dict[str, Any]

_FRESHNESS = {group: telemetry.FRESHNESS_SECONDS.labels(group) for group in GROUPS}


class MetricsApi:
    """Everything below /apis."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            if scope["method"] not in ("GET", "HEAD"):
                raise MethodNotAllowedError("metrics can only be read")
            query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            code, document = 200, self._document(scope["path"], query)
        except StatusError as error:
            code, document = error.code, error.to_wire()
        body = json.dumps(document).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send(
            {"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body}
        )

    def _document(self, path: str, query: dict[str, str]) -> Document:
        match [part for part in path.split("/") if part][1:]:
            case []:
                return wire.group_list(GROUPS.items())
            case [group] if group in GROUPS:
                return wire.group(group, GROUPS[group])
            case [group, version, *rest] if group == CUSTOM:
                return self._custom(_version(version), rest, query)
            case [group, version, *rest] if (group, version) == (
                EXTERNAL,
                external_metrics.VERSION,
            ):
                return self._external(rest, query)
        raise NotFoundError(f"{path} not found")

    def _custom(self, version: Version, parts: list[str], query: dict[str, str]) -> Document:
        labels = query.get("metricLabelSelector", "")
        match parts:
            case []:
                return custom_metrics.resource_list(version, self._catalog.metrics())
            case ["namespaces", name, "metrics", metric]:
                items = [self._catalog.namespace_item(name, metric, labels)]
            case ["namespaces", namespace, resource, "*", metric]:
                selector = query.get("labelSelector", "")
                items = self._catalog.items(resource, namespace, selector, metric, labels)
            case ["namespaces", namespace, REGIONS.qualified, name, names.EXPLANATION]:
                return self._explanation(namespace, name)
            case ["namespaces", namespace, resource, name, metric]:
                items = [self._catalog.item(resource, namespace, name, metric, labels)]
            case [resource, "*", metric] if resource != NAMESPACE.qualified:
                selector = query.get("labelSelector", "")
                items = self._catalog.items(resource, "", selector, metric, labels)
            case [resource, name, metric] if resource != NAMESPACE.qualified:
                items = [self._catalog.item(resource, "", name, metric, labels)]
            case _:
                raise NotFoundError(
                    "metrics are at [namespaces/<namespace>/]<resource>.<group>/<name>/<metric>"
                    " and namespaces/<namespace>/metrics/<metric>"
                )
        _observe_freshness(CUSTOM, (item.sampled_at for item in items))
        return custom_metrics.metric_value_list(version, items)

    def _explanation(self, namespace: str, name: str) -> Document:
        """Return a region as REST tells it (`/api/v1`).

        It is no metric, so discovery does not list it. Here whoever sees a region's signals gets it
        through the API server, without a way to this server's own port.
        """
        answer = region_answer(*self._catalog.region(namespace, name))
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)

    def _external(self, parts: list[str], query: dict[str, str]) -> Document:
        match parts:
            case []:
                return external_metrics.resource_list(self._catalog.external_metrics())
            case ["namespaces", namespace, metric]:
                selector = query.get("labelSelector", "")
                window, values = self._catalog.external(namespace, metric, selector)
                _observe_freshness(EXTERNAL, (value.sampled_at for value in values))
                return external_metrics.value_list(metric, window, values)
        raise NotFoundError("external metrics are at namespaces/<namespace>/<metric>")


def _version(wanted: str) -> Version:
    for version in custom_metrics.VERSIONS:
        if version == wanted:
            return version
    raise NotFoundError(f"{CUSTOM} has no version {wanted}")


def _observe_freshness(group: str, times: Iterable[float]) -> None:
    now, freshness = time.time(), _FRESHNESS[group]
    for sampled_at in times:
        freshness.observe(now - sampled_at)
