"""Width changes while a savepoint of the region's stages is under way."""

from dataclasses import replace

from streamgraft_common.resources import ParallelRegionStatus, SavepointStatus
from streamgraft_operator.pe.view import PeView, ShardView
from streamgraft_operator.region.step import step
from streamgraft_operator.region.view import RegionView

NOW = 1_700_000_000.0


def channel(number: int, *shards: int, epoch: int = 1, ready: bool = True) -> PeView:
    return PeView(
        number,
        number,
        0,
        exists=True,
        spec_shards=frozenset(shards),
        spec_epoch=epoch,
        held={shard: ShardView("Running", epoch, NOW, NOW) for shard in shards},
        ready=ready,
        applied_epoch=epoch,
        pod_alive=True,
        launch_count=1,
    )


def region(width: int, status: ParallelRegionStatus, *pes: PeView) -> RegionView:
    return RegionView("job", "r", 1, width, 4, 1, 0, status, pes, NOW)


def held_back(width: int, status: ParallelRegionStatus, *pes: PeView) -> RegionView:
    return replace(region(width, status, *pes), held_back=True)


OWNER = channel(0, 0, 1, 2, 3)
STEADY = ParallelRegionStatus(width=1, epoch=1, assignment=dict.fromkeys("0123", 0))


def test_no_change_begins_though_no_stage_stands_still_yet() -> None:
    """Or not any more, as one that ends a batch which was cut off."""
    decision = step(held_back(3, STEADY, OWNER))
    assert (decision.status.changes, decision.channels) == ([], 1)
    assert step(region(3, STEADY, OWNER)).channels == 3


def test_a_change_that_began_in_the_same_moment_decides_nothing() -> None:
    begun = step(region(2, STEADY, OWNER)).status
    for width in (1, 2, 3):
        waits = step(held_back(width, begun, OWNER, channel(1)))
        assert (waits.status.changes, waits.spec_updates) == (begun.changes, {})
    assert step(region(2, begun, OWNER, channel(1))).status.epoch == 2


def test_channels_that_start_stay_and_no_other_comes() -> None:
    begun = step(region(4, STEADY, OWNER)).status
    starts = channel(1, ready=False)
    assert step(held_back(4, begun, OWNER, starts)).channels == 2
    assert step(held_back(4, begun, OWNER)).channels == 1
    assert step(region(4, begun, OWNER, starts)).channels == 4


def test_one_that_was_deleted_comes_anew() -> None:
    """Its shards are to be copied."""
    decision = step(held_back(1, STEADY))
    assert (decision.channels, set(decision.spec_updates)) == (1, {0})


def test_a_hand_over_goes_on() -> None:
    begun = step(region(2, STEADY, OWNER)).status
    decided = step(region(2, begun, OWNER, channel(1))).status
    served = held_back(2, decided, channel(0, 0, 1, epoch=2), channel(1, 2, 3, epoch=2))
    assert step(served).status.width == 2


def test_its_own_savepoint_holds_no_change_back() -> None:
    begun = step(replace(region(2, STEADY, OWNER), strategy="savepoint"))
    name = begun.savepoint
    assert name
    waits = replace(held_back(2, begun.status, OWNER), strategy="savepoint")
    saving = step(replace(waits, savepoints={name: SavepointStatus(phase="Saving")}))
    assert (saving.savepoint, saving.channels) == (name, 1)
    over = replace(waits, held_back=False, savepoints={name: SavepointStatus(phase="Completed")})
    assert step(over).status.epoch == 2
