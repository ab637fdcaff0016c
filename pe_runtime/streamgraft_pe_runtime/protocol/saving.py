"""Copies of checkpoints, as the spec asks for them.

A rollback is asked for no more once it has ended, whoever ended it. What is put in the place of
checkpoints by then is put there all the same: until that is over, nobody may run these shards.
"""

import asyncio
import logging
from collections.abc import Callable, Collection

from streamgraft_common.resources import Saved, Saving
from streamgraft_pe_runtime.protocol.work import CopyDamaged, Stage

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 2.0


class Saver:
    """Copies what the newest spec asks for, once for each savepoint; tries again what failed."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.saved: Saved | None = None
        """How far the last request was fulfilled."""
        self.putting_back: frozenset[int] = frozenset()
        """Shards whose checkpoints are being replaced with what a cut has."""
        self._changed = changed
        self._copying: asyncio.Task[None] | None = None

    @property
    def copying(self) -> bool:
        """Whether something is being copied."""
        return self._copying is not None and not self._copying.done()

    def follow(self, request: Saving | None, stage: Stage, in_use: Collection[int] = ()) -> None:
        """Begin what is asked for, unless it is done or something is being copied.

        `in_use`: shards that run, or are to. Their checkpoints are not replaced.
        """
        if request is None or self.copying:
            return
        going_back = request.commit and request.rolls_back_to is not None
        if going_back and not set(request.shards).isdisjoint(in_use):
            return
        saved = self.saved
        if saved is None or saved.uid != request.uid or saved.message or _is_more(request, saved):
            name = f"saving-{request.savepoint}"
            self.putting_back = frozenset(request.shards) if going_back else frozenset()
            self._copying = asyncio.create_task(self._copy(request, stage), name=name)

    async def _copy(self, request: Saving, stage: Stage) -> None:
        """Copy; after a failure wait before the task ends, so that the next one is not at once."""
        try:
            try:
                self.saved = await stage.save(request)
            finally:
                self.putting_back = frozenset()
        except Exception as error:  # of whatever kind, it is told and tried again
            message = str(error) or repr(error)
            log.warning("savepoint %s: %s", request.savepoint, message)
            damaged = isinstance(error, CopyDamaged)
            self.saved = Saved(uid=request.uid, message=message, damaged=damaged)
            self._changed()
            await asyncio.sleep(_AGAIN_SECONDS)
        # Behind the end of this task: whoever hears of it may ask for the next copy.
        asyncio.get_running_loop().call_soon(self._changed)


def _is_more(request: Saving, saved: Saved) -> bool:
    """Return whether a commit is asked for that was not made yet, or shards that came later."""
    return (request.commit and not saved.committed) or not set(request.shards) <= set(saved.shards)
