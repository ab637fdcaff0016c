"""What is seen of a PE by those who move its shards, made from its resource."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from streamgraft_common.resources import (
    ProcessingElementSpec,
    ProcessingElementStatus,
    RuntimeStatus,
)
from streamgraft_common.timestamps import from_rfc3339

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
    """The last release of a shard by a PE."""

    epoch: int
    """Of the spec that took it away."""
    released_at: float
    """Unix time."""
    last_batch_at: float | None
    """Unix time."""
    clean: bool
    """Whether it was stopped between two batches."""
    resumed: bool = False
    """Whether the PE has taken it up again since."""


@dataclass(frozen=True)
class PeView:
    """One PE of the region."""

    pe_id: int
    channel: int
    stage: int
    exists: bool
    """The ProcessingElement is there and not being deleted."""
    spec_shards: frozenset[int] = frozenset()
    spec_epoch: int = 0
    held: Mapping[int, ShardView] = field(default_factory=dict)
    """What its pod reports of shards that it may still write for."""
    releases: Mapping[int, ReleaseView] = field(default_factory=dict)
    """What its pod reports of shards that it has released."""
    ready: bool = False
    """As its pod reports."""
    applied_epoch: int = 0
    """Epoch of the newest spec that its pod has applied, as it reports."""
    pod_alive: bool = False
    """Some pod of this PE may be running: it was scheduled and has not ended."""
    orphaned: bool = False
    """Whether one of those pods is of an earlier PE, deleted since, that had this one's name."""
    launch_count: int = 0
    message: str = ""
    """Why it is not ready, as its status says."""
    apart: str = ""
    """Why it runs a query per shard though one for all was planned, as its pod reports."""
    created_at: float | None = None
    """When its ProcessingElement was created (Unix time, full seconds)."""

    @classmethod
    def of(
        cls,
        spec: ProcessingElementSpec,
        status: ProcessingElementStatus,
        pods: frozenset[str],
        *,
        orphaned: bool = False,
        created_at: float | None = None,
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
                    resumed=entry.resumed,
                )
                for shard, entry in runtime.releases.items()
            },
            ready=current.ready,
            applied_epoch=current.epoch,
            pod_alive=bool(pods),
            orphaned=orphaned,
            launch_count=status.launch_count,
            message=status.message,
            apart=current.apart,
            created_at=created_at,
        )


def _seconds(timestamp: str | None) -> float | None:
    return None if timestamp is None else from_rfc3339(timestamp)
