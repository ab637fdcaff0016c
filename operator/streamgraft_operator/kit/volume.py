"""Files on the operator's checkpoint volume: it may be NFS, which takes minutes for many, or never
answers."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator.kit.external_calls import PARALLEL, ExternalCalls

_LONGEST_PAUSE_SECONDS = 30.0

_Answer = TypeVar("_Answer")


class Volume:
    """The volume, mounted at `root`; None: the operator does not see it."""

    def __init__(self, root: Path | None, external_calls: ExternalCalls) -> None:
        self.root = root
        self._external = external_calls
        # Not those of asyncio.to_thread: everything else needs them. Each purpose has its own, as
        # many as calls of it are let through: a volume that never answers may take all of them.
        self._threads: defaultdict[str, ThreadPoolExecutor] = defaultdict(
            lambda: ThreadPoolExecutor(PARALLEL, thread_name_prefix="volume")
        )

    async def ask(
        self, item: Object, purpose: str, work: Callable[[], _Answer], *, wanted: str = ""
    ) -> _Answer:
        """Return what `work` does for an object; it is begun once for what is `wanted`. Raises
        UnderWay while it goes on, or what it raised."""

        async def call() -> _Answer:
            loop = asyncio.get_running_loop()
            answer = loop.run_in_executor(self._threads[purpose], work)
            try:
                return await asyncio.shield(answer)
            except asyncio.CancelledError:
                # No thread can be stopped: until it ends it counts as a call of its namespace.
                await asyncio.wait({answer})
                raise

        return await self._external.ask(
            key_of(item),
            purpose,
            f"{item['metadata']['uid']} {wanted}",
            call,
            longest_pause_seconds=_LONGEST_PAUSE_SECONDS,
        )

    def forget(self, key: Key, purpose: str) -> None:
        """Wait no longer for the work for an object that is gone."""
        self._external.forget(key, purpose)
