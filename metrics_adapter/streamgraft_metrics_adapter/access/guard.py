"""Stands before all routes: nobody passes unknown or without permission, except to health checks.

One place for all paths, so that a new route is closed until its path says who may use it.
"""

import functools
import time

from fastapi.responses import JSONResponse
from prometheus_client import Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.access.attributes import (
    OPEN_PATHS,
    attributes_of,
    is_callers_own,
    is_page,
    is_stream,
)
from streamgraft_metrics_adapter.access.authentication import Authenticator
from streamgraft_metrics_adapter.access.authorization import Authorizer
from streamgraft_metrics_adapter.access.limits import DIRECT, PROXIED, address_of
from streamgraft_metrics_adapter.access.shares import Share
from streamgraft_metrics_adapter.access.tls import PEER
from streamgraft_metrics_adapter.status import StatusError, TooLargeError, TooManyError

USER = "user"
"""Key in a request's state: the name of who calls."""
PER_USER = 64
"""Requests at once."""
STREAMS, STREAMS_PER_USER = 64, 16
"""Live views at once: each of them costs as much as a request at every refresh."""


class Guard:
    """ASGI middleware: authenticates, authorizes, and times every request."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._app = app
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._requests = Share(PROXIED + DIRECT, PER_USER)
        self._streams = Share(STREAMS, STREAMS_PER_USER)

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
            await self._pass(scope, receive, noting_code)
        except StatusError as error:
            if isinstance(error, TooManyError | TooLargeError):  # `Limits` sees the answer only
                telemetry.REFUSED.labels(error.reason).inc()
            headers = {"Retry-After": "1"} if isinstance(error, TooManyError) else None
            answer = JSONResponse(error.to_wire(), error.code, headers)
            await answer(scope, receive, noting_code)
        finally:
            seconds = time.perf_counter() - started
            _request_seconds(_route(scope["path"]), code).observe(seconds)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path in OPEN_PATHS or is_page(path):
            await self._app(scope, receive, send)
            return
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        peer = scope["state"].get(PEER)
        user = await self._authenticator.user(peer, headers, address_of(scope))
        share = self._streams if is_stream(path) else self._requests
        with share.place(user.name):
            scope["state"][USER] = user.name
            if not is_callers_own(path):
                await self._authorizer.check(user, attributes_of(scope["method"], path))
            await self._app(scope, receive, send)


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
    if parts[0] == "console":
        return "console"
    if is_stream(path):  # it lasts for minutes, which says nothing of how soon others are answered
        return "stream"
    return "regions" if parts[:2] == ["api", "v1"] else "other"
