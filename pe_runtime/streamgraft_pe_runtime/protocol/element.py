"""Our ProcessingElement, as the API server last showed it.

Which one is ours is not known at the start: it is the one that names our pod. It stays ours when it
names another pod, or is deleted; then ours is about to be ended, and goes on until it is. If it is
deleted while we hold nothing of it, our pod may be back in the warm pool, and another name it.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

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
    uid: str
    launch_count: int
    """The launch that our pod is of."""
    content: str
    """What the PE is made of (its annotation); empty if that is not said yet."""
    spec: ProcessingElementSpec
    status: ProcessingElementStatus
    runtime: Object
    """`status.runtime` as it is written."""


class OwnElement:
    """Follows our PE. `store` holds the PE that names our pod, once there is one, and runs.

    `let_go` lets go of our PE, unless something of it is still held, and returns whether it did.
    """

    def __init__(self, store: Store, let_go: Callable[[], bool]) -> None:
        self.now: Element | None = None
        """The newest state; None until a PE names our pod."""
        self._let_go = let_go
        self._left: set[str] = set()
        """uids of PEs that were ours."""
        self._listeners: list[Callable[[Element], None]] = []
        self._changed = asyncio.Event()
        store.listen(lambda key, _, item: self._seen(key, item))

    def listen(self, listener: Callable[[Element], None]) -> None:
        """Call a listener with the newest state now, if there is one, and after each change."""
        self._listeners.append(listener)
        if self.now is not None:
            listener(self.now)

    async def other_than(self, uid: str, content: str) -> Element:
        """Wait until our PE is another one, or has another content."""
        while self.now is None or (self.now.uid, self.now.content) == (uid, content):
            self._changed.clear()
            await self._changed.wait()
        return self.now

    def _seen(self, key: Key, item: Object | None) -> None:
        if item is None:
            if self.now is not None and self.now.key == key:
                self._leave()  # else we go on until SIGTERM
            return
        uid = item["metadata"]["uid"]
        if uid in self._left:
            return
        status = item.get("status") or {}
        try:
            spec = ProcessingElementSpec.model_validate(item["spec"])
            said = ProcessingElementStatus.model_validate(status)
        except ValidationError as error:  # as an edit that is refused: what runs goes on
            log.error("%s can't be read, and stays as it was: %s", key[1], error)
            return
        if self.now is not None and self.now.uid != uid and not self._leave():
            # As with one that was made anew under our PE's name while our pod is being ended.
            log.warning("%s names our pod, which still works for another one", key[1])
            return
        if self.now is None:
            log.info("launch %d of %s", status["launchCount"], key[1])
        self.now = Element(
            key=key,
            uid=uid,
            launch_count=status["launchCount"] if self.now is None else self.now.launch_count,
            content=item["metadata"].get("annotations", {}).get(names.ANNOTATION_CONTENT, ""),
            spec=spec,
            status=said,
            runtime=status.get("runtime") or {},
        )
        self._changed.set()
        for listener in self._listeners:
            listener(self.now)

    def _leave(self) -> bool:
        """Forget our PE if nothing of it is held any more; return whether it is so."""
        assert self.now is not None
        if not self._let_go():
            return False
        log.info("%s is no longer ours, and we hold nothing of it", self.now.key[1])
        self._left.add(self.now.uid)
        self.now = None
        return True
