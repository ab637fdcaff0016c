"""What metrics describe: kinds of objects, and one value of one object."""

from dataclasses import dataclass

from streamgraft_common.resources import PARALLEL_REGION


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object, as the API server serves it."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """Return the API group; the core group is the empty text."""
        return self.api_version.rpartition("/")[0]

    @property
    def qualified(self) -> str:
        """Return what paths of the metrics API call it: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def path(self) -> str:
        """Return the path at which the API server lists all objects of this kind."""
        return f"/{'apis' if self.group else 'api'}/{self.api_version}/{self.plural}"


@dataclass(frozen=True, slots=True)
class Item:
    """One value of one object.

    `sampled_at`: Unix time of the oldest sample in it; `window_seconds`: over which it was taken,
    None for the value at that time; `selector`: on the metric's own labels, as the caller wrote
    it. An object without a namespace has the namespace "".
    """

    resource: Resource
    namespace: str
    name: str
    metric: str
    value: float
    sampled_at: float
    window_seconds: float | None
    selector: str = ""


REGIONS = Resource(PARALLEL_REGION.api_version, PARALLEL_REGION.kind, PARALLEL_REGION.plural)
NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
