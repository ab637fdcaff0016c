"""The application: limits, guard, routes; errors are Status objects."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from streamgraft_common import VERSION
from streamgraft_common.kube import ApiError
from streamgraft_common.kube.config import KubeConfig
from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.access.authentication import Authenticator
from streamgraft_metrics_adapter.access.authorization import Authorizer
from streamgraft_metrics_adapter.access.guard import Guard
from streamgraft_metrics_adapter.access.limits import Limits
from streamgraft_metrics_adapter.access.sessions import Sessions, SessionsAsTokens
from streamgraft_metrics_adapter.api.catalog import Catalog
from streamgraft_metrics_adapter.api.console.routes import add_console
from streamgraft_metrics_adapter.api.routes import health, regions
from streamgraft_metrics_adapter.api.routes.metrics_api import MetricsApi
from streamgraft_metrics_adapter.signals.provider import Provider
from streamgraft_metrics_adapter.status import StatusError, TooLargeError, status

_REASONS = {404: "NotFound", 405: "MethodNotAllowed"}


def application(
    provider: Provider,
    catalog: Catalog,
    cluster: KubeConfig,
    authenticator: Authenticator,
    authorizer: Authorizer,
) -> ASGIApp:
    """Return the application as it is served."""
    sessions = Sessions()
    guarded = Guard(routed(provider, catalog, cluster, sessions), authenticator, authorizer)
    return Limits(SessionsAsTokens(guarded, sessions), authenticator.is_front_proxy)


def routed(
    provider: Provider, catalog: Catalog, cluster: KubeConfig, sessions: Sessions
) -> ASGIApp:
    """Return what is behind the guard: the metrics APIs, and FastAPI for all else."""
    metrics, rest = MetricsApi(catalog), _rest(provider, cluster, sessions)

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        of_metrics = scope["path"].split("/", 2)[1] == "apis"
        await (metrics if of_metrics else rest)(scope, receive, send)

    return route


def _rest(provider: Provider, cluster: KubeConfig, sessions: Sessions) -> FastAPI:
    app = FastAPI(
        title="Streamgraft metrics adapter",
        version=VERSION,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.include_router(regions.routes(provider, cluster))
    app.include_router(health.routes(provider))
    add_console(app, cluster, sessions)
    app.add_exception_handler(StatusError, _status_error)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    return app


async def _status_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StatusError)
    return JSONResponse(error.to_wire(), error.code)


async def _api_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    return JSONResponse(status(error.code, error.reason, error.message), error.code)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # An unknown version in the path is an unknown path; all else is in the query or the body.
    code = 404 if any(part["loc"][0] == "path" for part in error.errors()) else 422
    message = "; ".join(f"{part['loc'][-1]}: {part['msg']}" for part in error.errors())
    return JSONResponse(status(code, "NotFound" if code == 404 else "Invalid", message), code)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, TooLargeError):  # FastAPI says that it could not read the body
        telemetry.REFUSED.labels(error.__cause__.reason).inc()
        return await _status_error(request, error.__cause__)
    reason = _REASONS.get(error.status_code, "Unknown")
    return JSONResponse(status(error.status_code, reason, str(error.detail)), error.status_code)
