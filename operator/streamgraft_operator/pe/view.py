"""What the region conductor sees of the world: values made from resources, nothing remembered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from streamgraft_common.resources import (
    ParallelRegionStatus,
    ProcessingElementSpec,
    ProcessingElementStatus,
    RuntimeStatus,
    SavepointStatus,
)
from streamgraft_common.resources.parallel_region import Strategy
from streamgraft_operator.kit.timestamps import from_rfc3339

_SILENT = RuntimeStatus()


@dataclass(frozen=True)
class ShardView:
    """A shard that a PE holds. Times are Unix seconds."""

    state: Literal["Starting", "Running", "Stopping", "Failed"]
    epoch: int
    started_at: float | None
    first_batch_at: float | None
    message: str = ""
    busy: float | None = None
    lag: int | None = None


@dataclass(frozen=True)
class ReleaseView:
    """The last release of a shard by a PE. `epoch`: of the spec that took it away."""

    epoch: int
    released_at: float
    last_batch_at: float | None
    clean: bool


@dataclass(frozen=True)
class PeView:
    """One PE of the region.

    `exists`: the ProcessingElement is there and not being deleted. `pod_alive`: some pod of this
    PE may be running: it was scheduled and has not ended. `held`, `releases`, `ready` and
    `applied_epoch` are what that pod reports.
    """

    pe_id: int
    channel: int
    stage: int
    exists: bool
    spec_shards: frozenset[int] = frozenset()
    spec_epoch: int = 0
    held: Mapping[int, ShardView] = field(default_factory=dict)
    releases: Mapping[int, ReleaseView] = field(default_factory=dict)
    ready: bool = False
    applied_epoch: int = 0
    pod_alive: bool = False
    orphaned: bool = False
    """Whether one of those pods is of an earlier PE, deleted since, that had this one's name."""
    launch_count: int = 0
    message: str = ""
    """Why it is not ready, as its status says."""

    @classmethod
    def of(
        cls,
        spec: ProcessingElementSpec,
        status: ProcessingElementStatus,
        pods: frozenset[str],
        *,
        orphaned: bool = False,
    ) -> Self:
        """Return the view of an existing PE; `pods`: uids of its pods that may be running.

        A report of a pod that is gone says nothing about the present; only its releases count.
        """
        runtime = status.runtime or _SILENT
        current = runtime if runtime.pod_uid in pods else _SILENT
        return cls(
            pe_id=spec.pe_id,
            channel=spec.channel or 0,
            stage=spec.stage,
            exists=True,
            spec_shards=frozenset(spec.shards),
            spec_epoch=spec.epoch,
            held={
                int(shard): ShardView(
                    state=entry.state,
                    epoch=entry.epoch,
                    started_at=_seconds(entry.started_at),
                    first_batch_at=_seconds(entry.first_batch_at),
                    message=entry.message,
                    busy=entry.busy,
                    lag=entry.lag,
                )
                for shard, entry in current.shards.items()
            },
            releases={
                int(shard): ReleaseView(
                    epoch=entry.epoch,
                    released_at=from_rfc3339(entry.released_at),
                    last_batch_at=_seconds(entry.last_batch_at),
                    clean=entry.clean,
                )
                for shard, entry in runtime.releases.items()
            },
            ready=current.ready,
            applied_epoch=current.epoch,
            pod_alive=bool(pods),
            orphaned=orphaned,
            launch_count=status.launch_count,
            message=status.message,
        )


@dataclass(frozen=True)
class RegionView:
    """A region, its PEs and the time (Unix seconds). PEs missing in `pes` do not exist."""

    job: str
    region: str
    generation: int
    """`metadata.generation` of the ParallelRegion."""
    width: int
    """Wanted width."""
    max_width: int
    stages: int
    first_pe_id: int
    status: ParallelRegionStatus
    pes: tuple[PeView, ...]
    now: float
    deadline_seconds: float = 300.0
    """For new channels to become ready, and then for moved shards to run."""
    strategy: Strategy = "handover"
    """How a width change is made."""
    parked: frozenset[int] = frozenset()
    """Stages that hold no shards while a savepoint is taken."""
    may_sleep: bool = False
    """Whether width 0 may be wanted."""
    savepoints: Mapping[str, SavepointStatus] = field(default_factory=dict)
    """Savepoints of width changes of the region, by name."""


def _seconds(timestamp: str | None) -> float | None:
    return None if timestamp is None else from_rfc3339(timestamp)
