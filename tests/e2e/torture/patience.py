"""Requests to an API server that has too much to do now and then."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from streamgraft_common.kube import ApiError, Unreachable

_AGAIN_SECONDS = 0.1
_TOO_MANY = 429
_SERVER_ERROR = 500


async def answered(request: Callable[[], Awaitable[Any]]) -> Any:
    """Return the answer to a request; users, too, try again what finds no ear."""
    while True:
        try:
            return await request()
        except Unreachable:
            pass
        except ApiError as error:
            if error.code < _SERVER_ERROR and error.code != _TOO_MANY:
                raise
        await asyncio.sleep(_AGAIN_SECONDS)
