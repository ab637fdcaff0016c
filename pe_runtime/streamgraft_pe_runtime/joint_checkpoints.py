"""Checkpoints of queries over several shards, and how shards get from one query to the next.

A shard that is run alone has its checkpoint in `<stage>/<shard>`. A query over shards has one in
`<stage>/queries/<id>`, and `<stage>/<shard>/queries/<n>` names it: the newest n says whose log has
the shard's position. Whoever takes shards over

1. ends the batches that were cut off, as planned, in the queries that they were begun in;
2. closes the logs of these queries: their owners, should they live, can begin no batch then;
3. makes the new query's checkpoint from where they ended;
4. names it in each shard's folder.

Each of these files is created by one writer only. So a takeover can be cut off anywhere and be done
again, by the same owner or another one, and of two that happen at once one ends.
"""

import json
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from streamgraft_pe_runtime import exclusive_files, query_logs
from streamgraft_pe_runtime.protocol.failures import FENCED
from streamgraft_pe_runtime.spark_log import Position, StartOf, joined

QUERIES = "queries"
_SHARDS_FILE = "shards.json"
_KEPT_SECONDS = 86_400.0
"""How long a query that is over keeps its folder, where an owner that was frozen finds that."""

EndBatch = Callable[[Path, Sequence[int]], None]
"""Runs the query that has a checkpoint and shards until the batch that was cut off is committed."""


class TakenByAnother(Exception):
    """Another owner has taken a shard over at the same time."""

    def __init__(self, shard: int) -> None:
        super().__init__(f"{FENCED[0]}: another owner has taken over shard {shard}")


@dataclass(frozen=True)
class _Holder:
    """Who runs a shard: a query, or (None) nobody or one that runs it alone."""

    number: int
    query: Path | None


@dataclass(frozen=True)
class JointCheckpoints:
    """The checkpoints of a stage. All calls block."""

    stage: Path
    end_batch: EndBatch

    def take_over(self, shards: Iterable[int], start_of: StartOf) -> Path:
        """Return the checkpoint for a query over these shards; who ran them before is fenced off.

        The query that has exactly these shards goes on with its own. Raises TakenByAnother,
        NotJoinable, OSError.
        """
        wanted = sorted(set(shards))
        holders = {shard: self._holder(shard) for shard in wanted}
        if same := self._same(wanted, holders):
            return same
        ends = {shard: self._end(shard, holder) for shard, holder in holders.items()}
        positions = {shard: end for shard, end in ends.items() if end is not None}
        query = self.stage / QUERIES / uuid.uuid4().hex
        exclusive_files.create(query / _SHARDS_FILE, json.dumps(wanted))
        if positions:
            known = next(iter(positions.values()))
            fresh = (shard for shard in wanted if shard not in positions)
            begun = {shard: known.beginning(shard, start_of) for shard in fresh}
            query_logs.write(query, 0, joined({**positions, **begun}))
        for shard, holder in holders.items():
            self._name(shard, holder, query)
        return query

    def take_alone(self, shard: int) -> Path:
        """Return a shard's own checkpoint, for a query that runs it alone."""
        own, holder = self._own(shard), self._holder(shard)
        if holder.query is None:
            return own
        number = query_logs.newest(own / "offsets") + 1
        if end := self._end(shard, holder):
            query_logs.write(own, number, end)
        self._name(shard, holder, None)
        return own

    def position(self, shard: int) -> Position | None:
        """Return where a shard has come to that nobody runs; None if no query has run it."""
        return self._end(shard, self._holder(shard))

    def sweep(self, now: float | None = None) -> None:
        """Remove the checkpoints of queries that have been over for long, and their names."""
        before = (now or time.time()) - _KEPT_SECONDS
        held: set[Path | None] = set()
        for shard in (int(item.name) for item in self.stage.glob("[0-9]*") if item.name.isdigit()):
            holder = self._holder(shard)
            held.add(holder.query)
            for file in (self._own(shard) / QUERIES).glob("[0-9]*"):
                if file.name != str(holder.number):
                    _remove_if_older(file, before, file.unlink)
        for query in (self.stage / QUERIES).glob("*"):
            if query not in held:
                _remove_if_older(query / _SHARDS_FILE, before, partial(shutil.rmtree, query))

    def _same(self, wanted: list[int], holders: Mapping[int, _Holder]) -> Path | None:
        """Return the checkpoint of a query with these shards and no others that is not over."""
        query, *others = {holder.query for holder in holders.values()}
        if query is None or others or query_logs.is_closed(query):
            return None
        return query if self._shards(query) == wanted else None

    def _end(self, shard: int, holder: _Holder) -> Position | None:
        """Return a shard's position once nobody can bring it further."""
        if holder.query is None:
            own = self._own(shard)
            while not query_logs.cut(own):
                self.end_batch(own, [shard])
            return query_logs.read(own)
        while not query_logs.close(holder.query):
            self.end_batch(holder.query, self._shards(holder.query))
        end = query_logs.read(holder.query)
        return end.share(shard) if end else None

    def _shards(self, query: Path) -> list[int]:
        shards: list[int] = json.loads((query / _SHARDS_FILE).read_text())
        return shards

    def _name(self, shard: int, holder: _Holder, query: Path | None) -> None:
        text = json.dumps({"query": query.name if query else None})
        if not exclusive_files.create(self._own(shard) / QUERIES / str(holder.number + 1), text):
            raise TakenByAnother(shard)

    def _holder(self, shard: int) -> _Holder:
        folder = self._own(shard) / QUERIES
        number = query_logs.newest(folder)
        if number < 0:
            return _Holder(number, None)
        name = json.loads((folder / str(number)).read_text())["query"]
        return _Holder(number, self.stage / QUERIES / name if name else None)

    def _own(self, shard: int) -> Path:
        return self.stage / str(shard)


def _remove_if_older(file: Path, before: float, remove: Callable[[], object]) -> None:
    with suppress(FileNotFoundError):  # somebody else has swept it
        if file.stat().st_mtime < before:
            remove()
