"""One shard: its query is kept running until the shard is released.

Starting → Running → Stopping → released; Failed while a query that failed waits for its restart.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from streamgraft_common.resources import Release, ShardStatus
from streamgraft_pe_runtime.protocol import failures
from streamgraft_pe_runtime.protocol.clock import now
from streamgraft_pe_runtime.protocol.work import Query, Stage, Telemetry

log = logging.getLogger(__name__)

_FIRST_DELAY_SECONDS = 1.0
_LAST_DELAY_SECONDS = 30.0
_HEALED_SECONDS = 60.0

State = Literal["Starting", "Running", "Stopping", "Failed"]


def next_delay(delay: float, ran_seconds: float) -> float:
    """Return how long to wait before the next restart, after a run of some length."""
    if ran_seconds >= _HEALED_SECONDS:
        return _FIRST_DELAY_SECONDS
    return min(delay * 2, _LAST_DELAY_SECONDS)


@dataclass
class Shard:
    """Keeps one shard's query running: `run()` until `release()` was asked for."""

    number: int
    epoch: int
    """Epoch of the newest spec that names the shard."""
    stage: Stage
    changed: Callable[[], None]
    """Called after each change of the status."""
    is_ours: Callable[[int], Awaitable[bool]]
    """Asks the API server itself whether our PE may run a shard; False if it does not answer."""
    telemetry: Telemetry
    status: ShardStatus = field(init=False)
    stop_seconds: float = 0.0
    """How long the stop took."""
    _query: Query | None = None
    _restarts: int = 0
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _deadline_seconds: float | None = None
    _replan_seconds: float | None = None
    _asked_at: str | None = None
    _failed_run: str | None = None

    def __post_init__(self) -> None:
        self.status = ShardStatus(state="Starting", epoch=self.epoch)

    @property
    def releasing(self) -> bool:
        """True once `release` was called."""
        return self._deadline_seconds is not None

    def release(self, deadline_seconds: float) -> None:
        """Ask for a stop at a batch boundary, within the deadline."""
        self._deadline_seconds = deadline_seconds
        self._asked_at = self._asked_at or now()
        self._wake.set()

    def replan(self, stage: Stage, deadline_seconds: float) -> None:
        """Start the query anew at a batch boundary, within the deadline: its plan changed."""
        self.stage = stage
        self._replan_seconds = deadline_seconds
        self._wake.set()

    def renew(self, epoch: int) -> None:
        """Take note that we own the shard in a newer epoch too."""
        if epoch != self.epoch:
            self.epoch = epoch
            self._go_on(self.status.state)
            self._wake.set()  # who waits to start again does so at once

    async def run(self) -> Release:
        """Run the shard until it is released, and tell how it ended."""
        delay = _FIRST_DELAY_SECONDS
        while not self.releasing:
            began = asyncio.get_running_loop().time()
            failure = await self._run_once()
            if failure is None:
                if not self.releasing:
                    await self._stop_query(self._replan_seconds or 0)
                continue
            ran = asyncio.get_running_loop().time() - began
            log.warning("shard %d failed: %s", self.number, failure)
            await self._stop_query(0)
            self._failed_run = self.status.started_at or self._failed_run
            said = failures.explained(failure)
            self._set("Failed", message=said.message, reason=said.reason)
            self.telemetry.failed(self.number)
            if failures.is_fenced(failure):
                await self._confirmed()
            else:
                delay = next_delay(delay, ran) if self._restarts else _FIRST_DELAY_SECONDS
                await self._woken(delay)
            self._restarts += 1
        return await self._released()

    async def _run_once(self) -> str | None:
        """Start the query and watch it; return its failure, None when asked to stop it."""
        loop = asyncio.get_running_loop()
        self._replan_seconds = None
        self._go_on("Starting")
        began = loop.time()
        try:
            self._query = query = await self.stage.start(self.number, self.epoch)
        except Exception as error:  # whatever user code or Spark raises is a state, not a crash
            return str(error) or repr(error)
        log.info("shard %d started in %.3f s", self.number, loop.time() - began)
        started_at = now()
        self._go_on("Running", started_at)
        first = asyncio.ensure_future(query.first_batch())
        failed = asyncio.ensure_future(query.failure())
        try:
            while not self.releasing and self._replan_seconds is None:
                await self._woken_or_done({failed, first} if not first.done() else {failed})
                if failed.done():
                    return failed.result()
                if first.done() and self.status.first_batch_at is None:
                    first.result()
                    seconds = loop.time() - began
                    log.info("shard %d ran its first batch after %.3f s", self.number, seconds)
                    self.telemetry.started(seconds)
                    self._set("Running", started_at=started_at, first_batch_at=now())
        except Exception as error:  # the JVM may be gone
            return str(error) or repr(error)
        finally:
            first.cancel()
            failed.cancel()
        return None

    async def _released(self) -> Release:
        self._set("Stopping")
        began = asyncio.get_running_loop().time()
        in_time = await self._stop_query(self._deadline_seconds or 0)
        self.stop_seconds = asyncio.get_running_loop().time() - began
        log.info("shard %d stopped in %.3f s", self.number, self.stop_seconds)
        return Release(
            epoch=self.epoch, released_at=now(), last_batch_at=self._asked_at, clean=in_time
        )

    async def _stop_query(self, deadline_seconds: float) -> bool:
        query, self._query = self._query, None
        if query is None:
            return True
        try:
            return await query.stop(deadline_seconds)
        except Exception as error:  # the JVM may be gone: then nothing runs any more
            log.warning("shard %d: stop failed: %s", self.number, error)
            return False

    async def _confirmed(self) -> None:
        """Wait until the shard is known to be ours: another owner wrote to the checkpoint.

        Of two owners one has an outdated spec, and it may be the one whose query survived.
        """
        await self._woken(_FIRST_DELAY_SECONDS)
        while not self.releasing and not await self.is_ours(self.number):
            await self._woken(_FIRST_DELAY_SECONDS)

    async def _woken(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return
        self._wake.clear()

    async def _woken_or_done(
        self, futures: set[asyncio.Future[None] | asyncio.Future[str]]
    ) -> None:
        """Wait until we are asked for something, or one of the futures is done."""
        woken = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait({*futures, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
        self._wake.clear()

    def _go_on(self, state: State, started_at: str | None = None) -> None:
        """Set a state in which what failed last may fail again."""
        old = self.status
        self._set(state, started_at=started_at, message=old.message, reason=old.reason)

    def _set(
        self,
        state: State,
        *,
        started_at: str | None = None,
        first_batch_at: str | None = None,
        message: str = "",
        reason: str = "",
    ) -> None:
        old = self.status
        if state in ("Stopping", "Failed"):
            started_at, first_batch_at = old.started_at, old.first_batch_at
        if state == old.state == "Running":
            started_at = started_at or old.started_at
            first_batch_at = first_batch_at or old.first_batch_at
        new = ShardStatus(
            state=state,
            epoch=self.epoch,
            started_at=started_at,
            first_batch_at=first_batch_at,
            failed_run=self._failed_run,
            message=message,
            reason=reason,
        )
        if new != old:
            self.status = new
            self.changed()
