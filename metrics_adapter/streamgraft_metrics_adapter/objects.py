"""What metrics describe: one value of one object."""

from dataclasses import dataclass

from streamgraft_common.kinds import Kind
from streamgraft_common.resources import PARALLEL_REGION


@dataclass(frozen=True, slots=True)
class Item:
    """One value of one object."""

    resource: Kind
    namespace: str
    """Empty for objects without one."""
    name: str
    metric: str
    value: float
    sampled_at: float
    """Unix time of the oldest sample in the value."""
    window_seconds: float | None
    """Over which it was taken; None for the value at that time."""
    selector: str = ""
    """On the metric's own labels, as the caller wrote it."""


REGIONS = Kind(PARALLEL_REGION.api_version, PARALLEL_REGION.kind, PARALLEL_REGION.plural)

LARGEST_VALUE = 9e15
"""In thousandths it still is a 64-bit integer, as Kubernetes keeps quantities."""
