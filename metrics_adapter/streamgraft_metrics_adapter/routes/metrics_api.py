"""custom.metrics.k8s.io and external.metrics.k8s.io.

Plain Starlette routes: HPAs ask here all the time, and the schema (`openapi`) is Kubernetes'.
"""

import json
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streamgraft_metrics_adapter import custom_metrics, external_metrics, telemetry, wire
from streamgraft_metrics_adapter.catalog import Catalog
from streamgraft_metrics_adapter.custom_metrics import Version
from streamgraft_metrics_adapter.objects import NAMESPACES
from streamgraft_metrics_adapter.status import NotFoundError

CUSTOM = f"/apis/{custom_metrics.GROUP}"
EXTERNAL = f"/apis/{external_metrics.GROUP}"
GROUPS = (
    (custom_metrics.GROUP, custom_metrics.VERSIONS),
    (external_metrics.GROUP, (external_metrics.VERSION,)),
)

Answer = Callable[[Request], dict[str, Any]]


def routes(catalog: Catalog) -> list[Route]:
    """Return the routes of both APIs."""
    api = _Api(catalog)
    answers: list[tuple[str, Answer]] = [
        ("/apis", lambda request: wire.group_list(GROUPS)),
        *((f"/apis/{name}", _group(name, versions)) for name, versions in GROUPS),
        (f"{CUSTOM}/{{version}}", api.custom_resources),
        (f"{CUSTOM}/{{version}}/namespaces/{{namespace}}/metrics/{{metric}}", api.of_namespace),
        (f"{CUSTOM}/{{version}}/namespaces/{{namespace}}/{{resource}}/{{name}}/{{metric}}", api.of),
        (f"{CUSTOM}/{{version}}/{{resource}}/{{name}}/{{metric}}", api.of),
        (f"{EXTERNAL}/{external_metrics.VERSION}", api.external_resources),
        (
            f"{EXTERNAL}/{external_metrics.VERSION}/namespaces/{{namespace}}/{{metric}}",
            api.external,
        ),
    ]
    return [Route(path, _endpoint(answer), methods=["GET"]) for path, answer in answers]


def _endpoint(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return Response(json.dumps(answer(request)), media_type="application/json")

    return endpoint


def _group(name: str, versions: tuple[str, ...]) -> Answer:
    return lambda request: wire.group(name, versions)


class _Api:
    """The answers that depend on the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def custom_resources(self, request: Request) -> dict[str, Any]:
        return custom_metrics.resource_list(_version(request), self._catalog.metrics())

    def external_resources(self, request: Request) -> dict[str, Any]:
        return external_metrics.resource_list(self._catalog.external_metrics())

    def of(self, request: Request) -> dict[str, Any]:
        version, path, query = _version(request), request.path_params, request.query_params
        resource, name, metric = path["resource"], path["name"], path["metric"]
        namespace = path.get("namespace", "")
        labels = query.get("metricLabelSelector", "")
        if resource == NAMESPACES.qualified:
            raise NotFoundError("namespaces are at namespaces/<name>/metrics/<metric>")
        if name == "*":
            selector = query.get("labelSelector", "")
            items = self._catalog.items(resource, namespace, selector, metric, labels)
        else:
            items = [self._catalog.item(resource, namespace, name, metric, labels)]
        _observe_freshness(custom_metrics.GROUP, (item.sampled_at for item in items))
        return custom_metrics.metric_value_list(version, items)

    def of_namespace(self, request: Request) -> dict[str, Any]:
        version, path = _version(request), request.path_params
        labels = request.query_params.get("metricLabelSelector", "")
        item = self._catalog.namespace_item(path["namespace"], path["metric"], labels)
        _observe_freshness(custom_metrics.GROUP, [item.sampled_at])
        return custom_metrics.metric_value_list(version, [item])

    def external(self, request: Request) -> dict[str, Any]:
        path, selector = request.path_params, request.query_params.get("labelSelector", "")
        window, values = self._catalog.external(path["namespace"], path["metric"], selector)
        _observe_freshness(external_metrics.GROUP, (value.sampled_at for value in values))
        return external_metrics.value_list(path["metric"], window, values)


def _version(request: Request) -> Version:
    wanted = request.path_params["version"]
    for version in custom_metrics.VERSIONS:
        if version == wanted:
            return version
    raise NotFoundError(f"{custom_metrics.GROUP} has no version {wanted}")


def _observe_freshness(group: str, times: Iterable[float]) -> None:
    now = time.time()
    for sampled_at in times:
        telemetry.FRESHNESS_SECONDS.labels(group).observe(now - sampled_at)
