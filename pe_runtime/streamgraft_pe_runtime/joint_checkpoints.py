"""Checkpoints of queries over several shards, and how shards get from one query to the next.

A shard that is run alone has its checkpoint in `<stage>/<shard>`. A query over shards has one in
`<stage>/queries/<id>`, and `<stage>/<shard>/queries/<n>` names it, or nobody: the newest n says
whose log has the shard's position. Whoever takes shards over

1. ends the batches that were cut off, as planned, in the queries that they were begun in;
2. closes the logs of these queries, and marks their ledgers: their owners, should they live, can
   begin no batch then, and none that is late begins a ledger in the place of its successor's;
3. makes the new query's checkpoint from where they ended; state stays where it is, in the shard's
   folder, and the checkpoint says which version of it is meant (joint_state.py);
4. names it in each shard's folder.

Whoever takes a shard to run it alone names nobody, as the last step, too: a takeover that has
closed its log and read where that ended finds its number gone then. Each of these files is created
by one writer only. So a takeover can be cut off anywhere and be done again, by the same owner or
another one, and of two that happen at once one ends.
"""

import logging
import shutil
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from streamgraft_pe_runtime import (
    arrangement,
    exclusive_files,
    joint_state,
    modes,
    query_logs,
    shard_names,
    state_metadata,
)
from streamgraft_pe_runtime.checkpoint_files import (
    KEPT_ENTRIES,
    LEDGERS,
    TAKEN_OVER,
    entries,
    keep_as_former,
)
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged, reading
from streamgraft_pe_runtime.joint_state import Description
from streamgraft_pe_runtime.ledgers import Begun, Entry
from streamgraft_pe_runtime.lost_checkpoints import has_left
from streamgraft_pe_runtime.shard_names import QUERIES, Holder
from streamgraft_pe_runtime.spark_log import NotJoinable, Position, StartOf, joined, telling
from streamgraft_pe_runtime.targets import MAIN

log = logging.getLogger(__name__)

_SHARDS_FILE = "shards.json"
_KEPT_SECONDS = 86_400.0
"""How long a query that is over keeps its folder, where an owner that was frozen finds that."""

EndBatch = Callable[[Path, Sequence[int]], None]
"""Runs the query that has a checkpoint and shards until the batch that was cut off is committed."""


ReadLedgers = Callable[[Collection[Begun]], Mapping[Begun, Entry]]
"""Returns what is in ledgers, as far as they are there. Raises OSError."""


class CheckpointPutBack(Exception):
    """Kafka has more batches than a checkpoint; the message says what to do."""

    def __init__(self, checkpoint: Path, why: str) -> None:
        super().__init__(
            f"{checkpoint}: {why}: the checkpoint was put back to an earlier one, or lost a file."
            " Put the newest back"
        )


@dataclass(frozen=True)
class JointCheckpoints:
    """The checkpoints of a stage. All calls block."""

    stage: Path
    end_batch: EndBatch
    provider: str | None = None
    """Spark's class for the state of shards that have none yet; None: the stage has no state."""
    ledgers: ReadLedgers = lambda begun: {}
    """By default the stage has none."""
    names: dict[int, Path] = field(default_factory=dict)
    """Of each shard that was taken: the name under which we have it (shard_names.py)."""

    def take_over(self, shards: Iterable[int], start_of: StartOf) -> Path:
        """Return the checkpoint for a query over these shards; former owners are fenced off.

        The query that has exactly these shards goes on with its own. Raises TakenByAnother,
        NotJoinable, OtherMode, CheckpointDamaged, CheckpointPutBack, OSError.
        """
        wanted = sorted(set(shards))
        holders = {shard: self._holder(shard) for shard in wanted}
        if same := self._same(wanted, holders):
            for shard, holder in holders.items():  # a pod that was lost may live and have these
                self._name(shard, holder, same)
            return same
        self._refuse_put_back(holders)
        ends = {shard: self._end(shard, holder) for shard, holder in holders.items()}
        positions = telling({shard: end for shard, end in ends.items() if end is not None})
        query = self.stage / QUERIES / uuid.uuid4().hex
        self._describe(query, wanted, holders, positions)
        if positions:
            known = next(iter(positions.values()))
            fresh = (shard for shard in wanted if shard not in positions)
            begun = {shard: known.beginning(shard, start_of) for shard in fresh}
            ends_of_all = {**positions, **begun}
            if self.provider:  # some may have run alone, and others together
                ends_of_all = {
                    shard: joint_state.in_one_format(end) for shard, end in ends_of_all.items()
                }
            position = joined(ends_of_all)
            if self.provider and position.state:
                position = joint_state.for_query(position, len(wanted))
            elif self.provider:
                # Batches that had no records, but ends of transactions, left no state: Spark takes
                # no query with such a batch behind it up without.
                position = Position(position.sources)
            query_logs.write(query, 0, position)
        _sync(query)
        for shard, holder in holders.items():
            self._name(shard, holder, query)
        return query

    def take_alone(self, shard: int) -> Path:
        """Return a shard's own checkpoint, for a query that runs it alone.

        Raises TakenByAnother, CheckpointDamaged, CheckpointPutBack, OSError.
        """
        own, holder = self._own(shard), self._holder(shard)
        if holder.query is None:
            self.check_left(shard)
            shard_names.check_held(own, holder)
            query_logs.drop_stray(own)
            query_logs.reopen(own)  # a takeover may have been cut off
            (own / LEDGERS / TAKEN_OVER).unlink(missing_ok=True)
            self._name(shard, holder, None)
            return own
        self._refuse_put_back({shard: holder})
        shard_names.check_held(own, holder)
        keep_as_former(own)
        arrangement.forget(own)
        query_logs.reopen(own)
        number = query_logs.newest(own / "offsets") + 1
        shard_names.check_held(own, holder)  # the entries are of whoever runs it by now
        provider = self._description(holder.query).provider
        end = self._end(shard, holder)
        if end and provider and end.state:
            batch = joint_state.version(end.state[shard]) - 1
            state_metadata.copy(holder.query, own, batch, 1)
            query_logs.go_on(own, batch, joint_state.for_one(end, provider))
        elif end:
            # Without state there was no batch yet in which the shard had records.
            query_logs.write(own, number, Position(end.sources) if provider else end)
        _sync(own)
        self._name(shard, holder, None)
        query_logs.shorten(own, self.names[shard])
        return own

    def is_alone(self, shard: int) -> bool:
        """Return whether a shard's own checkpoint says where it is, as of one that ran alone, or
        that nobody has run. Raises CheckpointDamaged, OSError."""
        self.check_left(shard)
        return self._holder(shard).query is None and not query_logs.is_closed(self._own(shard))

    @staticmethod
    @contextmanager
    def left_behind(query: Path | None) -> Iterator[None]:
        """Fence the owner of a query, if it is one, that has a shard whose checkpoint the block
        replaces with an earlier one: it may be frozen, and no successor closes its log.

        A batch that was cut off can be ended for as long as the block has not come to its end.
        """
        try:
            if query is not None and query_logs.close(query):
                _mark(query)
        except CheckpointDamaged as error:  # may be why it is replaced
            log.warning("a query whose shard goes back is not ended: %s", error)
        yield
        if query is not None:
            with suppress(CheckpointDamaged):
                query_logs.bar(query)
            _mark(query)

    def cut_off_with(self, shard: int) -> list[int]:
        """Return the shards of a query over several, which nobody runs, if it was cut off amid a
        batch: whoever takes one of them over has to run that first."""
        query = self._holder(shard).query
        if query is None or not query_logs.is_cut_off(query):
            return []
        return self._description(query).shards

    def checkpoint(self, shard: int) -> Path:
        """Return the checkpoint of the query that has a shard. Raises CheckpointDamaged."""
        return self._holder(shard).query or self._own(shard)

    def sweep(self, now: float | None = None) -> None:
        """Remove the checkpoints of queries that have been over for long."""
        before = (now or time.time()) - _KEPT_SECONDS
        held: set[Path | None] = set()
        for shard in (int(item.name) for item in self.stage.glob("[0-9]*") if item.name.isdigit()):
            try:
                holder = self._holder(shard)
            except CheckpointDamaged as error:  # its owner says so, and nobody knows its query
                log.warning("no checkpoints are removed: %s", error)
                return
            held.add(holder.query)
        for query in (self.stage / QUERIES).glob("*"):
            if query not in held:
                # Its age is that of its end: the owner may be frozen since just before that.
                end = query / LEDGERS / TAKEN_OVER
                file = end if end.exists() else query / _SHARDS_FILE  # then it never ran
                _remove_if_older(file, before, partial(shutil.rmtree, query))

    def _same(self, wanted: list[int], holders: Mapping[int, Holder]) -> Path | None:
        """Return the checkpoint of a query with these shards and no others that is not over."""
        query, *others = {holder.query for holder in holders.values()}
        if query is None or others or query_logs.is_closed(query):
            return None
        return query if self._description(query).shards == wanted else None

    def _refuse_put_back(self, holders: Mapping[int, Holder]) -> None:
        """Raise CheckpointPutBack if a query that we are to end has written more than its log has.

        A query that goes on with its checkpoint looks there itself. But its successor begins a
        ledger in the place of its own, and would write all since once more.
        """
        begun: dict[Path, tuple[Begun, int, Holder]] = {}
        for shard, holder in holders.items():
            place = holder.query or self._own(shard)
            marker = place / LEDGERS / MAIN
            if place in begun or not marker.exists() or modes.may_be_repeated(place):
                continue  # real-time mode has to end what it has begun, maybe at other brokers
            if not query_logs.is_closed(place):
                first = min(self._description(place).shards) if holder.query else shard
                begun[place] = (first, marker.read_text().strip()), shard, holder
        noted = self.ledgers([ledger for ledger, _, _ in begun.values()]) if begun else {}
        for place, (ledger, shard, holder) in begun.items():
            # A batch is in the log before it is in the ledger, so what is read later has it. And
            # nobody else writes under this name before the log is closed, or the shard another's.
            over = query_logs.is_closed(place) or self._holder(shard) != holder
            if over or (entry := noted.get(ledger)) is None:
                continue
            if entry.incarnation != ledger[1]:
                raise CheckpointPutBack(place, "another query has written since")
            if entry.batch > (last := query_logs.newest(place / "offsets")):
                why = f"batch {entry.batch} is written, and the last one here is {last}"
                raise CheckpointPutBack(place, why)

    def _end(self, shard: int, holder: Holder) -> Position | None:
        """Return a shard's position once nobody can bring it further."""
        if holder.query is None:
            self.check_left(shard)
            own = self._own(shard)
            if modes.may_be_repeated(own):  # only a query in real-time mode can end that
                raise modes.OtherMode
            arrangement.finish(own)
            query_logs.drop_stray(own)
            # A batch more would be a version of the state more.
            stateful = (own / "state").is_dir()
            while not (query_logs.close(own) if stateful else query_logs.cut(own)):
                # Of a takeover that never came to its end: whose batch this is could not end it.
                (own / LEDGERS / TAKEN_OVER).unlink(missing_ok=True)
                self.end_batch(own, [shard])
            _mark(own)
            end = query_logs.read(own)
            if end is None or end.batch is None or not stateful:
                return end
            return joint_state.ended_alone(end, shard, query_logs.newest(own / "commits"))
        arrangement.finish(holder.query)
        description = self._description(holder.query)
        while not query_logs.close(holder.query):
            self.end_batch(holder.query, description.shards)
        _mark(holder.query)
        end = query_logs.read(holder.query)
        return description.ended(end).share(shard) if end else None

    def check_left(self, shard: int) -> None:
        """Raise CheckpointDamaged for a shard without anything that a query has run: a query runs
        once it is named in the folders of all its shards."""
        own = self._own(shard)
        if shard_names.left_aside(own):
            raise CheckpointDamaged(own, "a rollback of it was cut off: roll back the region")
        if self._holder(shard).number >= 0 or has_left(own):
            return
        for query in (self.stage / QUERIES).glob("*"):
            ran = query_logs.newest(query / "commits") > 0
            if ran and shard in self._description(query).shards:
                raise CheckpointDamaged(own, f"it is gone, though query {query.name} ran it")

    def _description(self, query: Path) -> Description:
        file = query / _SHARDS_FILE
        with reading(file):
            return Description.parse(file.read_text())

    def _describe(
        self,
        query: Path,
        shards: list[int],
        holders: Mapping[int, Holder],
        positions: Mapping[int, Position],
    ) -> None:
        """Say whose the new query is, and which state it goes on from. Raises NotJoinable."""
        provider = self.provider
        state: dict[int, str] = {}
        for shard, position in positions.items():
            if not position.state:
                continue
            before = holders[shard].query
            known = self._description(before).provider if before else joint_state.provider(position)
            if state and known != provider:
                raise NotJoinable(f"the state of shard {shard} is kept by {known}, not {provider}")
            if not state:
                state_metadata.copy(before or self._own(shard), query, 0, len(shards))
            provider = known
            state |= position.state
        description = Description(shards, provider, state)
        exclusive_files.create(query / _SHARDS_FILE, description.text())

    def _name(self, shard: int, holder: Holder, query: Path | None) -> None:
        self.names[shard] = shard_names.name(self._own(shard), holder, query)

    def _holder(self, shard: int) -> Holder:
        return shard_names.holder(self._own(shard))

    def _own(self, shard: int) -> Path:
        return self.stage / str(shard)


def is_joint(checkpoint: Path) -> bool:
    """Return whether a checkpoint is that of a query over shards, by its place. Pure."""
    return checkpoint.parent.name == QUERIES


def describe(checkpoint: Path, shards: Iterable[int], provider: str | None) -> None:
    """Make the checkpoint of a query over shards that none has run before."""
    text = Description(sorted(shards), provider, {}).text()
    exclusive_files.create(checkpoint / _SHARDS_FILE, text)


def _mark(checkpoint: Path) -> None:
    """Note that a query is over whose log is closed, before its successor begins a ledger.

    Both may write under one transactional id. A run that was frozen before it had taken the id
    takes it from the successor, who comes again; were it to begin its ledger, too, that of the
    successor would be gone.
    """
    exclusive_files.create(checkpoint / LEDGERS / TAKEN_OVER, "")


def _sync(checkpoint: Path) -> None:
    """Force what a query begins with onto the disk, before names say that it counts.

    Those of before are gone then: behind a power failure nobody would know where its shards are.
    """
    logs = (checkpoint / log for log in ("offsets", "commits"))
    newest = (log / str(number) for log in logs for number in entries(log)[-KEPT_ENTRIES:])
    others = [*checkpoint.glob("*"), *checkpoint.glob("sources/*/0")]
    for file in [*newest, *filter(Path.is_file, others), *state_metadata.files(checkpoint)]:
        exclusive_files.sync(file)


def _remove_if_older(file: Path, before: float, remove: Callable[[], object]) -> None:
    with suppress(FileNotFoundError):  # somebody else has swept it
        if file.stat().st_mtime < before:
            remove()
