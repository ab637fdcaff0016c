"""Health, self metrics, and the OpenAPI documents that the aggregator asks every server for."""

from typing import Any

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from streamgraft_metrics_adapter.api import exposition, openapi
from streamgraft_metrics_adapter.signals.provider import Provider
from streamgraft_metrics_adapter.status import NotFoundError, UnavailableError


def routes(provider: Provider) -> APIRouter:
    """Return the routes that say how the adapter itself is."""
    router = APIRouter(include_in_schema=False)

    @router.get("/healthz")
    @router.get("/livez")
    async def healthy() -> Response:
        return Response("ok", media_type="text/plain")

    @router.get("/readyz")
    async def ready() -> Response:
        if not provider.ready:
            raise UnavailableError("waiting for the list of regions and a first try of Prometheus")
        return Response("ok", media_type="text/plain")

    @router.get("/metrics")
    async def metrics() -> Response:
        text = await exposition.text(provider)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    @router.get("/openapi/v2")
    async def openapi_v2() -> dict[str, Any]:
        return openapi.v2()

    @router.get("/openapi/v3")
    async def openapi_v3() -> dict[str, Any]:
        return openapi.v3_index()

    @router.get("/openapi/v3/apis/{group}/{version}")
    async def openapi_v3_of(group: str, version: str) -> dict[str, Any]:
        if (name := f"{group}/{version}") not in openapi.GROUP_VERSIONS:
            raise NotFoundError(f"{name} is not served here")
        return openapi.v3(name)

    return router
