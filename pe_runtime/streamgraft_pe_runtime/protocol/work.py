"""What the protocol needs done: by Spark in a pod, by chance and virtual time in the simulation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamgraft_common.resources import MatchedImport, Saved, Saving


@dataclass(frozen=True)
class Load:
    """How busy a shard is."""

    busy: float | None
    """Share of the time that its batches took recently, 0 to 1. None in real-time mode."""
    lag: int
    """Records of its inputs that are not committed."""


@dataclass(frozen=True)
class Left:
    """How a shard was left."""

    clean: bool
    """Whether no batch is begun and not committed in its checkpoint."""
    last_batch_at: str | None
    """End of its last batch, RFC 3339; None if that is not known."""


class NotCommitted(Exception):
    """A sink's function did not prepare a cut, or make it final; the text says why."""


class CopyDamaged(OSError):
    """A copy is not there, or not as it was made, or another's is in its place: the text says what
    to do. Trying again does not help."""


class Query(Protocol):
    """A query that was started."""

    async def first_batch(self) -> None:
        """Return once the first trigger since the start has completed."""

    async def failure(self) -> str:
        """Return once the query has ended by itself: why."""

    async def stop(self, deadline_seconds: float) -> bool:
        """Stop at a batch boundary; False if the deadline passed and a batch was cut off."""


class Stage(Protocol):
    """The stage that the PE works on, as its newest content describes it."""

    async def start(self, shard: int, epoch: int) -> Query:
        """Start the query of a shard, on its checkpoint.

        `epoch`: of the spec that gave the shard to us. Whatever it raises is the query's failure.
        """

    async def leave(self, shard: int, *, publish: bool) -> Left:
        """Forget a shard whose query is stopped; `publish` where it ended for all to read."""

    async def save(self, request: Saving) -> Saved:
        """Copy checkpoints into a savepoint, and commit a cut if that is asked for.

        Raises OSError or NotCommitted.
        """

    @property
    def apart(self) -> str:
        """Why each shard has a query of its own though all could share one; '' if not so."""

    def loads(self) -> Mapping[int, Load]:
        """Return the loads of the shards that run."""

    def behind(self) -> bool:
        """Return whether what waits for a query would fill half a batch or more."""

    def connect(self, imports: Sequence[MatchedImport]) -> bool:
        """Have imports read these topics from now on; return whether queries must start anew for
        it, at a batch boundary: a filter changed. Does not block."""


class Work(Protocol):
    """A driver that is up."""

    async def apply(self, content: str, metadata: str) -> Stage:
        """Take up a content of the PE, whose graph metadata is this JSON.

        Raises what the application raises; the stage from before then stays as it is.
        """


class Telemetry(Protocol):
    """Counts what happens to shards, for metrics."""

    def begin_anew(self) -> None:
        """Forget what is not the process's: it was another PE's."""

    def held(self, shards: int) -> None:
        """Note how many shards we hold."""

    def failed(self, shard: int) -> None:
        """Note that a shard's query failed, and will be started again."""

    def started(self, seconds: float) -> None:
        """Note how long a start took, to the end of the first trigger."""

    def stopped(self, seconds: float, *, clean: bool) -> None:
        """Note how long a stop took, and whether it was at a batch boundary."""
