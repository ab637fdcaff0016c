"""One shard: its query is kept running until the shard is released.

Starting → Running → Stopping → released; Failed while a query that failed waits for its restart.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol

from streamgraft_common.resources import Release, ShardStatus
from streamgraft_pe_runtime import failures
from streamgraft_pe_runtime.positions import read_checkpoint

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_FIRST_TRIGGER_POLL_SECONDS = 0.05
_FIRST_DELAY_SECONDS = 1.0
_LAST_DELAY_SECONDS = 30.0
_HEALED_SECONDS = 60.0


class Running(Protocol):
    """A query that was started. All calls block; they come from worker threads."""

    def first_trigger_done(self) -> bool:
        """Tell whether the first trigger since the start has completed."""

    def failure(self) -> str | None:
        """Return why the query ended by itself, None if it runs."""

    def stop(self, deadline_seconds: float) -> bool:
        """Stop at a batch boundary; False if the deadline passed and a batch was cut off."""


def now() -> str:
    """Return the time as RFC 3339 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
    checkpoint: Path
    start: Callable[[], Running]
    """Starts the query; blocks."""
    changed: Callable[["Shard"], None]
    is_ours: Callable[[int], Awaitable[bool]]
    """Asks the API server itself whether our PE may run a shard; False if it does not answer."""
    """Called after each change of the status."""
    query: Running | None = None
    restarts: int = 0
    start_seconds: float | None = None
    """How long the last start took, to the end of its first trigger."""
    stop_seconds: float | None = None
    status: ShardStatus = field(init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _deadline_seconds: float | None = None
    _replan_seconds: float | None = None
    _asked_at: str | None = None

    def __post_init__(self) -> None:
        self.status = ShardStatus(state="Starting", epoch=self.epoch)

    def release(self, deadline_seconds: float) -> None:
        """Ask for a stop at a batch boundary, within the deadline."""
        self._deadline_seconds = deadline_seconds
        self._asked_at = self._asked_at or now()
        self._wake.set()

    @property
    def releasing(self) -> bool:
        """True once `release` was called."""
        return self._deadline_seconds is not None

    def replan(self, deadline_seconds: float) -> None:
        """Start the query anew at a batch boundary, within the deadline: its plan changed."""
        self._replan_seconds = deadline_seconds
        self._wake.set()

    def renew(self, epoch: int) -> None:
        """Take note that we own the shard in a newer epoch too."""
        if epoch == self.epoch:
            return
        self.epoch = epoch
        self._set(self.status.state, message=self.status.message)
        self._wake.set()

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
            self._set("Failed", message=failures.summary(failure))
            if failures.is_fenced(failure):
                await self._confirmed()
            else:
                delay = next_delay(delay, ran) if self.restarts else _FIRST_DELAY_SECONDS
                await self._woken(delay)
            self.restarts += 1
        return await self._released()

    async def _run_once(self) -> str | None:
        """Start the query and watch it; returns its failure, None when asked to stop it."""
        loop = asyncio.get_running_loop()
        self._replan_seconds = None
        self._set("Starting", message=self.status.message)
        began = loop.time()
        try:
            self.query = await asyncio.to_thread(self.start)
        except Exception as error:  # whatever user code or Spark raises is a state, not a crash
            return str(error) or repr(error)
        started_at, waiting = now(), True
        log.info("shard %d started in %.3f s", self.number, loop.time() - began)
        while not self.releasing and self._replan_seconds is None:
            if failure := await asyncio.to_thread(self.query.failure):
                return failure
            if waiting and await asyncio.to_thread(self.query.first_trigger_done):
                waiting = False
                self.start_seconds = loop.time() - began
                log.info(
                    "shard %d ran its first batch after %.3f s", self.number, self.start_seconds
                )
                self._set("Running", started_at=started_at, first_batch_at=now())
            elif waiting and self.status.state != "Running":
                self._set("Running", started_at=started_at, message=self.status.message)
            await self._woken(_FIRST_TRIGGER_POLL_SECONDS if waiting else _POLL_SECONDS)
        return None

    async def _released(self) -> Release:
        self._set("Stopping")
        began = asyncio.get_running_loop().time()
        in_time = await self._stop_query(self._deadline_seconds or 0)
        self.stop_seconds = asyncio.get_running_loop().time() - began
        log.info("shard %d stopped in %.3f s", self.number, self.stop_seconds)
        checkpoint = await asyncio.to_thread(read_checkpoint, self.checkpoint)
        return Release(
            epoch=self.epoch,
            released_at=now(),
            last_batch_at=self._asked_at,
            clean=in_time and checkpoint.clean,
        )

    async def _stop_query(self, deadline_seconds: float) -> bool:
        query, self.query = self.query, None
        if query is None:
            return True
        try:
            return await asyncio.to_thread(query.stop, deadline_seconds)
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
        if not self.releasing:
            self._wake.clear()

    def _set(
        self,
        state: Literal["Starting", "Running", "Stopping", "Failed"],
        *,
        started_at: str | None = None,
        first_batch_at: str | None = None,
        message: str = "",
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
            message=message,
        )
        if new != old:
            self.status = new
            self.changed(self)
