"""A volume of copies is kept up by those who see it: what nobody needs goes, and its blobs.

The operator does this in S3 and Redis (savepoint/repositories.py).
"""

import logging
import threading
import time
from collections.abc import Callable

from streamgraft_common.repositories import (
    Collector,
    RepositoryUnavailable,
    Store,
    Unreadable,
    manifest,
)
from streamgraft_common.repositories.manifest import COLLECT_SECONDS
from streamgraft_common.resources import Saving
from streamgraft_pe_runtime.earlier_cuts import earlier, tells_what_is_kept

log = logging.getLogger(__name__)


class Upkeep:
    """What a PE does for the copies of its namespace when it has saved its part of a cut."""

    def __init__(
        self, store: Store, namespace: str, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock`: Unix time."""
        self._store = store
        self._namespace = namespace
        self._clock = clock
        self._collector = Collector(store, namespace)
        self._busy = threading.Lock()
        self._span = -1

    def begin(self, request: Saving) -> threading.Thread:
        """Do all of it in a thread: a region stands still until its cut is complete."""
        thread = threading.Thread(target=self._run, args=(request,), name="upkeep", daemon=True)
        thread.start()
        return thread

    def _run(self, request: Saving) -> None:
        if not self._busy.acquire(blocking=False):
            return  # the next cut comes soon
        try:
            if tells_what_is_kept(request):
                self._mark(request)
            self._collect()
        except (RepositoryUnavailable, Unreadable) as error:
            log.warning("old copies could not be removed: %s", error)
        finally:
            self._busy.release()

    def _mark(self, request: Saving) -> None:
        """Mark earlier cuts that nobody keeps as ones that may go."""
        found = manifest.read(
            self._namespace, self._store.keys(manifest.savepoints(self._namespace))
        )
        there = {(share.savepoint, share.uid) for share in found.shares} - found.removed.keys()
        old = set(earlier({name for name, _ in there}, request))
        for name, uid in sorted(there):
            if name in old:
                log.info("the copy of cut %s is kept by nobody", name)
                self._collector.remove(name, uid)

    def _collect(self) -> None:
        """Remove what has been marked for long, and blobs that nothing names, if it is our turn:
        one PE of a namespace collects in each span of COLLECT_SECONDS."""
        now = self._clock()
        span = int(now // COLLECT_SECONDS)
        if span == self._span:
            return
        self._span = span
        turns = f"{self._namespace}/turns/"
        if not self._store.create(f"{turns}{span}", b""):  # another PE does it
            return
        count = self._collector.collect(now)
        log.info("%d blobs were garbage among the copies", count)
        keys = (item.key for item in self._store.keys(turns))
        self._store.delete([key for key in keys if key != f"{turns}{span}"])
