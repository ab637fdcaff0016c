"""What one request may cost, and how many may be under way: before anything else is known of it.

The API server's front proxy has places of its own, so nobody who calls straight keeps an HPA from
its metrics; of the others each address has a share. Health checks need no place.
"""

import asyncio
from collections.abc import Callable

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.access.attributes import OPEN_PATHS, is_stream
from streamgraft_metrics_adapter.access.shares import Share
from streamgraft_metrics_adapter.access.tls import PEER
from streamgraft_metrics_adapter.status import (
    StatusError,
    TimedOutError,
    TooLargeError,
    TooManyError,
)

BODY_BYTES = 64 * 1024
"""The largest body that anything here needs is a width."""
PROXIED, DIRECT = 256, 128
"""Requests at once, those that wait for the API server's reviews included: through the front proxy,
and straight."""
PER_ADDRESS = 64
"""Of those that come straight. Live views count for themselves."""
SECONDS = 30.0
"""For a request, streams excepted."""


class Limits:
    """ASGI middleware: size, number at once, and duration of requests.

    `is_front_proxy` tells whether a client certificate (DER, or None) is the API server's.
    """

    def __init__(self, app: ASGIApp, is_front_proxy: Callable[[bytes | None], bool]) -> None:
        self._app = app
        self._is_front_proxy = is_front_proxy
        self._proxied = Share(PROXIED, PROXIED)
        self._direct = Share(DIRECT, PER_ADDRESS)
        self._streams = Share(DIRECT, PER_ADDRESS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with a Status."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        answering = _Answering(send)
        try:
            with self._share(scope).place(address_of(scope)):
                await self._bounded(scope, receive, answering)
        except StatusError as error:
            telemetry.REFUSED.labels(error.reason).inc()
            if not answering.started:
                headers = {"Retry-After": "1"} if isinstance(error, TooManyError) else None
                answer = JSONResponse(error.to_wire(), error.code, headers)
                await answer(scope, receive, send)

    def _share(self, scope: Scope) -> Share:
        if self._is_front_proxy(scope.get("state", {}).get(PEER)):
            return self._proxied
        return self._streams if is_stream(scope["path"]) else self._direct

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(None if is_stream(scope["path"]) else SECONDS):
                await self._app(scope, _bounded_body(scope, receive), send)
        except TimeoutError as error:
            raise TimedOutError(f"no answer within {SECONDS:g} s") from error


def address_of(scope: Scope) -> str:
    """Return the address that a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else ""


class _Answering:
    """Sends, and knows whether it is too late for another answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        self.started = True
        await self._send(message)


def _bounded_body(scope: Scope, receive: Receive) -> Receive:
    declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if not declared.isdigit() or int(declared) > BODY_BYTES:
        raise TooLargeError(f"the body is larger than {BODY_BYTES} bytes")
    left = BODY_BYTES

    async def bounded() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise TooLargeError(f"the body is larger than {BODY_BYTES} bytes")
        return message

    return bounded
