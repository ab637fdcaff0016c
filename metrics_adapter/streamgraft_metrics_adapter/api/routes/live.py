"""Live views: server-sent events, one after each refresh, all of the same form."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse

from streamgraft_metrics_adapter.api.routes.answers import region_answer
from streamgraft_metrics_adapter.regions import Region
from streamgraft_metrics_adapter.signals.provider import Provider
from streamgraft_metrics_adapter.status import StatusError
from streamgraft_metrics_adapter.time_slices import in_slices

SECONDS = 300.0
"""After which a stream ends; browsers then connect again, and prove anew who they are."""
_LOOK_SECONDS = 0.5
_SHARED_SECONDS = 5.0

Regions = Callable[[], list[Region]]
"""The regions to show now; a StatusError if there is nothing any more."""


class EventStream(StreamingResponse):
    """An answer of server-sent events."""

    media_type = "text/event-stream"


class LiveViews:
    """Live views; `provider` tells when there is something new, `clock` seconds."""

    def __init__(self, provider: Provider, clock: Callable[[], float] = time.monotonic) -> None:
        self._provider, self._clock = provider, clock
        self._answers: dict[int, tuple[Region, str]] = {}
        self._answers_of: float | None = None
        self._answered_at = 0.0

    def stream(self, regions: Regions) -> EventStream:
        """Return the events: `refresh`, with the regions as a page."""
        return EventStream(self._events(regions))

    async def _events(self, regions: Regions) -> AsyncIterator[str]:
        try:
            async with asyncio.timeout(SECONDS):
                yield "retry: 1000\n\n"
                while True:
                    shown = self._provider.evaluated_at
                    yield f"event: refresh\ndata: {await self._page(regions())}\n\n"
                    while self._provider.evaluated_at == shown:
                        await asyncio.sleep(_LOOK_SECONDS)
        except (TimeoutError, StatusError):
            # What is shown may be gone by now; the client hears of it when it connects again.
            return

    async def _page(self, regions: list[Region]) -> str:
        """Return a `Page` of all the regions as JSON, in time slices, as they may be many."""
        items = [self._answer(region) async for region in in_slices(regions)]
        return f'{{"items":[{",".join(items)}]}}'

    def _answer(self, region: Region) -> str:
        """Return a region as JSON, which all streams share until the next refresh, or not as long:
        signals become stale without one."""
        evaluated_at, now = self._provider.evaluated_at, self._clock()
        if self._answers_of != evaluated_at or now - self._answered_at > _SHARED_SECONDS:
            self._answers_of, self._answered_at = evaluated_at, now
            self._answers.clear()
        if id(region) not in self._answers:
            answer = region_answer(region, self._provider.read_all(region))
            text = answer.model_dump_json(by_alias=True, exclude_none=True)
            # With the region, as an id is another's once its object is gone.
            self._answers[id(region)] = region, text
        return self._answers[id(region)][1]
