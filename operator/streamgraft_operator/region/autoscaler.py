"""Keeps the HorizontalPodAutoscaler of each region with an `autoscaling`."""

import math
from collections.abc import Sequence

from streamgraft_common.kinds import AUTOSCALER
from streamgraft_common.kube import Invalid
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_operator import events
from streamgraft_operator.context import Context
from streamgraft_operator.kit.control_loop import Controller, Outcome, Watch, desired_changed
from streamgraft_operator.kit.coordinator import Patch, replacing
from streamgraft_operator.kit.objects import is_owned_by, own_key, scaled_region
from streamgraft_operator.kit.parsed import obstacle, region_spec
from streamgraft_operator.manifests.autoscaler import (
    autoscaler,
    has_tolerance,
    without_tolerance,
)


class AutoscalerController(Controller):
    """Keyed by region. A user's own autoscaler of a region has precedence: there is only one."""

    name = "autoscaler"

    def __init__(self, context: Context) -> None:
        self._caches = context.caches
        self._write = context.write.autoscalers
        self._write_regions = context.write.regions
        self._recorder = context.recorder
        self._without_zero: dict[Key, Object] = {}
        """Autoscalers' specs with minReplicas 0 that the API server refused, by region.

        Not the region's generation: each width that the autoscaler sets raises that."""
        self._tolerances = True
        """Whether the API server keeps the field, so far as we know; before Kubernetes 1.35 it
        drops it by default."""

    @property
    def watches(self) -> Sequence[Watch]:
        """Regions, and all autoscalers."""
        return (
            Watch(self._caches.regions, own_key, desired_changed),
            Watch(self._caches.autoscalers, _region_keys),
        )

    async def reconcile(self, key: Key) -> Outcome:
        """Make the generated autoscaler what the region asks for."""
        region = self._caches.regions.get(key)
        if region is None or "deletionTimestamp" in region["metadata"]:
            self._without_zero.pop(key, None)
            return None  # garbage collection takes it along
        if obstacle(region_spec, region):
            return None  # a condition of the region says so
        wanted = self._wanted(key, region)
        named = self._caches.autoscalers.get(key)  # whatever it scales: that may have been edited
        mine = named if named and is_owned_by(named, region["metadata"]["uid"]) else None
        found = self._caches.autoscalers_by_region.get(key)
        others = [item["metadata"]["name"] for item in found if not _is_generated(item)]
        if wanted is None or others:
            if mine is not None:
                await self._write.delete(mine)
                name = mine["metadata"]["name"]
                event = events.autoscaler_yielded(name, others[0]) if others else None
                self._recorder.record(region, event or events.autoscaler_removed(name))
            return None
        if named and mine is None:
            if not _is_generated(named):  # else it goes with the region that had this name before
                self._recorder.record(region, events.name_taken(AUTOSCALER.kind, key[1]))
            return None
        try:
            await self._keep(key, region, mine, wanted)
        except Invalid as refusal:
            if wanted["spec"]["minReplicas"] > 0:
                raise
            self._without_zero[key] = wanted["spec"]
            self._recorder.record(region, events.scale_to_zero_refused(refusal.message))
            await self._keep(key, region, mine, with_a_pod(wanted))
        return None

    def _wanted(self, key: Key, region: Object) -> Object | None:
        wanted = autoscaler(region)
        if wanted and not self._tolerances:
            wanted = without_tolerance(wanted)
        if wanted and wanted["spec"] == self._without_zero.get(key):
            return with_a_pod(wanted)
        self._without_zero.pop(key, None)  # something else is asked for: it may be taken
        return wanted

    async def _keep(self, key: Key, region: Object, mine: Object | None, wanted: Object) -> None:
        if mine is None or scaled_region(mine) != key:  # what it knows is not of this region
            await self._wake(key, region, wanted)
        if mine is None:
            await self._create(region, wanted)
        else:
            await self._correct(key, region, wanted)
            self._advise(region, mine)

    async def _create(self, region: Object, wanted: Object) -> None:
        spec = wanted["spec"]
        created = await self._write.create(wanted)
        if is_owned_by(created, region["metadata"]["uid"]):
            self._look_for_tolerance(wanted, created)
            low, high = spec["minReplicas"], spec["maxReplicas"]
            name = wanted["metadata"]["name"]
            self._recorder.record(region, events.autoscaler_created(name, low, high))

    async def _wake(self, key: Key, region: Object, wanted: Object) -> None:
        """Give a region that sleeps a channel: only the autoscaler that put it to sleep would.

        To a new one width 0 is the user's version, which it leaves as it is.
        """
        if region_spec(region).width > 0 or wanted["spec"]["minReplicas"] > 0:
            return

        def command(item: Object) -> Patch | None:
            return {"spec": {"width": 1}} if region_spec(item).width == 0 else None

        await self._write_regions.update(key, command)
        self._recorder.record(region, events.woken_for_autoscaler())

    async def _correct(self, key: Key, region: Object, wanted: Object) -> None:
        drifted = False

        def command(item: Object) -> Patch | None:
            nonlocal drifted
            patch = replacing(item["spec"], wanted["spec"])
            spec = without_tolerance(wanted)["spec"]
            drifted = bool(replacing(without_tolerance(item)["spec"], spec))
            return {"spec": patch} if patch else None

        updated = await self._write.update(key, command)
        if updated is not None:
            self._look_for_tolerance(wanted, updated)
        if drifted:
            self._recorder.record(region, events.autoscaler_corrected(key[1]))

    def _look_for_tolerance(self, wanted: Object, written: Object) -> None:
        if has_tolerance(wanted) and not has_tolerance(written):
            self._tolerances = False

    def _advise(self, region: Object, mine: Object) -> None:
        spec = region_spec(region)
        if spec.autoscaling is None or spec.autoscaling.mode != "advise":
            return
        advice = advised_width(mine)
        if advice is not None and advice != spec.width:
            self._recorder.record(region, events.width_advised(spec.width, advice))


def advised_width(autoscaler: Object) -> int | None:
    """Return the width that the metric `demand` asks for, as the autoscaler last saw it.

    The status of an AverageValue has the value divided by the replicas, in thousandths at least.
    """
    status = autoscaler.get("status") or {}
    for metric in status.get("currentMetrics") or []:
        found = metric.get("object") or {}
        average: str | None = (found.get("current") or {}).get("averageValue")
        if average is None:
            continue
        value = float(average[:-1]) / 1000 if average.endswith("m") else float(average)
        # Rounding up the thousandths of an average must not ask for one more channel.
        return math.ceil(value * int(status.get("currentReplicas", 0)) - 0.1)
    return None


def with_a_pod(autoscaler: Object) -> Object:
    """Return an autoscaler that keeps a channel, for clusters whose own can't scale to zero."""
    spec = autoscaler["spec"]
    return {**autoscaler, "spec": {**spec, "minReplicas": max(spec["minReplicas"], 1)}}


def _is_generated(item: Object) -> bool:
    """Return whether an autoscaler was made for a region, whichever it scales by now: that region
    has it put right, so it is nobody else's own."""
    metadata = item["metadata"]
    made_for = PARALLEL_REGION.kind, metadata["name"]
    owners = metadata.get("ownerReferences") or []
    return any((owner["kind"], owner["name"]) == made_for for owner in owners)


def _region_keys(item: Object) -> Sequence[Key]:
    """Return the region that an autoscaler scales, and the one whose generated one has its name."""
    scaled = scaled_region(item)
    return [key_of(item), *([scaled] if scaled else [])]
