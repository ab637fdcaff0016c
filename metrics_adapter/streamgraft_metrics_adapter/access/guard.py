"""Stands before all routes: nobody passes unknown or without permission, except to health checks.

One place for all paths, so that a new route is closed until its path says who may use it.
"""

import functools
import time

from fastapi.responses import JSONResponse
from prometheus_client import Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.access.attributes import OPEN_PATHS, attributes_of
from streamgraft_metrics_adapter.access.authentication import Authenticator
from streamgraft_metrics_adapter.access.authorization import Authorizer
from streamgraft_metrics_adapter.access.tls import PEER
from streamgraft_metrics_adapter.status import StatusError


class Guard:
    """ASGI middleware: authenticates, authorizes, and times every request."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._app = app
        self._authenticator = authenticator
        self._authorizer = authorizer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer with a Status."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, code = time.perf_counter(), 0

        async def noting_code(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            await self._check(scope)
            await self._app(scope, receive, noting_code)
        except StatusError as error:
            answer = JSONResponse(error.to_wire(), error.code)
            await answer(scope, receive, noting_code)
        finally:
            seconds = time.perf_counter() - started
            _request_seconds(_route(scope["path"]), code).observe(seconds)

    async def _check(self, scope: Scope) -> None:
        path: str = scope["path"]
        if path in OPEN_PATHS:
            return
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        user = await self._authenticator.user(scope["state"].get(PEER), headers)
        await self._authorizer.check(user, attributes_of(scope["method"], path))


@functools.cache
def _request_seconds(route: str, code: int) -> Histogram:
    return telemetry.REQUEST_SECONDS.labels(route, str(code))


def _route(path: str) -> str:
    """Return a name for the kind of path: few of them, whatever callers send."""
    parts = path.strip("/").split("/")
    if path in OPEN_PATHS or path == "/metrics":
        return parts[0]
    if parts[0] == "apis":
        return "metric" if len(parts) > 4 else "discovery"
    return "regions" if parts[:2] == ["api", "v1"] else "other"
