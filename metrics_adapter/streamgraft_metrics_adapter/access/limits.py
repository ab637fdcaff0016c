"""Stands before the guard: bounds what callers, known or not, can make the adapter do at once."""

import asyncio

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.access.attributes import OPEN_PATHS, is_stream
from streamgraft_metrics_adapter.status import (
    StatusError,
    TimedOutError,
    TooLargeError,
    TooManyError,
)

BODY_BYTES = 64 * 1024
"""The largest body that anything here needs is a width."""
UNDER_WAY = 256
"""Requests at once, those that wait for the API server's reviews included."""
SECONDS = 30.0
"""For a request, streams excepted."""


class Limits:
    """ASGI middleware: size, number at once, and duration of requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with a Status."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        answering = _Answering(send)
        try:
            await self._bounded(scope, receive, answering)
        except StatusError as error:
            telemetry.REFUSED.labels(error.reason).inc()
            if not answering.started:
                headers = {"Retry-After": "1"} if isinstance(error, TooManyError) else None
                answer = JSONResponse(error.to_wire(), error.code, headers)
                await answer(scope, receive, send)

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._under_way >= UNDER_WAY:
            raise TooManyError(f"{UNDER_WAY} requests are under way: try again in a second")
        self._under_way += 1
        try:
            async with asyncio.timeout(None if is_stream(scope["path"]) else SECONDS):
                await self._app(scope, _bounded_body(scope, receive), send)
        except TimeoutError as error:
            raise TimedOutError(f"no answer within {SECONDS:g} s") from error
        finally:
            self._under_way -= 1


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
