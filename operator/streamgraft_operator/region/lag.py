"""The controller of lags: asks Kafka how many records wait for the regions that sleep.

The PEs of a region say it themselves. One without PEs would have no signals, so nothing would wake
it.
"""

import asyncio
import logging
import time
from collections.abc import Sequence

from streamgraft_common import names
from streamgraft_common.bundle import BundleError
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_operator.context import Context
from streamgraft_operator.graph import GraphError, PlannedPe
from streamgraft_operator.kafka.client import Brokers, KafkaUnavailable, Position
from streamgraft_operator.kit.control_loop import Again, Controller, Outcome, Watch
from streamgraft_operator.kit.external_calls import UnderWay
from streamgraft_operator.kit.leadership import NotLeading
from streamgraft_operator.kit.objects import own_key
from streamgraft_operator.kit.parsed import region_spec, region_status
from streamgraft_operator.region.lag_metrics import LagCollector, StagePosition

log = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 2.0
RENEW_SECONDS = 3600.0
"""How often the positions of a region that sleeps are committed again: brokers forget those that
nobody has committed for a week (`offsets.retention.minutes`), and then the whole log waits."""


class LagController(Controller):
    """Keyed by region. What it finds is kept for Prometheus, and written nowhere."""

    name = "lag"

    def __init__(self, context: Context, lags: LagCollector) -> None:
        self._context = context
        self._caches = context.caches
        self._lags = lags
        self._renewed: dict[Key, float] = {}

    @property
    def watches(self) -> Sequence[Watch]:
        """Regions: they fall asleep and wake up in their status."""
        return (Watch(self._caches.regions, own_key, _slept_or_woke),)

    async def reconcile(self, key: Key) -> Outcome:
        """Look where the logs of a region that sleeps end."""
        region = self._caches.regions.get(key)
        job = await self._context.running_job_of(region) if region else None
        if region is None or job is None or not region_status(region).asleep:
            self._context.external_calls.forget(key, "lag")
            self._lags.forget(key)
            self._renewed.pop(key, None)
            return None
        try:
            found, read_at = await self._context.external_calls.ask(
                key,
                "lag",
                "",
                lambda: self._positions(job, region),
                longest_pause_seconds=LOOK_AGAIN_SECONDS,
            )
            self._lags.remember(key, found, read_at)
        except UnderWay:
            return LOOK_AGAIN_SECONDS
        except (BundleError, GraphError):
            self._lags.forget(key)
            return Again.WITH_BACKOFF  # the job says what is wrong
        except KafkaUnavailable as error:
            log.warning("lag of region %s/%s: %s", *key, error)
            self._lags.forget(key)  # no value is an error, and the width is held
        return LOOK_AGAIN_SECONDS

    async def _positions(self, job: Object, region: Object) -> tuple[list[StagePosition], float]:
        """Return the positions, and since when they are true (time.monotonic())."""
        read_at = time.monotonic()
        spec = region_spec(region)
        name = spec.region
        expansion = await self._context.expander.expand(job, {name: spec.width})
        stages = [pe for pe in expansion.topology.stages if pe.region == name]
        # Not at once: what its PEs published last may not have come yet.
        renew = read_at - self._renewed.setdefault(key_of(region), read_at) >= RENEW_SECONDS
        found = await asyncio.gather(*(self._of_stage(job, pe, renew=renew) for pe in stages))
        if renew:
            self._renewed[key_of(region)] = read_at
        return [position for positions in found for position in positions], read_at

    async def _of_stage(self, job: Object, pe: PlannedPe, *, renew: bool) -> list[StagePosition]:
        tls = await self._context.kafka_tls.of(job)
        group = names.consumer_group(*key_of(job), pe.stage_name)
        shards = pe.metadata.shard_count
        found: list[StagePosition] = []
        for port in pe.metadata.inputs:
            brokers = Brokers(port.bootstrap_servers, tls if port.tls else ())
            positions = await self._context.kafka.positions(brokers, group, {port.topic: shards})
            if renew:
                await self._renew(brokers, group, positions)
            found += [StagePosition(str(pe.stage), position) for position in positions]
        return found

    async def _renew(self, brokers: Brokers, group: str, positions: Sequence[Position]) -> None:
        try:
            await self._context.kafka.renew(brokers, group, positions)
        except (KafkaUnavailable, NotLeading) as error:  # the lag is known all the same
            log.warning("positions of %s not renewed: %s", group, error)


def _slept_or_woke(old: Object | None, new: Object | None) -> bool:
    return _asleep(old) != _asleep(new)


def _asleep(region: Object | None) -> bool:
    return region is not None and region_status(region).asleep
