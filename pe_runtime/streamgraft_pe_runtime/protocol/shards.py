"""The shards that we hold: taken up and released as the newest spec says."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from streamgraft_common.resources import ProcessingElementSpec, Release, ShardStatus
from streamgraft_pe_runtime.protocol.shard import Shard
from streamgraft_pe_runtime.protocol.work import Left, Stage, Telemetry

log = logging.getLogger(__name__)

HANDOVER_SECONDS = 120.0
"""How long a shard that moves may take to its batch boundary before its batch is cut off."""

_CUT_OFF_SECONDS = 4.0
"""For a batch that is cut off to end, and for positions to be published."""


class Shards:
    """Compares what the newest spec wants with what runs. Shards start and stop side by side."""

    def __init__(
        self,
        stage: Stage,
        releases: Mapping[str, Release],
        changed: Callable[[], None],
        is_ours: Callable[[int], Awaitable[bool]],
        telemetry: Telemetry,
    ) -> None:
        self.stage = stage
        self.epoch = 0
        """Epoch of the last spec that was fully applied."""
        self.releases = dict(releases)
        """The last release of every shard that our PE ever held, by number."""
        self._wanted: frozenset[int] = frozenset()
        self._wanted_epoch = 0
        self._withheld: frozenset[int] = frozenset()
        self._changed = changed
        self._is_ours = is_ours
        self._telemetry = telemetry
        self._held: dict[int, tuple[Shard, asyncio.Task[None]]] = {}
        self._stop_seconds: float | None = None
        self._publishes = True

    @property
    def held(self) -> frozenset[int]:
        """The shards that we hold."""
        return frozenset(self._held)

    def follow(self, spec: ProcessingElementSpec, withheld: frozenset[int] = frozenset()) -> None:
        """Take up and release shards as a spec says; nothing more once we stop.

        `withheld`: shards that may not be taken up yet.
        """
        self._withheld = withheld
        self._wanted, self._wanted_epoch = frozenset(spec.shards), spec.epoch
        self._reconcile()

    def replan(self, stage: Stage) -> None:
        """Start all queries anew from a new plan, each at its own batch boundary."""
        self.stage = stage
        for shard, _ in self._held.values():
            shard.replan(stage, HANDOVER_SECONDS)

    async def stop(self, deadline_seconds: float) -> None:
        """Release all shards, at batch boundaries if the deadline allows it.

        A shard that can't be cut off soon behind it stays ours until our pod is gone.
        """
        self._stop_seconds = deadline_seconds
        self._reconcile()
        if tasks := [task for _, task in self._held.values()]:
            done, _ = await asyncio.wait(tasks, timeout=deadline_seconds + _CUT_OFF_SECONDS)
            for task in done:
                task.result()

    def mute(self) -> None:
        """Publish nothing more: another pod speaks for our PE."""
        self._publishes = False

    def statuses(self) -> dict[int, ShardStatus]:
        """Return the status of each shard that we hold, by number."""
        loads = self.stage.loads()
        found: dict[int, ShardStatus] = {}
        for number, (shard, _) in sorted(self._held.items()):
            load = loads.get(number)
            update = {"busy": load.busy, "lag": load.lag} if load else {}
            found[number] = shard.status.model_copy(update=update)
        return found

    def _reconcile(self) -> None:
        stopping = self._stop_seconds is not None
        wanted: frozenset[int] = frozenset() if stopping else self._wanted
        for number in sorted(wanted - self._held.keys() - self._withheld):
            self._take_up(number)
        for number, (shard, _) in self._held.items():
            if number not in wanted:
                shard.release(
                    HANDOVER_SECONDS if self._stop_seconds is None else self._stop_seconds
                )
            elif not shard.releasing:
                shard.renew(self._wanted_epoch)
        self._settle()

    def _take_up(self, number: int) -> None:
        shard = Shard(
            number,
            self._wanted_epoch,
            self.stage,
            self._on_change,
            self._is_ours,
            self._telemetry,
        )
        if former := self.releases.get(str(number)):
            # Should we die, this is all that tells that the shard did not stop.
            self.releases[str(number)] = former.model_copy(update={"resumed": True})
        task = asyncio.create_task(self._live(shard), name=f"shard-{number}")
        self._held[number] = shard, task
        self._telemetry.held(len(self._held))
        self._changed()

    def _on_change(self) -> None:
        self._changed()
        self._settle()

    def _settle(self) -> None:
        """Note the epoch as applied once every wanted shard has been started, and no other runs."""
        if self._stop_seconds is not None or self.epoch == self._wanted_epoch:
            return
        serving = {
            number
            for number, (shard, _) in self._held.items()
            if shard.status.first_batch_at and not shard.releasing
        }
        if serving == self._wanted == self._held.keys():
            self.epoch = self._wanted_epoch
            self._changed()

    async def _live(self, shard: Shard) -> None:
        """Run a shard to its release: stop, publish positions if all go, then let go of it."""
        release = await shard.run()
        # If all shards go, the region may fall asleep: nobody takes this one up for long.
        last = self._stop_seconds is not None or not self._wanted
        try:
            left = await shard.stage.leave(shard.number, publish=last and self._publishes)
        except Exception as error:  # nobody could take the shard up as long as it is not released
            log.warning("shard %d: where it ended is not known: %r", shard.number, error)
            left = Left(clean=False, last_batch_at=None)
        # A shard without data has no new batch, but it served until it was asked to stop.
        served_until = max(left.last_batch_at or "", release.last_batch_at or "") or None
        clean = release.clean and left.clean
        self._telemetry.stopped(shard.stop_seconds, clean=clean)
        # It counts for the epoch that took the shard away.
        epoch = max(release.epoch, self._wanted_epoch)
        update = {"epoch": epoch, "last_batch_at": served_until, "clean": clean}
        self.releases[str(shard.number)] = release.model_copy(update=update)
        log.info("shard %d released", shard.number)
        del self._held[shard.number]
        self._telemetry.held(len(self._held))
        self._changed()
        self._reconcile()  # it may have been wanted back while it stopped
