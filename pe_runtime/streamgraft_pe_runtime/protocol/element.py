"""Our ProcessingElement, as the API server last showed it.

Which one is ours is not known at the start: it is the one that names our pod. It stays ours when it
names another pod, or is deleted; then ours is about to be ended, and goes on until it is.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from streamgraft_common import names
from streamgraft_common.kube import Store
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_common.resources import ProcessingElementSpec, ProcessingElementStatus

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Element:
    """One state of our PE."""

    key: Key
    """Namespace and name."""
    launch_count: int
    """The launch that our pod is of."""
    content: str
    """What the PE is made of (its annotation); empty if that is not said yet."""
    spec: ProcessingElementSpec
    status: ProcessingElementStatus
    runtime: Object
    """`status.runtime` as it is written."""


class OwnElement:
    """Follows our PE. `store` holds the PE that names our pod, once there is one, and runs."""

    def __init__(self, store: Store) -> None:
        self.now: Element | None = None
        """The newest state; None until a PE names our pod."""
        self._listeners: list[Callable[[Element], None]] = []
        self._changed = asyncio.Event()
        store.listen(lambda key, _, item: self._seen(key, item))

    def listen(self, listener: Callable[[Element], None]) -> None:
        """Call a listener with the newest state now, if there is one, and after each change."""
        self._listeners.append(listener)
        if self.now is not None:
            listener(self.now)

    async def with_content_after(self, content: str) -> Element:
        """Wait until our PE has another content than this one."""
        while self.now is None or self.now.content == content:
            self._changed.clear()
            await self._changed.wait()
        return self.now

    def _seen(self, key: Key, item: Object | None) -> None:
        if item is None:
            return  # deleted, or it names another pod: we go on until SIGTERM
        status = item.get("status") or {}
        if self.now is None:
            log.info("launch %d of %s", status["launchCount"], key[1])
        self.now = Element(
            key=key if self.now is None else self.now.key,
            launch_count=status["launchCount"] if self.now is None else self.now.launch_count,
            content=item["metadata"].get("annotations", {}).get(names.ANNOTATION_CONTENT, ""),
            spec=ProcessingElementSpec.model_validate(item["spec"]),
            status=ProcessingElementStatus.model_validate(status),
            runtime=status.get("runtime") or {},
        )
        self._changed.set()
        for listener in self._listeners:
            listener(self.now)
