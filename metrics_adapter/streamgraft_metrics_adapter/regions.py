"""What the adapter knows of a region from its ParallelRegion resource."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamgraft_common.adl import Autoscaling
from streamgraft_common.resources import ParallelRegionSpec, ParallelRegionStatus
from streamgraft_metrics_adapter.observations import RegionKey


@dataclass(frozen=True, slots=True)
class Region:
    """One ParallelRegion, read from its resource."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    spec: ParallelRegionSpec
    status: ParallelRegionStatus

    @property
    def key(self) -> RegionKey:
        """Return what identifies the region in the PEs' metrics."""
        return self.namespace, self.spec.job, self.spec.region

    @property
    def width(self) -> int:
        """Return the channels that serve, or the wanted ones before the first do."""
        return self.status.width or self.spec.width

    @property
    def resizing(self) -> str | None:
        """Return what the width change under way says of itself, or None."""
        for condition in self.status.conditions:
            if condition.type == "Resizing" and condition.status == "True":
                return condition.message or condition.reason
        return None

    @property
    def autoscaling(self) -> Autoscaling:
        """Return the region's own settings, or the defaults."""
        return self.spec.autoscaling or Autoscaling()


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
