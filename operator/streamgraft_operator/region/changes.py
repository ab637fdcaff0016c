"""What a region's status notes of its last width change, and where that has shards go. Pure."""

from streamgraft_common.resources import ParallelRegionStatus, WidthChange
from streamgraft_common.timestamps import from_rfc3339, to_rfc3339
from streamgraft_operator.graph.assignment import assign, concerned
from streamgraft_operator.region.shards import Shards, assigned_width
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


def there_since(view: RegionView, status: ParallelRegionStatus) -> str | None:
    """Return when the first channel beyond those of `status` was made, None if there is none yet.

    Channels that were to go, and are wanted again, count from then on: that they had been there is
    part of the change that they were to go with.
    """
    width = assigned_width(status.assignment)
    if view.width <= width:
        return None
    made = (pe.created_at for pe in view.pes if pe.exists and pe.channel == width)
    first = min((at for at in made if at is not None), default=view.now)
    ended = (
        from_rfc3339(change.finished_at)
        for change in status.changes
        if change.finished_at and (change.failure or change.to_width < change.from_width)
    )
    since = max((first, *ended))
    return to_rfc3339(since) if since < view.now else None
