"""`status.runtime` of our PE: written by us, and by nobody else."""

import asyncio
import logging
from collections.abc import Callable

from streamgraft_common.kube import ApiError, KubeClient, NotFound, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PROCESSING_ELEMENT, RuntimeStatus
from streamgraft_pe_runtime.protocol.element import Element
from streamgraft_pe_runtime.protocol.runtime_status import applied, merge_patch

log = logging.getLogger(__name__)

_RETRY_SECONDS = (0.2, 5.0)


class Reporter:
    """Writes our status whenever it has changed. With the API server away it tries again."""

    def __init__(
        self, client: KubeClient, pod_uid: str, status: Callable[[], RuntimeStatus]
    ) -> None:
        self._client = client
        self._pod_uid = pod_uid
        self._status = status
        self._element: Element | None = None
        self._known: Object = {}
        """What may be in `status.runtime`."""
        self._disowned = False
        self._dirty = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        """For the write of what was to be said when they came."""

    def changed(self) -> None:
        """Write the status soon."""
        self._dirty.set()

    async def told(self) -> None:
        """Write the status soon, and return once the API server has it as it is now."""
        told = asyncio.get_running_loop().create_future()
        self._waiting.append(told)
        self._dirty.set()
        await told

    def disown(self) -> None:
        """Report nothing more: our pod is gone, and another one reports of our PE."""
        self._disowned = True

    def leave(self) -> None:
        """Report nothing more on our PE: it is not ours any more."""
        self._element, self._known = None, {}

    def follow(self, element: Element) -> None:
        """Note what the API server has of us."""
        if element.runtime.get("podUid") != self._pod_uid:
            self._dirty.set()  # not written yet, or over it by a pod that is gone but still runs
        self._known = element.runtime or self._known
        self._element = element

    async def run(self) -> None:
        """Write whenever the status has changed, until cancelled."""
        delay = _RETRY_SECONDS[0]
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            if await self.write():
                delay = _RETRY_SECONDS[0]
            else:
                self._dirty.set()
                await asyncio.sleep(delay)
                delay = min(delay * 2, _RETRY_SECONDS[1])

    async def write(self) -> bool:
        """Write the status now; False if it may not have arrived.

        Who waits until the API server has it goes on waiting where there is nobody to tell: the
        ProcessingElement may come again, with what it is told then.
        """
        if self._element is None or self._disowned:
            return True  # there is nobody to tell
        waiting = list(self._waiting)
        patch = merge_patch(self._known, self._status())
        try:
            path = PROCESSING_ELEMENT.path(*self._element.key) + "/status"
            answer = await self._client.patch(path, patch)
        except NotFound:
            return True  # deleted: nobody reads it any more
        except (ApiError, Unreachable) as error:
            self._known = applied(self._known, patch)
            log.warning("status not written: %s", error)
            return False
        self._known = answer["status"].get("runtime") or {}
        for told in waiting:
            if not told.done():  # else who waited has given up
                told.set_result(None)
        self._waiting = [told for told in self._waiting if not told.done()]
        return True
