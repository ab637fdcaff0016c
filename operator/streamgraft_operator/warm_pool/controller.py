"""Drives the conductor of warm pools: keeps the wanted number of drivers waiting for each job."""

import random
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from streamgraft_common import names
from streamgraft_common.adl import Autoscaling
from streamgraft_common.bundle import BundleError
from streamgraft_common.conditions import is_true
from streamgraft_common.kube import ApiError, Conflict
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_common.quantities import parse
from streamgraft_common.resources import (
    JobSpec,
    ParallelRegionSpec,
    ParallelRegionStatus,
    PoolHeld,
    WarmPoolStatus,
)
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator import events, manifests
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.context import Context, owner_of
from streamgraft_operator.graph import GraphError, PlannedPe
from streamgraft_operator.kit.control_loop import (
    Controller,
    Outcome,
    Watch,
    desired_changed,
    either,
    runtime_changed,
)
from streamgraft_operator.kit.coordinator import Patch
from streamgraft_operator.kit.objects import job_key, own_key, pool_key
from streamgraft_operator.kit.parsed import (
    job_spec,
    job_status,
    pe_spec,
    pe_status,
    region_spec,
    region_status,
)
from streamgraft_operator.manifests.pod_settings import pool_memory
from streamgraft_operator.pe.pods import ended_seconds, lacks_room, warm_pod_view
from streamgraft_operator.warm_pool.expectations import FRESH_SECONDS, Expectations
from streamgraft_operator.warm_pool.sizing import Growth, drivers, needed, reason, usual_driver
from streamgraft_operator.warm_pool.step import PoolView, step

Scaled = tuple[ParallelRegionSpec, Autoscaling, ParallelRegionStatus, float]
"""A region that scales itself, and since when it exists (Unix seconds)."""
"""A region whose width an autoscaler sets."""


class WarmPoolController(Controller):
    """Creates and deletes pods that no PE has; the pod conductor gives them to PEs."""

    name = "warm-pool"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caches = context.caches
        self._expectations = Expectations(context.client)
        self._too_large: dict[Key, events.Event] = {}
        """What was said of jobs whose drivers exceed the memory of their pools."""

    @property
    def watches(self) -> Sequence[Watch]:
        """Jobs, their regions, PEs and pods."""
        caches = self._caches
        return (
            Watch(caches.jobs, own_key),
            Watch(caches.regions, job_key),
            Watch(caches.processing_elements, job_key, _work_changed),
            Watch(caches.pods, job_key, either(_of_pool, _room_changed)),
        )

    def rest_seconds(self, key: Key) -> float:
        """Return a time in proportion to the job's size."""
        return self._context.rest_seconds(key)

    async def reconcile(self, key: Key) -> Outcome:
        """Bring the pool of a job to its size."""
        job = self._caches.jobs.get(key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            self._expectations.forget(key)
            self._too_large.pop(key, None)
            return None
        job = await self._context.versions.running(job)
        wanted = job_spec(job).warm_pool or self._scaled(key, job_spec(job))
        if not wanted and not self._caches.pods_by_pool.get(key):
            await self._tell(key, None)
            return None
        try:
            expansion = await self._context.expander.expand(job, self._context.widths_of(key))
        except (BundleError, GraphError):
            return None  # the job says what is wrong
        regions = await self._growing(key, job_spec(job), expansion)
        driver, pe = _typical(expansion, usual_driver(regions))
        spec, settings = expansion.spec, self._context.settings
        make = partial(manifests.warm_pod, pe=pe, owner=owner_of(job), spec=spec, settings=settings)
        try:
            pod_bytes = pool_memory(make("")) if regions else 0
        except manifests.PodForbidden:
            return None  # the Job says why
        if regions:
            self._check_room(key, job, pod_bytes, spec.warm_pool_memory)
        now = time.time()
        # Not earlier: PEs adopt pods while others are waited for.
        pods = {pod["metadata"]["name"]: pod for pod in self._caches.pods_by_pool.get(key)}
        ended = ((name, ended_seconds(pod, now)) for name, pod in pods.items())
        size = _size(spec, regions, driver, now, pod_bytes)
        decision = step(
            PoolView(
                size=size,
                driver=driver,
                calm_seconds=self._calm_seconds(job, key, now),
                pods=tuple(map(warm_pod_view, pods.values())),
                crowded=any(map(lacks_room, self._caches.pods_by_job.get(key))),
                behind=any(map(_is_behind, self._caches.processing_elements_by_job.get(key))),
                ended_seconds=tuple((name, ago) for name, ago in ended if ago is not None),
                at_once=settings.driver_starts,
            )
        )
        told = partial(_told, spec, regions, driver, now, size)
        if not decision.create:  # else it depends on whether they may be
            await self._tell(key, told(decision.held))
        for name in decision.delete:
            # A PE may have adopted it meanwhile. Whatever changes it has this looked at again.
            await self._context.write.pods.delete(pods[name], unchanged=True)
        for _ in range(decision.create):
            try:
                pod = make(names.warm_pod_name(key[1], f"{random.getrandbits(32):08x}"))
            except manifests.PodForbidden:
                return None  # the Job says why
            try:
                await self._context.write.pods.create(pod)
            except ApiError as error:
                if _is_refusal(error):
                    await self._tell(key, told("Refused"))
                raise
        if decision.create:
            await self._tell(key, told(decision.held))
        times = [decision.again_in, FRESH_SECONDS if regions else None]
        return min((seconds for seconds in times if seconds is not None), default=None)

    async def _tell(self, key: Key, told: WarmPoolStatus | None) -> None:
        """Say in the Job's status how large the pool should be."""

        def command(job: Object) -> Patch | None:
            if job_status(job).warm_pool == told:
                return None
            return {"status": {"warmPool": told.to_wire() if told else None}}

        await self._context.write.jobs.update(key, command, status=True)

    def _scaled(self, key: Key, job: JobSpec) -> dict[str, Scaled]:
        """Return the regions of a job whose width an autoscaler sets, if its pool goes by them.

        A region that sleeps is to cost nothing, so nothing waits for it.
        """
        if isinstance(job.warm_pool, int):
            return {}
        return {
            item["metadata"]["name"]: (spec, spec.autoscaling, region_status(item), _created(item))
            for item in self._caches.regions_by_job.get(key)
            if (spec := region_spec(item)).autoscaling
            and spec.autoscaling.mode == "scale"
            and spec.width > 0
        }

    def _check_room(self, key: Key, job: Object, pod_bytes: int, budget: str) -> None:
        """Say so, once, if not even one driver may wait."""
        if pod_bytes <= int(parse(budget)):
            self._too_large.pop(key, None)
            return
        event = events.pool_lacks_memory(pod_bytes, budget)
        if self._too_large.get(key) != event:
            self._too_large[key] = event
            self._context.recorder.record(job, event)

    async def _growing(self, key: Key, job: JobSpec, expansion: Expansion) -> list[Growth]:
        if not (scaled := self._scaled(key, job)):
            return []
        expected = await self._expectations.widths(key, scaled)
        drivers = self._drivers(key, expansion)
        return [
            Growth(
                width=status.width,
                most=autoscaling.largest_width(spec.max_width),
                drivers=drivers.get(spec.region, ()),
                changes=status.changes,
                created=created,
                expected=expected.get(name, 0),
            )
            # Read again: regions have grown while the policies were asked.
            for name, (spec, autoscaling, status, created) in self._scaled(key, job).items()
        ]

    def _drivers(self, key: Key, expansion: Expansion) -> Mapping[str, Sequence[str]]:
        """Return the drivers of a channel of each region; "" where no warm pod will do."""
        items = self._caches.processing_elements_by_job.get(key)
        special = {pe_spec(item).pe_id for item in items if not manifests.is_generic(item)}
        found: dict[str, list[str]] = {}
        for pe in expansion.topology.pes:
            if pe.region and pe.channel == 0:
                driver = "" if pe.pe_id in special else _driver(expansion, pe)
                found.setdefault(pe.region, []).append(driver)
        return found

    def _calm_seconds(self, job: Object, key: Key, now: float) -> float | None:
        regions = map(region_status, self._caches.regions_by_job.get(key))
        resizing = any(is_true(status.conditions, "Resizing") for status in regions)
        if resizing or job_status(job).phase != "Healthy":
            return None
        began = map(_running_since, self._caches.processing_elements_by_job.get(key))
        firsts = [first for of_pe in began for first in of_pe]
        return None if None in firsts else now - max(filter(None, firsts), default=0.0)


def _is_refusal(error: ApiError) -> bool:
    """Return whether a pod may not be: not so if the server, or others at it, are busy."""
    return not (error.passes or isinstance(error, Conflict))


def _created(item: Object) -> float:
    return from_rfc3339(item["metadata"]["creationTimestamp"])


def _driver(expansion: Expansion, pe: PlannedPe) -> str:
    return expansion.contents[pe.pe_id].pool(expansion.bundle.digest)


def _typical(expansion: Expansion, driver: str | None) -> tuple[str, PlannedPe]:
    """Return a driver, by default the one that most PEs of the job have, and a PE that has it."""
    pes = [(_driver(expansion, pe), pe) for pe in expansion.topology.pes]
    driver = driver or Counter(driver for driver, _ in pes).most_common(1)[0][0]
    return driver, dict(pes)[driver]


def _size(spec: JobSpec, regions: Sequence[Growth], driver: str, now: float, pod_bytes: int) -> int:
    """Return how many pods should wait. `spec` is that of an expansion."""
    if isinstance(spec.warm_pool, int):
        return spec.warm_pool
    return drivers(regions, driver, now, pod_bytes, int(parse(spec.warm_pool_memory)))


def _told(
    spec: JobSpec, regions: Sequence[Growth], driver: str, now: float, size: int, held: PoolHeld
) -> WarmPoolStatus | None:
    if isinstance(spec.warm_pool, int) and spec.warm_pool:
        return WarmPoolStatus(size=size, needed=size, reason="Asked", held=held)
    if not regions:
        return None
    why, most = reason(regions, driver, now), needed(regions, driver, now)
    return WarmPoolStatus(size=size, needed=most, reason=why, held=held)


_work_changed = either(desired_changed, runtime_changed("shards", "behind"))
"""Whether a PE came, went, or may run other shards, or its pod says that it does, or is behind."""


def _is_behind(pe: Object) -> bool:
    runtime = pe_status(pe).runtime
    return runtime is not None and runtime.behind


def _of_pool(old: Object | None, new: Object | None) -> bool:
    return any(item is not None and pool_key(item) for item in (old, new))


def _room_changed(old: Object | None, new: Object | None) -> bool:
    before, after = (item is not None and lacks_room(item) for item in (old, new))
    return before != after


def _running_since(pe: Object) -> Iterable[float | None]:
    """Yield the Unix times of the first batches of a PE's shards; None: there was none yet."""
    status = pe_status(pe)
    held = status.runtime.shards if status.runtime else {}
    for shard in pe_spec(pe).shards:
        entry = held.get(str(shard))
        yield from_rfc3339(entry.first_batch_at) if entry and entry.first_batch_at else None
