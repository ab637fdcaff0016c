"""Health, self metrics, and the OpenAPI documents that the aggregator asks every server for."""

from typing import Any

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from streamgraft_common import VERSION
from streamgraft_metrics_adapter.provider import Provider
from streamgraft_metrics_adapter.status import UnavailableError

_INFO = {"title": "Streamgraft metrics adapter", "version": VERSION}


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
            raise UnavailableError(
                "waiting for the list of regions and a first answer of Prometheus"
            )
        return Response("ok", media_type="text/plain")

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    @router.get("/openapi/v2")
    async def openapi_v2() -> dict[str, Any]:
        # The aggregator merges it into the cluster's own; metrics have no schema to add.
        return {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": {}}

    @router.get("/openapi/v3")
    async def openapi_v3() -> dict[str, Any]:
        return {"paths": {}}

    return router
