"""The life of a shard, with a query played by a small class: transitions, restarts, fencing."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from streamgraft_common.resources import MatchedImport, Saved, Saving
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.protocol import Left, Load
from streamgraft_pe_runtime.protocol import shard as shard_module
from streamgraft_pe_runtime.protocol.shard import Shard, next_delay

FENCED = "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update"


@dataclass
class PlayedQuery:
    """A query that fails at once, or works until it is stopped."""

    fails: str | None = None
    stopped: list[float] = field(default_factory=list)

    async def first_batch(self) -> None:
        """The first trigger is done unless the query fails."""
        if self.fails is not None:
            await asyncio.Event().wait()

    async def failure(self) -> str:
        """Return what the test set."""
        if self.fails is None:
            await asyncio.Event().wait()
        return str(self.fails)

    async def stop(self, deadline_seconds: float) -> bool:
        """Stop in time."""
        self.stopped.append(deadline_seconds)
        return True


class PlayedStage:
    """A shard, the queries that it has started and the states that it went through."""

    def __init__(self, *failures: str | None) -> None:
        self.queries: list[PlayedQuery] = []
        self.states: list[str] = []
        self._failures = failures
        self.ours, self.asked = True, 0
        self.shard = Shard(0, 1, self, self._changed, self._is_ours, PeMetrics(1))
        self.task = asyncio.create_task(self.shard.run())

    async def start(self, shard: int, epoch: int) -> PlayedQuery:
        """Start the next query."""
        number = len(self.queries)
        fails = self._failures[number] if number < len(self._failures) else None
        self.queries.append(PlayedQuery(fails))
        return self.queries[-1]

    async def leave(self, shard: int, *, publish: bool) -> Left:
        """Leave it clean."""
        return Left(True, None)

    async def save(self, request: Saving) -> Saved:
        """Copy nothing."""
        return Saved(uid=request.uid)

    apart = ""

    def loads(self) -> Mapping[int, Load]:
        """Know nothing."""
        return {}

    def behind(self) -> bool:
        """Have nothing that waits."""
        return False

    def connect(self, imports: Sequence[MatchedImport]) -> bool:
        """Read nothing of other jobs."""
        return False

    async def _is_ours(self, shard: int) -> bool:
        self.asked += 1
        return self.ours

    def _changed(self) -> None:
        if not self.states or self.states[-1] != self.shard.status.state:
            self.states.append(self.shard.status.state)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition."""
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_module, "_FIRST_DELAY_SECONDS", 0.01)


async def test_from_start_to_release() -> None:
    """Starting, Running, Stopping; the release says that it was clean."""
    stage = PlayedStage()
    await stage.until(lambda: stage.shard.status.first_batch_at is not None)
    assert stage.shard.status.started_at is not None
    stage.shard.release(5)
    release = await stage.task
    assert stage.states == ["Running", "Stopping"]
    assert stage.queries[0].stopped == [5]
    assert release.clean
    assert release.epoch == 1


async def test_a_failed_query_starts_again() -> None:
    """It says why it failed until it has completed a trigger."""
    stage = PlayedStage("ValueError: broken", "ValueError: broken")
    await stage.until(lambda: stage.shard.status.first_batch_at is not None)
    assert stage.states.count("Failed") == 2
    assert stage.shard.status.message == ""
    assert len(stage.queries) == 3
    said = stage.shard.status  # an operator that was away meanwhile still sees that it failed
    assert said.failed_run
    assert said.started_at
    assert said.failed_run < said.started_at
    stage.shard.release(5)
    await stage.task


async def test_a_fenced_query_waits_until_the_shard_is_known_to_be_ours() -> None:
    """The other owner may be the right one: only the API server says that we are."""
    stage = PlayedStage(FENCED)
    stage.ours = False
    await stage.until(lambda: stage.shard.status.state == "Failed")
    await stage.until(lambda: stage.asked > 1)
    assert len(stage.queries) == 1
    stage.ours = True
    await stage.until(lambda: stage.shard.status.first_batch_at is not None)
    assert len(stage.queries) == 2
    stage.shard.release(5)
    assert (await stage.task).clean


async def test_a_failing_shard_can_be_released() -> None:
    """At once, without waiting for its next start."""
    stage = PlayedStage(FENCED)
    await stage.until(lambda: stage.shard.status.state == "Failed")
    stage.shard.release(5)
    async with asyncio.timeout(5):
        await stage.task


async def test_a_new_plan_starts_the_query_anew() -> None:
    """At a batch boundary, and without a failure."""
    stage, other = PlayedStage(), PlayedStage()
    await stage.until(lambda: stage.shard.status.first_batch_at is not None)
    stage.shard.replan(other, 7)
    await stage.until(lambda: len(other.queries) == 2)
    await stage.until(lambda: stage.shard.status.first_batch_at is not None)
    assert stage.queries[0].stopped == [7]
    assert "Failed" not in stage.states
    for played in (stage, other):
        played.shard.release(5)
        await played.task


async def test_a_query_that_cannot_be_asked_has_failed() -> None:
    """As when the JVM is gone: the shard is not held for ever by a query that nobody watches."""

    class Lost(PlayedQuery):
        async def first_batch(self) -> None:
            raise ConnectionError("the JVM does not answer")

    stage = PlayedStage()
    stage.queries.append(Lost())
    stage.start = lambda *_: _answer(Lost())  # type: ignore[method-assign]
    await stage.until(lambda: stage.shard.status.state == "Failed")
    assert stage.shard.status.message == "the JVM does not answer"
    stage.shard.release(5)
    await stage.task


async def _answer(query: PlayedQuery) -> PlayedQuery:
    return query


def test_delays_double_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """1, 2, 4 … 30 s; a query that ran for a minute has healed."""
    monkeypatch.setattr(shard_module, "_FIRST_DELAY_SECONDS", 1.0)
    assert [next_delay(delay, 0) for delay in (1, 2, 16, 30)] == [2, 4, 30, 30]
    assert next_delay(30, 61) == 1.0
