"""Which shards a PE holds: by which spec, until when, and what it says of those that it let go."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest

from streamgraft_common.resources import (
    MatchedImport,
    ProcessingElementSpec,
    Release,
    Saved,
    Saving,
)
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.protocol import Left, Load
from streamgraft_pe_runtime.protocol import shards as shards_module
from streamgraft_pe_runtime.protocol.saving import Saver
from streamgraft_pe_runtime.protocol.shards import Shards


class PlayedQuery:
    """A query that runs until it is stopped, when `gate` lets it."""

    def __init__(self, gate: asyncio.Event) -> None:
        self._gate = gate

    async def first_batch(self) -> None:
        """Done at once."""

    async def failure(self) -> str:
        """Never fail."""
        await asyncio.Event().wait()
        return ""

    async def stop(self, deadline_seconds: float) -> bool:
        """Stop as soon as the gate is open."""
        await self._gate.wait()
        return True


class PlayedStage:
    """Starts queries and notes what else it is asked for."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.started: list[tuple[int, int]] = []
        self.left: list[tuple[int, bool]] = []
        self.clean = True
        self.volume_is_stale = False
        self.saves: list[Saving] = []
        self.problem: Exception | None = None

    async def start(self, shard: int, epoch: int) -> PlayedQuery:
        """Note the shard and the epoch."""
        self.started.append((shard, epoch))
        return PlayedQuery(self.gate)

    async def leave(self, shard: int, *, publish: bool) -> Left:
        """Note whether the position is published."""
        self.left.append((shard, publish))
        if self.volume_is_stale:
            raise OSError(116, "Stale file handle")
        return Left(self.clean, None)

    async def save(self, request: Saving) -> Saved:
        """Copy, if nothing is wrong."""
        self.saves.append(request)
        if self.problem:
            raise self.problem
        return Saved(uid=request.uid, shards=request.shards)

    apart = ""

    def loads(self) -> Mapping[int, Load]:
        """Shard 1 is half busy."""
        return {1: Load(0.5, 7)}

    def behind(self) -> bool:
        """Have nothing that waits."""
        return False

    def connect(self, imports: Sequence[MatchedImport]) -> bool:
        """Read nothing of other jobs."""
        return False


@pytest.fixture
async def stage() -> PlayedStage:
    """A stage that is applied."""
    return PlayedStage()


def holding(stage: PlayedStage, **releases: Release) -> Shards:
    """Return the shards of a PE that works on the stage."""

    async def ours(shard: int) -> bool:
        return True

    return Shards(stage, releases, lambda: None, ours, PeMetrics(1))


def spec(epoch: int, *shards: int) -> ProcessingElementSpec:
    """Return a spec that names these shards."""
    return ProcessingElementSpec(
        job="job", pe_id=0, stage_name="r", shards=list(shards), epoch=epoch
    )


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


async def test_an_epoch_is_applied_once_all_of_its_shards_serve(stage: PlayedStage) -> None:
    shards = holding(stage)
    shards.follow(spec(3, 0, 1))
    assert shards.epoch == 0
    await until(lambda: shards.epoch == 3)
    assert stage.started == [(0, 3), (1, 3)]
    said = shards.statuses()
    assert (said[1].busy, said[1].lag, said[0].busy) == (0.5, 7, None)
    await shards.stop(1.0)


async def test_a_release_counts_for_the_epoch_that_took_the_shard_away(stage: PlayedStage) -> None:
    shards = holding(stage)
    shards.follow(spec(1, 0, 1))
    await until(lambda: shards.epoch == 1)
    shards.follow(spec(4, 0))
    await until(lambda: "1" in shards.releases)
    assert shards.releases["1"].epoch == 4
    assert shards.statuses()[0].epoch == 4
    assert stage.left == [(1, False)]  # another PE takes it up, and publishes then
    await until(lambda: shards.epoch == 4)
    await shards.stop(1.0)


async def test_a_shard_is_said_to_be_held_until_it_has_stopped(stage: PlayedStage) -> None:
    shards = holding(stage)
    shards.follow(spec(1, 0))
    await until(lambda: shards.epoch == 1)
    stage.gate.clear()
    shards.follow(spec(2))
    await until(lambda: shards.statuses()[0].state == "Stopping")
    assert (shards.releases, shards.epoch) == ({}, 1)
    stage.gate.set()
    await until(lambda: not shards.statuses())
    assert (shards.epoch, stage.left) == (2, [(0, True)])  # all go: nobody may take it up for long


async def test_a_shard_that_is_wanted_back_while_it_stops_starts_again(stage: PlayedStage) -> None:
    shards = holding(stage)
    shards.follow(spec(1, 0))
    await until(lambda: shards.epoch == 1)
    stage.gate.clear()
    shards.follow(spec(2))
    shards.follow(spec(3, 0))
    stage.gate.set()
    await until(lambda: shards.epoch == 3)
    assert stage.started == [(0, 1), (0, 3)]
    await shards.stop(1.0)


async def test_the_release_of_a_shard_that_runs_again_says_so(stage: PlayedStage) -> None:
    """A pod that dies then says nothing more of it, and the next one has this from its status."""
    shards = holding(stage, **{"0": Release(epoch=2, released_at="2026-01-01T00:00:00.000Z")})
    shards.follow(spec(3, 0))
    assert shards.statuses().keys() == {0}
    assert shards.releases["0"].resumed
    await until(lambda: shards.epoch == 3)
    shards.follow(spec(4))
    await until(lambda: not shards.statuses())
    assert (shards.releases["0"].epoch, shards.releases["0"].resumed) == (4, False)


async def test_what_a_batch_cut_off_is_reported(stage: PlayedStage) -> None:
    """What the checkpoint says counts, whatever the query's stop says."""
    stage.clean = False
    shards = holding(stage)
    shards.follow(spec(1, 0))
    await until(lambda: shards.epoch == 1)
    await shards.stop(1.0)
    assert not shards.releases["0"].clean


async def test_a_pe_that_stops_takes_up_nothing(stage: PlayedStage) -> None:
    shards = holding(stage, **{"5": Release(epoch=2, released_at="2026-01-01T00:00:00.000Z")})
    shards.follow(spec(1, 0))
    await until(lambda: shards.epoch == 1)
    await shards.stop(1.0)
    shards.follow(spec(2, 0, 1))
    assert (shards.statuses(), shards.epoch) == ({}, 1)
    assert shards.releases.keys() == {"0", "5"}
    assert stage.left == [(0, True)]


async def test_who_has_no_pod_any_more_publishes_nothing(stage: PlayedStage) -> None:
    shards = holding(stage)
    shards.follow(spec(1, 0))
    await until(lambda: shards.epoch == 1)
    shards.mute()
    await shards.stop(1.0)
    assert stage.left == [(0, False)]


async def test_a_shard_is_let_go_of_though_its_volume_does_not_answer(stage: PlayedStage) -> None:
    """Without its release nobody could take it up, neither another PE nor this one."""
    stage.volume_is_stale = True
    shards = holding(stage)
    shards.follow(spec(1, 0, 1))
    await until(lambda: shards.epoch == 1)
    shards.follow(spec(2, 1))
    await until(lambda: shards.epoch == 2)
    assert not shards.releases["0"].clean
    shards.follow(spec(3, 0, 1))
    await until(lambda: shards.epoch == 3)
    await shards.stop(1.0)
    assert shards.releases.keys() == {"0", "1"}


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (OSError("the disk is full"), "the disk is full"),
        (ValueError("Expecting value"), "Expecting value"),
        (KeyError(), "KeyError()"),
    ],
)
async def test_a_savepoint_is_copied_once_and_again_only_after_a_failure(
    stage: PlayedStage, monkeypatch: pytest.MonkeyPatch, problem: Exception, told: str
) -> None:
    monkeypatch.setattr("streamgraft_pe_runtime.protocol.saving._AGAIN_SECONDS", 0.01)
    request = Saving(savepoint="s", uid="u", shards=[0])
    saver = Saver(lambda: saver.follow(request, stage))
    stage.problem = problem
    saver.follow(request, stage)
    await until(lambda: saver.saved is not None and saver.saved.message == told)
    async with asyncio.timeout(5):
        while len(stage.saves) < 2:
            await asyncio.sleep(0.005)
    stage.problem = None
    await until(lambda: saver.saved is not None and not saver.saved.message)
    count = len(stage.saves)
    saver.follow(request, stage)
    await asyncio.sleep(0)
    assert len(stage.saves) == count


async def test_shards_that_come_later_are_copied_for_the_same_savepoint(stage: PlayedStage) -> None:
    saver = Saver(lambda: None)
    requests = [Saving(savepoint="s", uid="u", shards=shards) for shards in ([0], [0, 1], [1])]
    for request in requests:
        saver.follow(request, stage)
        await until(lambda: not saver.copying)
    assert stage.saves == requests[:2]


async def test_the_checkpoint_of_a_shard_in_use_is_not_replaced(stage: PlayedStage) -> None:
    """The rollback has ended by then, or the shard would not be in use."""
    saver = Saver(lambda: None)
    look = Saving(savepoint="s", uid="u", shards=[0], rolls_back_to="cut")
    put_back = look.model_copy(update={"commit": True})
    saver.follow(put_back, stage, in_use={0, 3})
    assert not saver.copying
    saver.follow(look, stage, in_use={0})
    assert saver.copying
    assert not saver.putting_back
    await until(lambda: not saver.copying)
    saver.follow(put_back, stage, in_use={3})
    assert saver.putting_back == {0}
    await until(lambda: not saver.copying)
    assert not saver.putting_back
    assert stage.saves == [look, put_back]


async def test_a_shard_that_is_withheld_keeps_its_epoch_from_being_applied(
    stage: PlayedStage,
) -> None:
    shards = holding(stage)
    shards.follow(spec(2, 0, 1), withheld=frozenset({1}))
    await until(lambda: shards.statuses()[0].state == "Running")
    assert shards.held == {0}
    assert shards.epoch == 0
    shards.follow(spec(2, 0, 1))
    await until(lambda: shards.epoch == 2)
    assert stage.started == [(0, 2), (1, 2)]
    await shards.stop(1.0)


async def test_a_shard_that_can_not_be_cut_off_does_not_keep_the_pod(
    stage: PlayedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its status says until the end that it is ours: only then may others have it."""
    monkeypatch.setattr(shards_module, "_CUT_OFF_SECONDS", 0.02)
    shards = holding(stage)
    shards.follow(spec(1, 0))
    await until(lambda: shards.epoch == 1)
    stage.gate.clear()
    await asyncio.wait_for(shards.stop(0.01), 5)
    assert shards.statuses()[0].state == "Stopping"
    assert "0" not in shards.releases
