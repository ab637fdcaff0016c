"""The life of a shard, with a query played by a small class: transitions, restarts, fencing."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from streamgraft_pe_runtime import shard as shard_module
from streamgraft_pe_runtime.shard import Shard, next_delay

FENCED = "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update"


@dataclass
class PlayedQuery:
    """A query that does what the test says."""

    fails: str | None = None
    stopped: list[float] = field(default_factory=list)

    def first_trigger_done(self) -> bool:
        """The first trigger is done unless the query fails."""
        return self.fails is None

    def failure(self) -> str | None:
        """Return what the test set."""
        return self.fails

    def stop(self, deadline_seconds: float) -> bool:
        """Stop in time."""
        self.stopped.append(deadline_seconds)
        return True


class Stage:
    """A shard, the queries that it has started and the states that it went through."""

    def __init__(self, checkpoint: Path, *failures: str | None) -> None:
        self.queries: list[PlayedQuery] = []
        self.states: list[str] = []
        self._failures = failures
        self.ours, self.asked = True, 0
        self.shard = Shard(0, 1, checkpoint, self._start, self._changed, self._is_ours)
        self.task = asyncio.create_task(self.shard.run())

    def _start(self) -> PlayedQuery:
        number = len(self.queries)
        self.queries.append(
            PlayedQuery(self._failures[number] if number < len(self._failures) else None)
        )
        return self.queries[-1]

    async def _is_ours(self, shard: int) -> bool:
        self.asked += 1
        return self.ours

    def _changed(self, shard: Shard) -> None:
        if not self.states or self.states[-1] != shard.status.state:
            self.states.append(shard.status.state)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition."""
        async with asyncio.timeout(10):
            while True:
                if condition():
                    return
                await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_module, "_FIRST_DELAY_SECONDS", 0.01)


async def test_from_start_to_release(tmp_path: Path) -> None:
    """Starting, Running, Stopping; the release says that it was clean."""
    stage = Stage(tmp_path)
    await stage.until(lambda: stage.shard.status.first_batch_at is not None)
    assert stage.shard.status.started_at is not None
    stage.shard.release(5)
    release = await stage.task
    assert stage.states == ["Running", "Stopping"]
    assert stage.queries[0].stopped == [5]
    assert release.clean
    assert release.epoch == 1


async def test_a_failed_query_starts_again(tmp_path: Path) -> None:
    """It says why it failed until it has completed a trigger."""
    stage = Stage(tmp_path, "ValueError: broken", "ValueError: broken")
    await stage.until(lambda: stage.shard.status.first_batch_at is not None)
    assert stage.states.count("Failed") == 2
    assert stage.shard.status.message == ""
    assert len(stage.queries) == 3
    stage.shard.release(5)
    await stage.task


async def test_a_fenced_query_waits_until_the_shard_is_known_to_be_ours(tmp_path: Path) -> None:
    """The other owner may be the right one: only the API server says that we are."""
    stage = Stage(tmp_path, FENCED)
    stage.ours = False
    await stage.until(lambda: stage.shard.status.state == "Failed")
    await stage.until(lambda: stage.asked > 1)
    assert len(stage.queries) == 1
    stage.ours = True
    await stage.until(lambda: stage.shard.status.first_batch_at is not None)
    assert len(stage.queries) == 2
    stage.shard.release(5)
    assert (await stage.task).clean


async def test_a_failing_shard_can_be_released(tmp_path: Path) -> None:
    """At once, without waiting for its next start."""
    stage = Stage(tmp_path, FENCED)
    await stage.until(lambda: stage.shard.status.state == "Failed")
    stage.shard.release(5)
    async with asyncio.timeout(5):
        await stage.task


async def test_a_batch_cut_off_is_reported(tmp_path: Path) -> None:
    """What the checkpoint says counts, whatever the query's stop says."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n-")
    stage = Stage(tmp_path)
    await stage.until(lambda: stage.shard.status.first_batch_at is not None)
    stage.shard.release(5)
    assert not (await stage.task).clean


def test_delays_double_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """1, 2, 4 … 30 s; a query that ran for a minute has healed."""
    monkeypatch.setattr(shard_module, "_FIRST_DELAY_SECONDS", 1.0)
    assert [next_delay(delay, 0) for delay in (1, 2, 16, 30)] == [2, 4, 30, 30]
    assert next_delay(30, 61) == 1.0
