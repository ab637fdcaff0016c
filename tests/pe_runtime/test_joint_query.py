"""One query for all shards: it starts and stops once for whatever is asked for at one time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from streamgraft_pe_runtime.joint_query import JointQuery, QueryFailed


@dataclass
class Run:
    """Plays a query."""

    shards: tuple[int, ...]
    first: asyncio.Event = field(default_factory=asyncio.Event)
    failing: asyncio.Event = field(default_factory=asyncio.Event)
    may_stop: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: float | None = None
    """The deadline that it was stopped with."""
    clean: bool = True

    def __post_init__(self) -> None:
        self.may_stop.set()

    async def first_batch(self) -> None:
        """Return once it is said so."""
        await self.first.wait()

    async def failure(self) -> str:
        """Fail once it is said so."""
        await self.failing.wait()
        return "out of order"

    async def stop(self, deadline_seconds: float) -> bool:
        """Stop."""
        self.stopped = deadline_seconds
        await self.may_stop.wait()
        return self.clean


class Runs:
    """The queries that were started, one after the other."""

    def __init__(self) -> None:
        self.all: list[Run] = []
        self.refused: str | None = None
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.starting = asyncio.Event()
        self.joint = JointQuery(self.start)

    async def start(self, shards: Sequence[int]) -> Run:
        """Start a query; it must be the only one."""
        assert all(run.stopped is not None for run in self.all)
        self.starting.set()
        await self.may_start.wait()
        if self.refused:
            raise RuntimeError(self.refused)
        self.all.append(Run(tuple(shards)))
        return self.all[-1]

    @property
    def shards(self) -> list[tuple[int, ...]]:
        """The shards of all runs."""
        return [run.shards for run in self.all]


async def test_shards_that_come_at_one_time_start_one_query() -> None:
    """And those that go stop it once; who stays is started again with it."""
    runs = Runs()
    members = await asyncio.gather(*map(runs.joint.start, range(4)))
    assert runs.shards == [(0, 1, 2, 3)]
    assert all(await asyncio.gather(members[1].stop(5.0), members[2].stop(7.0)))
    assert runs.all[0].stopped == 7.0
    more = await asyncio.gather(runs.joint.start(7), runs.joint.start(8))
    assert runs.shards == [(0, 1, 2, 3), (0, 3), (0, 3, 7, 8)]
    await asyncio.gather(members[0].stop(1), members[3].stop(1), *(item.stop(1) for item in more))
    assert len(runs.all) == 3
    assert runs.all[-1].stopped is not None


async def test_the_owner_that_leaves_learns_of_a_batch_that_is_cut_off() -> None:
    """It is unclean for each of them."""
    runs = Runs()
    one, two = await asyncio.gather(runs.joint.start(1), runs.joint.start(2))
    runs.all[0].clean = False
    assert await one.stop(0.1) is False
    assert await two.stop(0.1) is True


async def test_shard_that_leaves_while_the_query_starts_again_waits_for_its_end() -> None:
    """It may not be reported as stopped, and then be run."""
    runs = Runs()
    one, two = await asyncio.gather(runs.joint.start(1), runs.joint.start(2))
    runs.may_start.clear()
    runs.starting.clear()
    assert await one.stop(1)
    await runs.starting.wait()
    leaving = asyncio.ensure_future(two.stop(1))
    await asyncio.sleep(0)
    assert not leaving.done()
    runs.may_start.set()
    assert await leaving
    assert all(run.stopped is not None for run in runs.all)


async def test_first_batch_is_that_of_the_run_that_got_so_far() -> None:
    """A run that ended before its first trigger never has one."""
    runs = Runs()
    one = await runs.joint.start(1)
    waiting = asyncio.ensure_future(one.first_batch())
    await runs.joint.start(2)
    assert not waiting.done()
    runs.all[1].first.set()
    await waiting


async def test_failure_is_that_of_all_shards() -> None:
    """Each is started again by itself, in one query."""
    runs = Runs()
    members = await asyncio.gather(*map(runs.joint.start, range(3)))
    runs.all[0].failing.set()
    assert await asyncio.gather(*(item.failure() for item in members)) == ["out of order"] * 3
    assert runs.all[0].stopped is not None
    assert await members[0].stop(1)
    await asyncio.gather(*map(runs.joint.start, range(3)))
    assert runs.shards == [(0, 1, 2), (0, 1, 2)]


async def test_a_query_that_cannot_start_fails_for_new_and_old_shards() -> None:
    """And it is tried again when they are."""
    runs = Runs()
    stays = await runs.joint.start(1)
    runs.refused = "no such topic"
    with pytest.raises(QueryFailed, match="no such topic"):
        await runs.joint.start(2)
    assert await stays.failure() == "no such topic"
    runs.refused = None
    await asyncio.gather(runs.joint.start(1), runs.joint.start(2))
    assert runs.shards == [(1,), (1, 2)]
