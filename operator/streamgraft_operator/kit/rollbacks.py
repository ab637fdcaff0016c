"""Rollbacks that have begun to change checkpoints."""

from streamgraft_common.kube.client import Object
from streamgraft_operator.kit.parsed import savepoint_status


def is_going(savepoint: Object) -> bool:
    """Return whether a Savepoint is being deleted, and nothing of it ends before."""
    return "deletionTimestamp" in savepoint["metadata"] and not is_half_back(savepoint)


def is_half_back(savepoint: Object) -> bool:
    """Return whether a Savepoint is a rollback that has begun to change checkpoints. It ends though
    it is deleted: a part of it would be no state."""
    return savepoint_status(savepoint).phase == "RollingBack"
