"""Live views: server-sent events, one after each refresh."""

import asyncio
from collections.abc import AsyncIterator, Callable

from streamgraft_metrics_adapter.provider import Provider
from streamgraft_metrics_adapter.status import StatusError, TooManyError

STREAMS = 64
"""At once: each of them costs as much as a request at every refresh."""
SECONDS = 300.0
"""After which a stream ends; browsers then connect again, and prove anew who they are."""
_LOOK_SECONDS = 0.5


class LiveViews:
    """The open streams; `provider` tells when there is something new."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._open = 0

    def events(self, document: Callable[[], str]) -> AsyncIterator[str]:
        """Return the events, each with the document as it then is. Raises TooManyError."""
        if self._open >= STREAMS:
            raise TooManyError(f"{STREAMS} live views are open: close one, or try again later")
        return self._events(document)

    async def _events(self, document: Callable[[], str]) -> AsyncIterator[str]:
        self._open += 1
        try:
            async with asyncio.timeout(SECONDS):
                yield "retry: 1000\n\n"
                while True:
                    shown = self._provider.evaluated_at
                    yield f"event: refresh\ndata: {document()}\n\n"
                    while self._provider.evaluated_at == shown:
                        await asyncio.sleep(_LOOK_SECONDS)
        except (TimeoutError, StatusError):
            # What is shown may be gone by now; the client hears of it when it connects again.
            return
        finally:
            self._open -= 1
