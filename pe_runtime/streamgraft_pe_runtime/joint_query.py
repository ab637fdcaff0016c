"""One query over all shards that a PE holds, for which each shard still starts and stops by itself.

The protocol takes up and releases shards one by one. What it asks for within a moment is done in
one step: the query stops once, at a batch boundary, and starts once over the shards that are left
and those that came. A shard that stays hears nothing of it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streamgraft_pe_runtime.protocol import Query

log = logging.getLogger(__name__)

_GATHER_SECONDS = 0.01
"""For the other shards of the same spec, which the protocol tells of in the same turn."""
_RESTART_SECONDS = 120.0
"""How long the query may take to its batch boundary for shards that come."""

Start = Callable[[Sequence[int]], Awaitable[Query]]
"""Takes over shards and starts their query."""


class QueryFailed(Exception):
    """The query could not be started; the message is Spark's, or the application's."""


@dataclass(eq=False)
class _Member:
    """A shard that the query has, or is to have."""

    joint: "JointQuery"
    shard: int
    started: asyncio.Future[None]
    """Done once a query runs that has the shard."""
    failed: asyncio.Future[str]
    """Done once that query has ended by itself, or could not be started again."""

    async def first_batch(self) -> None:
        """Return once the first trigger since the start has completed."""
        await self.joint.first_batch()

    async def failure(self) -> str:
        """Return once the query has ended by itself: why."""
        return await asyncio.shield(self.failed)

    async def stop(self, deadline_seconds: float) -> bool:
        """Stop at a batch boundary; False if the deadline passed and a batch was cut off."""
        return await self.joint.leave(self, deadline_seconds)


@dataclass(eq=False)
class _Run:
    """A run of the query."""

    query: Query
    members: Mapping[int, _Member]
    over: asyncio.Event = field(default_factory=asyncio.Event)
    why: str | None = None
    """Why it ended by itself."""


@dataclass(eq=False)
class JointQuery:
    """The query of the shards that were started and not stopped."""

    start_query: Start
    _wanted: dict[int, _Member] = field(default_factory=dict)
    _run: _Run | None = None
    _starting: Mapping[int, _Member] = field(default_factory=dict)
    _leaving: list[tuple[float, asyncio.Future[bool]]] = field(default_factory=list)
    _follower: asyncio.Task[None] | None = None
    _watcher: asyncio.Task[None] | None = None
    _runs: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self, shard: int) -> Query:
        """Return once a query runs that has the shard. Raises why it could not be started."""
        loop = asyncio.get_running_loop()
        member = _Member(self, shard, loop.create_future(), loop.create_future())
        self._wanted[shard] = member
        self._settle()
        await member.started
        return member

    async def leave(self, member: _Member, deadline_seconds: float) -> bool:
        """Take a shard out of the query; False if a batch of it was cut off for that."""
        if self._wanted.get(member.shard) is member:
            del self._wanted[member.shard]
        members = self._run.members if self._run else self._starting
        if members.get(member.shard) is not member:
            return True  # its query has ended
        left: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._leaving.append((deadline_seconds, left))
        self._settle()
        return await left

    async def first_batch(self) -> None:
        """Return once a run has completed its first trigger."""
        while True:
            await self._runs.wait()
            run = self._run
            assert run is not None, "set while there is one"
            first = asyncio.ensure_future(run.query.first_batch())
            over = asyncio.ensure_future(run.over.wait())
            try:
                await asyncio.wait({first, over}, return_when=asyncio.FIRST_COMPLETED)
                if first.done():
                    return first.result()
            finally:
                first.cancel()
                over.cancel()

    def _settle(self) -> None:
        if self._follower is None or self._follower.done():
            self._follower = asyncio.create_task(self._follow(), name="joint-query")

    async def _follow(self) -> None:
        """Stop and start until the query has the shards that are wanted."""
        await asyncio.sleep(_GATHER_SECONDS)
        while True:
            run = self._run
            if run and run.why is not None:
                await self._stop(run)
                self._give_up(run.members, run.why)
            elif (run.members if run else {}) == self._wanted:
                return
            else:
                if run:
                    await self._stop(run)
                if self._wanted:
                    await self._start(dict(self._wanted))

    async def _stop(self, run: _Run) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        self._runs.clear()
        deadline = max((seconds for seconds, _ in self._leaving), default=_RESTART_SECONDS)
        try:
            clean = await run.query.stop(deadline)
        except Exception as error:  # the JVM may be gone: then nothing runs any more
            log.warning("the query did not stop: %s", error)
            clean = False
        run.over.set()
        self._run = None
        self._let_go(clean=clean)

    async def _start(self, members: Mapping[int, _Member]) -> None:
        self._starting = members
        try:
            run = _Run(await self.start_query(sorted(members)), members)
        except Exception as error:  # whatever user code or Spark raises is a state, not a crash
            self._let_go(clean=True)
            self._give_up(members, str(error) or repr(error))
            return
        finally:
            self._starting = {}
        self._run = run
        self._runs.set()
        for member in members.values():
            if not member.started.done():
                member.started.set_result(None)
        self._watcher = asyncio.create_task(self._watch(run), name="joint-query-failure")

    async def _watch(self, run: _Run) -> None:
        try:
            run.why = await run.query.failure()
        except Exception as error:  # the JVM may be gone
            run.why = str(error) or repr(error)
        self._watcher = None
        self._settle()

    def _let_go(self, *, clean: bool) -> None:
        leaving, self._leaving = self._leaving, []
        for _, left in leaving:
            if not left.done():
                left.set_result(clean)

    def _give_up(self, members: Mapping[int, _Member], why: str) -> None:
        """Fail the shards of the query: each is started again, all at one time."""
        for shard, member in members.items():
            if self._wanted.get(shard) is member:
                del self._wanted[shard]
            if not member.started.done():
                member.started.set_exception(QueryFailed(why))
            elif not member.failed.done():
                member.failed.set_result(why)
