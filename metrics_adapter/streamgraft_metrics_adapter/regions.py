"""What the adapter knows of a region from its ParallelRegion resource."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from streamgraft_common.adl import Autoscaling
from streamgraft_common.conditions import find
from streamgraft_common.kube import Store
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import ParallelRegionSpec, ParallelRegionStatus
from streamgraft_common.timestamps import from_rfc3339

log = logging.getLogger(__name__)

RegionKey = tuple[str, str, str]
"""(namespace, job, region), as in the labels of the PEs' metrics."""

_DEFAULTS = Autoscaling()


@dataclass(frozen=True)
class Region:
    """One ParallelRegion, read from its resource. What every request asks for is kept."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    spec: ParallelRegionSpec
    status: ParallelRegionStatus

    @cached_property
    def key(self) -> RegionKey:
        """Return what identifies the region in the PEs' metrics."""
        return self.namespace, self.spec.job, self.spec.region

    @property
    def width(self) -> int:
        """Return the channels that serve, or the wanted ones before the first do."""
        return self.status.width if self.status.epoch else self.spec.width

    @cached_property
    def resizing(self) -> str | None:
        """Return what the width change under way says of itself, or None."""
        condition = find(self.status.conditions, "Resizing")
        if condition is None or condition.status != "True":
            return None
        return condition.message or condition.reason

    @cached_property
    def changed_at(self) -> float:
        """Return when the last width change ended (Unix time), 0 if there was none."""
        ended = self.status.changes[-1].finished_at if self.status.changes else None
        return from_rfc3339(ended) if ended else 0.0

    @property
    def autoscaling(self) -> Autoscaling:
        """Return the region's own settings, or the defaults."""
        return self.spec.autoscaling or _DEFAULTS


class RegionCache:
    """All regions, read once per change of their resources; one that can't be read is known by what
    is wrong with it, and does no harm to the others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._regions: dict[str, dict[str, Region]] = {}
        self._faults: dict[Key, str] = {}
        store.listen(self._changed)
        for item in store.items():
            self._changed(key_of(item), None, item)

    @property
    def synced(self) -> bool:
        """Return whether the regions were listed."""
        return self._store.synced.is_set()

    def get(self, namespace: str, name: str) -> Region | None:
        """Return a region, or None."""
        return self._regions.get(namespace, {}).get(name)

    def fault(self, namespace: str, name: str) -> str | None:
        """Return why a region can't be read, or None."""
        return self._faults.get((namespace, name))

    def of(self, namespace: str) -> list[Region]:
        """Return the regions of a namespace, by name."""
        return sorted(self._regions.get(namespace, {}).values(), key=lambda region: region.name)

    def all(self) -> list[Region]:
        """Return all regions."""
        return [region for found in self._regions.values() for region in found.values()]

    def _changed(self, key: Key, old: Object | None, new: Object | None) -> None:
        namespace, name = key
        found = self._regions.setdefault(namespace, {})
        found.pop(name, None)
        self._faults.pop(key, None)
        if new is not None:
            try:
                found[name] = region_of(new)
            except Exception as error:  # whatever is in the object is the object's error
                log.error("region %s/%s can't be read: %s", namespace, name, error)
                self._faults[key] = str(error)
        if not found:
            del self._regions[namespace]


def region_of(item: Mapping[str, Any]) -> Region:
    """Return the region of a ParallelRegion as the API server sent it."""
    metadata = item["metadata"]
    return Region(
        namespace=metadata["namespace"],
        name=metadata["name"],
        labels=metadata.get("labels", {}),
        spec=ParallelRegionSpec.model_validate(item["spec"]),
        status=ParallelRegionStatus.model_validate(item.get("status", {})),
    )
