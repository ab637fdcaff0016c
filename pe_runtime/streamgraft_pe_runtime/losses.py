"""Records that retention deleted before they were read: counted, and reported in the PE's status.

The lag forgets them: behind what is gone nothing waits.
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass

from streamgraft_common.kube import ApiError, KubeClient, Store, Unreachable
from streamgraft_common.kube.store import key_of
from streamgraft_common.resources import PROCESSING_ELEMENT, LostRecords, ProcessingElementStatus
from streamgraft_common.timestamps import to_rfc3339

log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0


@dataclass(frozen=True)
class Gap:
    """Records of a partition that a query went past: they were gone."""

    partition: tuple[str, int]
    """Topic and number."""
    position: int
    """The next one that was to be read."""
    start: int
    """The first that was left."""


class Losses:
    """What was lost, by topic and partition; for use by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted_to: dict[tuple[str, int], int] = {}
        self._unreported: Counter[str] = Counter()

    def count(self, gap: Gap) -> int:
        """Return how many records are newly lost; a gap may grow, and be counted as it does."""
        key = gap.partition
        lost = gap.start - max(gap.position, self._counted_to.get(key, gap.position))
        if lost <= 0:
            return 0
        with self._lock:
            self._counted_to[key] = gap.start
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
