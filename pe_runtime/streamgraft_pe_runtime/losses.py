"""Records that retention deleted before they were read: counted, and reported in the PE's status.

The lag forgets them: behind what is gone nothing waits.
"""

import asyncio
import logging
import threading
import time
from collections import Counter

from streamgraft_common.kube import ApiError, KubeClient, Store, Unreachable
from streamgraft_common.kube.store import key_of
from streamgraft_common.resources import PROCESSING_ELEMENT, LostRecords, ProcessingElementStatus
from streamgraft_common.timestamps import to_rfc3339

log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0


class Losses:
    """What was lost, by topic and partition; for use by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted_to: dict[tuple[str, int], int] = {}
        self._unreported: Counter[str] = Counter()

    def count(self, key: tuple[str, int], position: int, start: int) -> int:
        """Return how many records of a partition are newly lost.

        `position`: the next one to be read; `start`: the first that the log still has.
        """
        lost = start - max(position, self._counted_to.get(key, position))
        if lost <= 0:
            return 0
        with self._lock:
            self._counted_to[key] = start
            self._unreported[key[0]] += lost
        return lost

    def unreported(self) -> Counter[str]:
        """Return the losses that are not in the status yet, by topic, and forget them."""
        with self._lock:
            unreported, self._unreported = self._unreported, Counter()
        return unreported

    def put_back(self, unreported: Counter[str]) -> None:
        """Report them the next time."""
        with self._lock:
            self._unreported += unreported


async def report(losses: Losses, client: KubeClient, store: Store) -> None:
    """Add losses to the status of our PE, until cancelled; `store` holds it."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        for item in store.items():
            if not (unreported := losses.unreported()):
                break
            known = ProcessingElementStatus.model_validate(item.get("status", {})).runtime
            before = known.lost.topics if known and known.lost else {}
            topics = dict(Counter(before) + unreported)
            now = to_rfc3339(time.time())
            lost = LostRecords(topics=topics, last_at=now)
            try:
                path = PROCESSING_ELEMENT.path(*key_of(item))
                patch = {"status": {"runtime": {"lost": lost.to_wire()}}}
                store.observe(await client.patch(f"{path}/status", patch))
            except (ApiError, Unreachable) as error:
                log.warning("lost records not reported, again in a moment: %s", error)
                losses.put_back(unreported)
