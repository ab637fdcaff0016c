"""What must hold in stages that run one query over all shards of a channel.

A width change stops and starts such a query once. So a PE gives up all that it has to in one write,
and gets all of its new shards in another one, unless it has waited too long for some of them.
"""

from collections.abc import Callable

from tests.simulation.applications import is_joint
from tests.simulation.virtual_time import EPOCH

from streamgraft_common.kube.client import Object
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.region.shards import GATHER_SECONDS

Turn = tuple[str, int]
"""uid of a PE, epoch."""


class JointInvariants:
    """Watches what is written of the shards of PEs."""

    def __init__(self, broken: Callable[[str], None]) -> None:
        self._break = broken
        self._gave: set[Turn] = set()
        self._took: dict[Turn, bool] = {}
        """Who has got shards, and whether that was while it could still wait for others."""

    def stops(self, pe: Object) -> None:
        """Note that a PE stands still for a savepoint: its query starts once more behind that."""
        self._took.pop(_turn(pe), None)

    def written(self, before: Object, pe: Object, region: Object, now: float) -> None:
        """Check what was written of a PE. `before`: its spec then; `region`: the status."""
        spec, turn = pe["spec"], _turn(pe)
        if not is_joint(spec["bundleDigest"], spec["stageName"]):
            return
        name, old, new = pe["metadata"]["name"], set(before["shards"]), set(spec["shards"])
        if old - new:
            if turn in self._gave:
                self._break(f"PE {name} gives up shards twice in epoch {turn[1]}")
            self._gave.add(turn)
        if new - old:
            if self._took.get(turn):
                self._break(f"PE {name} gets shards twice in epoch {turn[1]}")
            self._took[turn] = _waits(region, turn[1], now)


def _turn(pe: Object) -> Turn:
    return pe["metadata"]["uid"], pe["spec"]["epoch"]


def _waits(region: Object, epoch: int, now: float) -> bool:
    """Return whether a change of this epoch was decided just now."""
    decided = [
        from_rfc3339(change["decidedAt"])
        for change in region.get("changes", [])
        if change["epoch"] == epoch and change.get("decidedAt")
    ]
    return any(EPOCH + now < at + GATHER_SECONDS for at in decided)
