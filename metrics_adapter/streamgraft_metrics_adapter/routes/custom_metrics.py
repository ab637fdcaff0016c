"""custom.metrics.k8s.io, v1beta1 and v1beta2."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from streamgraft_metrics_adapter import custom_metrics, selectors, telemetry
from streamgraft_metrics_adapter.custom_metrics import GROUP, Version
from streamgraft_metrics_adapter.provider import Provider, Reading
from streamgraft_metrics_adapter.status import NotFoundError

LabelSelector = Annotated[str, Query(alias="labelSelector")]


def routes(provider: Provider) -> APIRouter:
    """Return the routes of the custom metrics API."""
    router = APIRouter(include_in_schema=False)

    @router.get("/apis")
    async def groups() -> dict[str, Any]:
        return custom_metrics.group_list()

    @router.get(f"/apis/{GROUP}")
    async def group() -> dict[str, Any]:
        return custom_metrics.group()

    @router.get(f"/apis/{GROUP}/{{version}}")
    async def resources(version: Version) -> dict[str, Any]:
        return custom_metrics.resource_list(version, provider.names())

    @router.get(
        f"/apis/{GROUP}/{{version}}/namespaces/{{namespace}}/{{resource}}/{{name}}/{{metric}}"
    )
    async def metric(
        version: Version,
        namespace: str,
        resource: str,
        name: str,
        metric: str,
        label_selector: LabelSelector = "",
    ) -> dict[str, Any]:
        if resource != custom_metrics.RESOURCE:
            raise NotFoundError(f"{resource} has no metrics here: {custom_metrics.RESOURCE} has")
        if name == "*":
            selector = selectors.parse(label_selector)
            readings = provider.by_selector(namespace, selector, metric)
        else:
            readings = [provider.by_name(namespace, name, metric)]
        answer = custom_metrics.metric_value_list(version, readings, provider.window_seconds)
        _observe_freshness(readings)
        return answer

    return router


def _observe_freshness(readings: list[Reading]) -> None:
    for reading in readings:
        if reading.age is not None:
            telemetry.FRESHNESS_SECONDS.labels(GROUP).observe(reading.age)
