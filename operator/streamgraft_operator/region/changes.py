"""What a region's status notes of its last width change, and where that has shards go. Pure."""

from streamgraft_common.resources import ParallelRegionStatus, WidthChange
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.graph.assignment import assign, concerned
from streamgraft_operator.region.shards import Shards
from streamgraft_operator.region.view import RegionView


def changed(
    status: ParallelRegionStatus, change: WidthChange, **update: object
) -> ParallelRegionStatus:
    """Return the status with its last change updated."""
    changes = [*status.changes[:-1], change.model_copy(update=update)]
    return status.model_copy(update={"changes": changes})


def decided(view: RegionView, status: ParallelRegionStatus) -> ParallelRegionStatus:
    """Return the status with the assignment of its last change."""
    change = status.changes[-1]
    current = {int(shard): channel for shard, channel in status.assignment.items()}
    loads = Shards(view, status).loads()
    # Shards that did not stop when the region was to sleep had better stay where they are.
    held = {shard: pe.channel for pe in view.pes if pe.stage == 0 for shard in pe.held}
    assignment = assign(view.max_width, change.to_width, current or held, loads)
    moved = {
        shard
        for shard in range(view.max_width)
        if change.savepoint or assignment.get(shard) != current.get(shard)
    }
    # The query of a channel that gives or takes shards starts anew over all of them.
    beside = concerned(current, assignment) if view.joint else frozenset()
    return changed(
        status,
        change,
        moved_shards=sorted(moved),
        affected_shards=len(moved | beside),
        decided_at=to_rfc3339(view.now),
    ).model_copy(
        update={
            "epoch": change.epoch,
            "assignment": {str(shard): channel for shard, channel in assignment.items()},
        }
    )
