"""Shards go from query to query, over crashes at each step and owners that come back.

Owners write what a batch makes in a transaction with its entry in the ledger, as the sink does
(scala/exactly_once/Transactions.scala); its producer takes the transactional id at any moment
between the start of the query and its first batch.
"""

import errno
import json
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgraft_common.pe_metadata import HDFS
from streamgraft_pe_runtime import exclusive_files, query_logs, shard_names
from streamgraft_pe_runtime.arrangement import arrange
from streamgraft_pe_runtime.checkpoint_files import LEDGERS, TAKEN_OVER, entries
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged
from streamgraft_pe_runtime.joint_checkpoints import (
    CheckpointPutBack,
    JointCheckpoints,
)
from streamgraft_pe_runtime.ledgers import Begun
from streamgraft_pe_runtime.ledgers import Entry as Noted
from streamgraft_pe_runtime.lost_checkpoints import ROLLED_BACK
from streamgraft_pe_runtime.positions import read_checkpoint
from streamgraft_pe_runtime.protocol.failures import explained
from streamgraft_pe_runtime.shard_names import TakenByAnother
from streamgraft_pe_runtime.spark_log import Position
from streamgraft_pe_runtime.targets import MAIN

TOPIC = "in"
SHARDS = 4


@pytest.fixture(scope="module", autouse=True)
def disk() -> Iterator[None]:
    """Nobody pulls the plug here, and thousands of files are made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda opened: None)
        yield


class Crash(Exception):
    """The owner dies here."""


class Fenced(Exception):
    """As Spark ends a query whose log has an entry that it did not write, and Kafka a producer."""


class Refused(Exception):
    """The ledger is another query's: a query that says so needs help."""


def nowhere(topic: str, shard: int) -> int:
    """Shards in these tests begin at the start of their partitions."""
    assert topic == TOPIC
    return 0


Ranges = dict[int, list[tuple[int, int]]]
"""Of each shard, batch by batch: from which offset to which."""


Entry = tuple[str, int]
"""Of a ledger: its incarnation, and the last batch that is written."""


class FakeBrokers:
    """Who may write under a transactional id, its ledger, and what was written of each shard.

    `done`: what Spark's log says of it.
    """

    def __init__(self) -> None:
        self.done: Ranges = {}
        self.epochs = Counter[int]()
        self.ledgers: dict[int, Entry] = {}
        self.written: Ranges = {}

    def register(self, writer: int) -> int:
        """Fence the owners before."""
        self.epochs[writer] += 1
        return self.epochs[writer]

    def noted(self, begun: Collection[Begun]) -> dict[Begun, Noted]:
        """Return what is in ledgers."""
        found = {one: self.ledgers[one[0]] for one in begun if one[0] in self.ledgers}
        return {one: Noted(*entry) for one, entry in found.items()}

    def commit(
        self, writer: int, epoch: int, entry: Entry, ranges: dict[int, tuple[int, int]]
    ) -> None:
        """Write, and note the entry in the ledger, in one transaction. Raises Fenced."""
        if self.epochs[writer] != epoch:
            raise Fenced
        self.ledgers[writer] = entry
        for shard, written in ranges.items():
            self.written.setdefault(shard, []).append(written)


def stage_of(folder: Path, brokers: FakeBrokers) -> JointCheckpoints:
    """Return a stage whose new owners end the batches of old ones."""

    asked = Counter[Path]()

    def end_batch(checkpoint: Path, shards: Sequence[int]) -> None:
        asked[checkpoint] += 1
        assert asked[checkpoint] < 100, "nobody can end its batch"
        owner = Owner(brokers)
        with suppress(Fenced):  # the old owner has ended it
            owner.open(checkpoint, shards)
            if owner.cut_off:
                owner.batch(0)

    return JointCheckpoints(folder, end_batch, ledgers=brokers.noted)


@dataclass
class Owner:
    """Plays a driver with one query, which does to its checkpoint what Spark does."""

    brokers: FakeBrokers
    checkpoint: Path | None = None
    at: dict[int, int] = field(default_factory=dict)
    """Where its next batch begins; a query reads that when it starts, and then no more."""
    number: int = 0
    cut_off: dict[int, int] | None = None
    """Where the batch ends that the log has and nobody committed."""
    planned: dict[int, int] | None = None
    """Where the batch that runs ends."""
    writer: int = 0
    """Its transactional id: that of its first shard."""
    epoch: int | None = None
    """Of its producer; None: that has not taken the id yet."""
    entry: Entry = ("", -1)
    named: int = -1
    """The newest name of the shard's query when this one was opened."""

    def start(self, stage: JointCheckpoints, shards: Sequence[int]) -> None:
        """Take shards over and start their query."""
        self.checkpoint = self.planned = None
        self.open(stage.take_over(shards, nowhere), shards)

    def open(self, checkpoint: Path, shards: Sequence[int]) -> None:
        """Start a query on a checkpoint. Raises Fenced."""
        if query_logs.is_closed(checkpoint):  # by now, and Spark takes no such log
            raise Fenced
        self.named = newest(checkpoint / "queries")
        self.number = newest(checkpoint / "commits") + 1
        begin = {shard: nowhere(TOPIC, shard) for shard in shards}
        self.at = begin | self.offsets(checkpoint, self.number - 1)
        self.cut_off = self.offsets(checkpoint, self.number) or None
        self.checkpoint, self.planned = checkpoint, None
        self.writer, self.epoch = min(shards), None

    def register(self) -> None:
        """Take the transactional id, and find or begin the ledger. Raises Fenced, Refused."""
        assert self.checkpoint is not None
        self.epoch = self.brokers.register(self.writer)
        ledgers = self.checkpoint / LEDGERS
        if (ledgers / TAKEN_OVER).exists() or newest(self.checkpoint / "queries") != self.named:
            raise Fenced
        found, marker = self.brokers.ledgers.get(self.writer), ledgers / MAIN
        if marker.exists():
            if found is None or found[0] != marker.read_text():
                raise Refused
            self.entry = found
            return
        former = ledgers / "former" / MAIN
        is_former = former.exists() and found is not None and found[0] == former.read_text()
        self._note(found if is_former and found else (uuid.uuid4().hex, -1))
        if not exclusive_files.create(marker, self.entry[0]):
            self._note((marker.read_text(), -1))

    def write(self) -> None:
        """Write what the batch makes, unless the ledger has it. Raises Fenced, Refused."""
        assert self.planned is not None
        if self.epoch is None:
            self.register()
        incarnation, last = self.entry
        if last > self.number:
            raise Refused
        if last < self.number:
            ranges = {shard: (self.at[shard], end) for shard, end in self.planned.items()}
            self._note((incarnation, self.number), ranges)

    def _note(self, entry: Entry, ranges: dict[int, tuple[int, int]] | None = None) -> None:
        assert self.epoch is not None
        self.brokers.commit(self.writer, self.epoch, entry, ranges or {})
        self.entry = entry

    def plan(self, records: int) -> None:
        """Begin a batch of so many records of each shard, or the one that was cut off."""
        assert self.checkpoint is not None
        planned = self.cut_off or {shard: at + records for shard, at in self.at.items()}
        log = {TOPIC: {str(shard): offset for shard, offset in planned.items()}}
        text, _ = Position((log,), {"batchTimestampMs": 1}).entries()
        entry = self.checkpoint / "offsets" / str(self.number)
        if not self.cut_off and not exclusive_files.create(entry, text):
            raise Fenced
        self.planned, self.cut_off = planned, None

    def commit(self) -> None:
        """End the batch."""
        assert self.checkpoint is not None
        assert self.planned is not None
        entry = self.checkpoint / "commits" / str(self.number)
        if not exclusive_files.create(entry, 'v1\n{"nextBatchWatermarkMs":0}'):
            raise Fenced
        for shard, end in self.planned.items():
            self.brokers.done.setdefault(shard, []).append((self.at[shard], end))
        self.at, self.planned, self.number = self.planned, None, self.number + 1

    def batch(self, records: int) -> None:
        """Run a batch."""
        self.plan(records)
        self.write()
        self.commit()

    @staticmethod
    def offsets(checkpoint: Path, number: int) -> dict[int, int]:
        """Return the offsets of an entry of the log; none if it is not there."""
        entry = checkpoint / "offsets" / str(number)
        if not entry.exists():
            return {}
        return {int(s): o for s, o in json.loads(entry.read_text().splitlines()[2])[TOPIC].items()}


def newest(log: Path) -> int:
    """Return the number of a log's newest entry."""
    return max(entries(log), default=-1)


def assert_seamless(done: Ranges) -> None:
    """Each shard's committed batches follow each other: nothing is left out, nothing repeated."""
    for ranges in done.values():
        assert ranges[0][0] == 0
        assert [at for at, _ in ranges[1:]] == [to for _, to in ranges[:-1]]


def test_shards_go_on_where_their_last_query_ended(tmp_path: Path) -> None:
    """All in one query, then dealt to two, then together again."""
    brokers = FakeBrokers()
    stage = stage_of(tmp_path, brokers)
    one, two = Owner(brokers), Owner(brokers)
    one.start(stage, range(4))
    one.batch(5)
    one.start(stage, [0, 1])
    two.start(stage, [2, 3])
    for owner, records in ((one, 2), (two, 3), (two, 4)):
        owner.batch(records)
    one.start(stage, range(4))
    assert read_checkpoint(one.checkpoint or tmp_path).positions == {
        (TOPIC, 0): 7, (TOPIC, 1): 7, (TOPIC, 2): 12, (TOPIC, 3): 12
    }  # fmt: skip
    one.batch(1)
    assert_seamless(brokers.done)


def test_an_attempt_to_go_on_that_was_cut_off_is_no_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would run it, from a state of before on which there is a newer one."""

    def position(millis: int) -> Position:
        settings = {"batchWatermarkMs": 0, "batchTimestampMs": millis, "conf": {}}
        offsets = "\n".join(("v1", json.dumps(settings), json.dumps({TOPIC: {"0": 60}})))
        ids = {"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": [["6_r"]]}}
        return Position.parse(offsets, "\n".join(("v2", json.dumps(ids))))

    create = exclusive_files.create

    def full(file: Path, text: str) -> bool:
        if file.parent.name == "commits":
            raise OSError(28, "No space left on device")
        return create(file, text)

    with monkeypatch.context() as patched:
        patched.setattr(exclusive_files, "create", full)
        with pytest.raises(OSError, match="No space"):
            query_logs.go_on(tmp_path, 5, position(1000))
    assert query_logs.is_cut_off(tmp_path)
    query_logs.go_on(tmp_path, 5, position(2000))
    assert not query_logs.is_cut_off(tmp_path)
    assert query_logs.read(tmp_path) == position(2000)


def test_same_shards_keep_their_query(tmp_path: Path) -> None:
    """A driver that is started again goes on, and plans its cut off batch the same."""
    brokers = FakeBrokers()
    stage = stage_of(tmp_path, brokers)
    owner = Owner(brokers)
    owner.start(stage, [1, 2])
    before = owner.checkpoint
    owner.plan(5)
    owner.start(stage, [2, 1])
    assert owner.checkpoint == before
    owner.batch(9)
    assert brokers.done[1] == [(0, 5)]


def test_the_next_launch_with_the_same_shards_has_names_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pod of the one before was lost, and may live; a takeover that dies before it has removed
    the names of before is ended by the next one."""
    brokers = FakeBrokers()
    lost, heir = stage_of(tmp_path, brokers), stage_of(tmp_path, brokers)
    owner = Owner(brokers)
    owner.start(lost, [0, 1])
    owner.batch(5)
    query = heir.take_over([0, 1], nowhere)
    assert query == owner.checkpoint
    assert not any(name.exists() for name in lost.names.values())

    def dies(file: Path, missing_ok: bool = False) -> None:
        if file.parent.name == "queries":
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", dies)
        with pytest.raises(Crash):
            heir.take_over([0, 1], nowhere)
    owner.start(heir, [0, 1])
    for shard, name in heir.names.items():
        assert entries(tmp_path / str(shard) / "queries") == [int(name.name)]
        assert shard_names.holder(tmp_path / str(shard)).query == query
    owner.batch(5)
    assert_seamless(brokers.written)


def test_cuts_do_not_pile_up_entries(tmp_path: Path) -> None:
    """Spark removes some only when a query runs the shard alone. The draft of an owner that is
    frozen since before goes with its entry: it would come to be one."""
    brokers = FakeBrokers()
    stage, owner, own = stage_of(tmp_path, brokers), Owner(brokers), tmp_path / "0"
    for number in range(30):
        owner.start(stage, [0, 1])
        owner.batch(1)
        assert read_checkpoint(stage.take_alone(0)).positions == {(TOPIC, 0): number + 1}
        for log in ("offsets", "commits"):
            last = newest(own / log)
            for name in (
                f".{last}.crc",
                f".{last}.some.tmp",
                f"..{last}.some.tmp.crc",
                f".{last}-",
            ):
                (own / log / name).touch()
    for log in ("offsets", "commits"):
        assert len(entries(own / log)) == 10
        numbers = {
            int(file.name.strip(".").split(".")[0].strip("-")) for file in (own / log).iterdir()
        }
        assert numbers == set(entries(own / log))
    owner.open(stage.take_alone(0), [0])
    owner.batch(1)
    assert_seamless(brokers.written)


def test_what_took_the_place_of_a_log_stays(tmp_path: Path) -> None:
    """As of a rollback that outran the owner."""
    (tmp_path / "offsets").mkdir()
    for number in range(30):
        (tmp_path / "offsets" / str(number)).touch()
    name = tmp_path / "queries" / "1"
    query_logs.shorten(tmp_path, name)
    assert len(entries(tmp_path / "offsets")) == 30
    exclusive_files.create(name, "")
    query_logs.shorten(tmp_path, name)
    assert entries(tmp_path / "offsets") == [*range(20, 30)]


def test_a_batch_that_is_cut_off_is_one_of_all_shards(tmp_path: Path) -> None:
    """Until somebody takes one of them over, which ends it."""
    brokers = FakeBrokers()
    stage, owner = stage_of(tmp_path, brokers), Owner(brokers)
    owner.start(stage, [1, 2])
    owner.batch(3)
    assert stage.cut_off_with(1) == []
    owner.plan(5)
    assert stage.cut_off_with(1) == [1, 2]
    assert stage.cut_off_with(2) == [1, 2]
    assert stage.cut_off_with(0) == [], "no query has run it"
    stage.take_alone(1)
    assert stage.cut_off_with(2) == []


def test_owner_that_comes_back_is_fenced(tmp_path: Path) -> None:
    """It can neither commit the batch that it ran nor begin another."""
    brokers = FakeBrokers()
    stage = stage_of(tmp_path, brokers)
    zombie, idle, heir = Owner(brokers), Owner(brokers), Owner(brokers)
    zombie.start(stage, [0, 1])
    zombie.batch(5)
    zombie.plan(5)
    idle.start(stage, [2, 3])
    heir.start(stage, range(4))
    with pytest.raises(Fenced):
        zombie.commit()
    with pytest.raises(Fenced):
        idle.plan(5)
    heir.batch(1)
    # The batch that the zombie ran, and what is new.
    assert brokers.done[0] == [(0, 5), (5, 10), (10, 11)]


def test_shard_is_run_alone_and_together_by_turns(tmp_path: Path) -> None:
    """A query of one shard on the shard's own checkpoint goes on, and is cut off later."""
    brokers = FakeBrokers()
    stage = stage_of(tmp_path, brokers)
    owner, alone = Owner(brokers), Owner(brokers)
    for records in (3, 4):
        owner.start(stage, [0, 1])
        owner.batch(records)
        alone.open(stage.take_alone(0), [0])
        alone.batch(1)
    with pytest.raises(Fenced):
        owner.plan(1)
    owner.start(stage, [0, 1])
    with pytest.raises(Fenced):
        alone.plan(1)
    owner.batch(1)
    assert_seamless(brokers.done)


def test_takeover_that_is_cut_off_before_a_first_batch(tmp_path: Path) -> None:
    """The owner, which runs the shard alone, can't begin one then that nobody could end."""
    brokers = FakeBrokers()
    stage = stage_of(tmp_path, brokers)
    alone, heir = Owner(brokers), Owner(brokers)
    alone.open(stage.take_alone(0), [0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exclusive_files, "create_in", Interrupted(3, crash))
        with pytest.raises(Crash):
            stage.take_over([0], nowhere)
    assert (tmp_path / "0" / LEDGERS / TAKEN_OVER).exists()
    with pytest.raises(Fenced):
        alone.plan(5)
    alone.open(stage.take_alone(0), [0])
    alone.batch(5)
    heir.start(stage, [0])
    heir.batch(1)
    assert_seamless(brokers.done)


def test_shards_that_were_never_run_join(tmp_path: Path) -> None:
    """They begin where their topic does, or the application said."""
    brokers = FakeBrokers()
    stage = stage_of(tmp_path, brokers)
    owner = Owner(brokers)
    owner.start(stage, [0])
    owner.batch(5)
    checkpoint = stage.take_over([0, 3], lambda topic, shard: 100 + shard)
    assert read_checkpoint(checkpoint).positions == {(TOPIC, 0): 5, (TOPIC, 3): 103}


def test_query_without_a_batch_keeps_where_it_began(tmp_path: Path) -> None:
    """Records that came while the shard moved are not left out, if it began at the latest ones."""
    stage = stage_of(tmp_path, FakeBrokers())
    checkpoint = stage.take_over([0, 1], nowhere)
    begun = Position(({TOPIC: {"0": 7, "1": 8}},))
    query_logs.write(checkpoint, 0, begun)
    later = stage.take_over([1], nowhere)
    assert query_logs.read(later) == begun.share(1)
    assert (later / "sources" / "0" / "0").read_text() == '\0v1\n{"in": {"1": 8}}'


def test_a_closed_log_is_read_once_its_last_commit_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS clients may remember for a while what was in a folder: the second one to take shards over
    would begin a batch earlier than the first one."""
    brokers = FakeBrokers()
    stage, owner = stage_of(tmp_path, brokers), Owner(brokers)
    owner.start(stage, range(4))
    for _ in range(3):
        owner.batch(5)
    Owner(brokers).start(stage, [0, 1])

    def remembered(log: Path) -> list[int]:
        return entries(log)[: -1 if log.name == "commits" else None]

    with monkeypatch.context() as patched:
        patched.setattr(query_logs, "entries", remembered)
        with pytest.raises(OSError, match="try again"):
            stage.take_over([2, 3], nowhere)
    assert read_checkpoint(stage.take_over([2, 3], nowhere)).positions == {
        (TOPIC, 2): 15, (TOPIC, 3): 15
    }  # fmt: skip


def test_a_start_that_was_cut_off_holds_up_nobody(tmp_path: Path) -> None:
    """Its query knew where one of its streams begins, and not yet where the other does."""
    stage = JointCheckpoints(tmp_path, lambda checkpoint, shards: None)
    cut_off, other = stage.take_over([0, 1], nowhere), stage.take_over([2], nowhere)
    arrange(cut_off, ["in", "more"])
    query_logs.write(cut_off, 0, Position(({"more": {"0": 5, "1": 6}},)))
    sources = ({"in": {"2": 7}}, {"more": {"2": 8}})
    query_logs.write(other, 0, Position(sources, {"conf": {}}, {}, ("v1", "v1")))
    for take in (stage.take_alone, lambda shard: stage.take_over([shard], nowhere)):
        next_one = take(1)
        arrange(next_one, ["in", "more"])
        assert query_logs.read(next_one) is None
    both = query_logs.read(stage.take_over([0, 2], lambda topic, shard: 1))
    assert both is not None
    assert both.sources == ({"in": {"0": 1, "2": 7}}, {"more": {"0": 1, "2": 8}})


def test_batches_without_records_leave_a_position_and_no_state(tmp_path: Path) -> None:
    """As when all that came was the end of an aborted transaction: Spark starts a query that has a
    batch behind it on its state only, and there is none."""
    stage = JointCheckpoints(tmp_path, lambda checkpoint, shards: None, HDFS)
    query = stage.take_over([0, 1], nowhere)
    sources = ({TOPIC: {"0": 1, "1": 2}},)
    ids: dict[str, object] = {"stateUniqueIds": {}}
    query_logs.write(query, 0, Position(sources, {"conf": {}}, ids, ("v1", "v2")))
    found = query_logs.read(stage.take_over([1], nowhere))
    assert found == Position(({TOPIC: {"1": 2}},))


def test_old_queries_are_swept_but_those_that_say_where_a_shard_is(tmp_path: Path) -> None:
    """After a day nobody comes back who would look there."""
    brokers = FakeBrokers()
    stage = stage_of(tmp_path, brokers)
    owner = Owner(brokers)
    owner.start(stage, [0, 1])
    first = owner.checkpoint or tmp_path
    made = (first / "shards.json").stat().st_mtime
    os.utime(first / "shards.json", (made - 90_000, made - 90_000))
    owner.start(stage, [0])
    stage.sweep(made + 90_000)
    assert first.exists()
    other = Owner(brokers)
    other.start(stage, [1])
    stage.sweep(made + 3600)
    assert first.exists(), "it ran for more than a day, and is over for an hour"
    stage.sweep(made + 90_000)
    assert not first.exists()
    assert (other.checkpoint or tmp_path).exists()
    assert [len(list((tmp_path / shard / "queries").iterdir())) for shard in "01"] == [1, 1]


def test_damage_in_a_shard_is_not_its_neighbours_concern(tmp_path: Path) -> None:
    """They are taken over, and nothing is removed while nobody knows which query it needs."""
    brokers = FakeBrokers()
    stage = stage_of(tmp_path, brokers)
    other, owner = Owner(brokers), Owner(brokers)
    other.start(stage, [2, 3])
    (tmp_path / "3" / "queries" / "0").write_text("garbage")
    owner.start(stage, [0, 1])
    first = owner.checkpoint or tmp_path
    owner.start(stage, [0])
    Owner(brokers).start(stage, [1])
    stage.sweep((first / "shards.json").stat().st_mtime + 90_000)
    assert first.exists()
    with pytest.raises(CheckpointDamaged):
        stage.take_over([2, 3], nowhere)


def test_a_shard_that_has_run_does_not_begin_anew(tmp_path: Path) -> None:
    """Its folder is gone; a cut of before its first batch may have taken its place."""
    brokers = FakeBrokers()
    stage = stage_of(tmp_path, brokers)
    owner = Owner(brokers)
    owner.start(stage, [0, 1])
    owner.batch(5)
    owner.batch(5)
    shutil.rmtree(tmp_path / "1")
    for shards in ([0, 1], [1], [1, 2]):
        with pytest.raises(CheckpointDamaged, match=f"{tmp_path}/1: it is gone"):
            stage.take_over(shards, nowhere)
    with pytest.raises(CheckpointDamaged):
        stage.take_alone(1)
    (tmp_path / "1").mkdir(exist_ok=True)
    (tmp_path / "1" / ROLLED_BACK).write_text("uid")
    assert read_checkpoint(stage.take_over([1], nowhere)).positions == {}


@pytest.mark.parametrize("cut_off", [False, True])
def test_who_had_a_shard_that_went_back_begins_no_batch(tmp_path: Path, *, cut_off: bool) -> None:
    """It may have been frozen all the while, and no successor closes its log."""
    brokers = FakeBrokers()
    stage, frozen = stage_of(tmp_path, brokers), Owner(brokers)
    frozen.start(stage, [0, 1])
    frozen.batch(5)
    if cut_off:
        frozen.plan(2)
    for shard in (0, 1):
        with stage.left_behind(shard_names.query_of(tmp_path / str(shard))):
            shutil.rmtree(tmp_path / str(shard))
            (tmp_path / str(shard)).mkdir()
            (tmp_path / str(shard) / ROLLED_BACK).write_text("uid")
    assert frozen.checkpoint is not None
    assert (frozen.checkpoint / LEDGERS / TAKEN_OVER).exists()
    if cut_off:
        frozen.write()
        frozen.commit()
    with pytest.raises(Fenced):
        frozen.plan(1)
    assert read_checkpoint(stage.take_over([0, 1], nowhere)).positions == {}


@pytest.mark.parametrize("cut_off", [False, True])
def test_a_shard_that_does_not_go_back_after_all_goes_on(tmp_path: Path, *, cut_off: bool) -> None:
    brokers = FakeBrokers()
    stage, owner = stage_of(tmp_path, brokers), Owner(brokers)
    owner.start(stage, [0, 1])
    owner.batch(5)
    if cut_off:
        owner.plan(2)
    with pytest.raises(Crash), stage.left_behind(owner.checkpoint):
        raise Crash
    for _ in range(2):
        owner.start(stage, [0, 1])
        owner.batch(1)
    assert_seamless(brokers.written)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("cut_off", [True, False])
def test_what_a_frozen_owner_has_planned_where_a_shard_went_back_is_no_batch(
    tmp_path: Path, *, alone: bool, cut_off: bool
) -> None:
    """Its log has another one in its place, of which its next batch is not the next."""
    brokers = FakeBrokers()
    stage, frozen = stage_of(tmp_path, brokers), Owner(brokers)
    frozen.open(stage.take_alone(0), [0])
    frozen.batch(5)
    shutil.copytree(tmp_path / "0", tmp_path / "cut", ignore=lambda *_: [LEDGERS])
    for _ in range(3):
        frozen.batch(1)
    shutil.rmtree(tmp_path / "0")
    (tmp_path / "cut").rename(tmp_path / "0")
    if cut_off:
        heir = Owner(brokers)
        heir.open(stage.take_alone(0), [0])
        heir.plan(7)
    frozen.plan(100)
    found = stage.take_alone(0) if alone else stage.take_over([0], nowhere)
    assert read_checkpoint(found).positions == {(TOPIC, 0): 5 if alone or not cut_off else 12}
    assert newest(tmp_path / "0" / "offsets") <= 1 + (not alone and cut_off)


def test_who_takes_a_shard_too_late_leaves_its_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ledger is that of whoever runs it by now, and its log stays closed for others."""
    brokers = FakeBrokers()
    stage, owner = stage_of(tmp_path, brokers), Owner(brokers)
    owner.start(stage, [0, 1])
    owner.batch(5)
    look = JointCheckpoints._refuse_put_back

    def overtaken(self: JointCheckpoints, holders: Any) -> None:
        look(self, holders)
        monkeypatch.undo()
        owner.open(stage.take_alone(0), [0])
        owner.batch(5)

    monkeypatch.setattr(JointCheckpoints, "_refuse_put_back", overtaken)
    marker = tmp_path / "0" / LEDGERS / MAIN
    with pytest.raises(TakenByAnother):
        stage.take_alone(0)
    assert marker.read_text() == brokers.ledgers[0][0]
    owner.batch(5)


@pytest.mark.parametrize("owners", [[], [[0, 1], [2, 3]], [[2, 3], [0]]])
@pytest.mark.parametrize("cut_off", [False, True])
def test_a_volume_that_was_put_back_gives_no_shard_to_others(
    tmp_path: Path, owners: list[list[int]], *, cut_off: bool
) -> None:
    """Whether the query went on itself since, or others with other shards: what they have written
    would be written again, since a new query begins a ledger of its own."""
    brokers = FakeBrokers()
    stage, owner = stage_of(tmp_path / "stage", brokers), Owner(brokers)
    owner.start(stage, range(4))
    owner.batch(5)
    if cut_off:
        owner.plan(2)
    shutil.copytree(tmp_path / "stage", tmp_path / "backup")
    if cut_off:
        owner.write()
        owner.commit()
    owner.batch(1)
    for shards in owners:
        other = Owner(brokers)
        other.start(stage, shards)
        other.batch(1)
    shutil.rmtree(tmp_path / "stage")
    (tmp_path / "backup").rename(tmp_path / "stage")
    before = dict(brokers.ledgers)
    for _ in range(2):
        with pytest.raises(CheckpointPutBack) as caught:
            Owner(brokers).start(stage, [0, 1])
        with pytest.raises(CheckpointPutBack):
            stage.take_alone(2)
    assert explained(str(caught.value)).reason == "CheckpointPutBack"
    assert brokers.ledgers == before
    assert_seamless(brokers.written)


def test_a_shards_own_checkpoint_that_was_put_back_joins_no_query(tmp_path: Path) -> None:
    brokers = FakeBrokers()
    stage, alone = stage_of(tmp_path / "stage", brokers), Owner(brokers)
    alone.open(stage.take_alone(0), [0])
    alone.batch(5)
    shutil.copytree(tmp_path / "stage", tmp_path / "backup")
    alone.batch(1)
    shutil.rmtree(tmp_path / "stage")
    (tmp_path / "backup").rename(tmp_path / "stage")
    for _ in range(2):
        with pytest.raises(CheckpointPutBack, match="batch 1 is written, and the last one here"):
            stage.take_over([0, 1], nowhere)


def test_a_batch_that_kafka_has_and_the_log_not_yet_is_no_sign_of_that(tmp_path: Path) -> None:
    """Nor is a ledger that has expired; and nobody is asked who need not be."""
    brokers = FakeBrokers()
    stage, owner = stage_of(tmp_path, brokers), Owner(brokers)
    owner.start(stage, range(4))
    owner.batch(5)
    owner.plan(2)
    owner.write()
    heir = Owner(brokers)
    heir.start(stage, [0, 1])
    heir.batch(1)
    brokers.ledgers.clear()
    Owner(brokers).start(stage, [0])
    silent = JointCheckpoints(tmp_path, stage.end_batch, ledgers=unasked)
    silent.take_over([0], nowhere)
    silent.take_over([2, 3], nowhere)
    assert_seamless(brokers.written)


def unasked(begun: Collection[Begun]) -> dict[Begun, Noted]:
    """Is called by nobody."""
    raise AssertionError(begun)


ACTIONS = (
    *("start", "register", "plan", "write", "commit", "batch"),
    *("crashed start", "overtaken start", "outrun start", "raced start"),
    *("alone", "crashed alone", "overtaken alone", "outrun alone", "raced alone"),
)
Ownership = tuple[int, str, int, int]
"""Owner, what it does, with how many records or how many of its shards, and after how many files
it crashes, another owner comes (outrun: and runs a shard alone), or does its next step."""
ownerships = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(ACTIONS),
        st.sampled_from([1, 2, 3, 6, 12, 15]),
        st.integers(0, 8),
    ),
    min_size=10,
    max_size=30,
)


class Interrupted:
    """Creates files until so many are there, and then does something else first."""

    def __init__(self, files: int, otherwise: Callable[[], None]) -> None:
        self.files = files
        self.otherwise = otherwise
        self.create = exclusive_files.create_in

    def __call__(self, folder: Path, name: str, text: str, **how: bool) -> bool:
        """Create a file."""
        self.files -= 1
        if self.files == -1:
            self.otherwise()
        return self.create(folder, name, text, **how)


def crash() -> None:
    """End the owner."""
    raise Crash


_BACK: list[Ownership] = [(0, "alone", 2, 0), (1, "write", 1, 0)]
"""The next owner runs the shard alone, and the one before wakes up."""
_CUT_OFF: list[Ownership] = [(0, "crashed start", 1, 3), (0, "crashed start", 1, 1)]
"""A takeover that dies behind the end of the shard's own query, and one in that query's batch."""
_OUTRUN: list[Ownership] = [(0, "alone", 1, 0), (0, "batch", 1, 0), (1, "outrun start", 1, 7)]
"""A takeover that has read where a shard is, and names its query when another one has gone on."""


@given(ownerships)
@example([(1, "alone", 2, 0), (1, "register", 1, 0), (0, "start", 2, 0), *_BACK])
@example([(1, "alone", 2, 0), (1, "plan", 1, 0), (0, "start", 2, 0), *_BACK])
@example([(1, "alone", 2, 0), (1, "plan", 1, 0), (0, "start", 2, 0), (0, "batch", 1, 0), *_BACK])
@example([*_OUTRUN, (1, "batch", 1, 0)])
@example([(0, "outrun start", 1, 0), (0, "crashed start", 1, 1), (0, "start", 1, 0)])
@example([(0, "start", 1, 0), (0, "plan", 1, 0), (0, "alone", 1, 0), *_CUT_OFF, (0, "start", 1, 0)])
def test_nothing_is_lost_or_written_twice(
    tmp_path_factory: pytest.TempPathFactory, plan: list[Ownership]
) -> None:
    """Whoever dies or comes back wherever: the batches of a shard follow each other, and so does
    what they have written. In the end whoever takes all shards can go on.
    """
    brokers = FakeBrokers()
    stage = stage_of(tmp_path_factory.mktemp("stage"), brokers)
    owners = [Owner(brokers) for _ in range(3)]

    def start(owner: Owner, mask: int) -> None:
        try:
            owner.start(stage, [shard for shard in range(SHARDS) if mask & 1 << shard])
        except (TakenByAnother, Fenced, Crash):
            owner.checkpoint = None

    def start_alone(owner: Owner, mask: int) -> None:
        shard = next(shard for shard in range(SHARDS) if mask & 1 << shard)
        try:
            owner.checkpoint = owner.planned = None
            owner.open(stage.take_alone(shard), [shard])
        except (TakenByAnother, Fenced, Crash):
            owner.checkpoint = None

    def run_alone(owner: Owner, mask: int) -> None:
        start_alone(owner, mask)
        step(owner, "batch", 1)

    for number, action, amount, files in plan:
        owner, other = owners[number], owners[number - 1]
        otherwise: dict[str, Callable[[], None]] = {
            "crashed": crash,
            "overtaken": partial(start, other, amount),
            "outrun": partial(run_alone, other, amount),
            "raced": partial(step, other, "next", amount),
        }
        with pytest.MonkeyPatch.context() as patch:
            if (how := action.partition(" ")[0]) in otherwise:
                interrupted = Interrupted(files, otherwise[how])
                patch.setattr(exclusive_files, "create_in", interrupted)
            if action.endswith("alone"):
                start_alone(owner, amount)
            elif action.endswith("start"):
                start(owner, amount)
            else:
                step(owner, action, amount)
        assert_seamless(brokers.done)
        assert_seamless(brokers.written)
    heir = Owner(brokers)
    heir.start(stage, range(SHARDS))
    heir.batch(1)
    assert brokers.done == brokers.written


def step(owner: Owner, action: str, amount: int) -> None:
    """Let an owner do what it does next, or a batch as far as an action."""
    if owner.checkpoint is None:
        return
    try:
        if action == "register" or (action == "next" and owner.epoch is None):
            owner.register()
            return
        if owner.planned is None:
            owner.plan(amount)
            if action in ("plan", "next"):
                return
        if action != "plan":
            owner.write()
        if action in ("commit", "batch"):
            owner.commit()
    except (Fenced, Refused):
        owner.checkpoint = owner.planned = None


def test_who_comes_late_names_nothing_though_its_number_is_free(tmp_path: Path) -> None:
    """The names before the newest go: runs, and cuts, would pile them up."""
    before = shard_names.holder(tmp_path)
    for _ in range(3):
        shard_names.name(tmp_path, shard_names.holder(tmp_path), None)
    assert entries(tmp_path / "queries") == [2]
    with pytest.raises(TakenByAnother):
        shard_names.name(tmp_path, before, None)
    assert entries(tmp_path / "queries") == [2]


def test_who_comes_late_gives_no_name_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if it is frozen right before it makes the name, whose owner was fenced since."""
    create, names = exclusive_files.create_in, tmp_path / "queries"

    def frozen(*arguments: Any, **how: Any) -> bool:
        monkeypatch.undo()
        for _ in range(2):
            shard_names.name(tmp_path, shard_names.holder(tmp_path), None)
        return create(*arguments, **how)

    late = shard_names.holder(tmp_path)
    monkeypatch.setattr(exclusive_files, "create_in", frozen)
    with pytest.raises(TakenByAnother):
        shard_names.name(tmp_path, late, None)
    assert entries(names) == [1]


def test_a_name_is_on_the_disk_before_those_before_it_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so is what the query begins with that it names: after a power failure nothing else would
    say where the shard is."""
    stage = JointCheckpoints(tmp_path, lambda checkpoint, shards: None)
    owner = Owner(FakeBrokers())
    owner.open(stage.take_alone(0), [0])
    owner.batch(5)
    done = list[tuple[str, str]]()

    def place(at: Any) -> str:
        path = Path(os.readlink(f"/proc/self/fd/{at}") if isinstance(at, int) else at)
        is_draft = path.name.startswith(".")
        return str((path.with_name("draft") if is_draft else path).relative_to(tmp_path))

    def note(name: str) -> None:
        call = getattr(os, name)

        def noting(*arguments: Any) -> Any:
            done.append((name, place(arguments[-1])))
            return call(*arguments)

        monkeypatch.setattr(os, name, noting)

    for name in ("fsync", "link", "unlink"):
        note(name)
    query = stage.take_over([0], nowhere)
    named = done.index(("fsync", "0/queries/draft"))
    assert done[named:] == [
        ("fsync", "0/queries/draft"),
        ("link", "0/queries/1"),
        ("fsync", "0/queries"),
        ("unlink", "0/queries/draft"),
        ("unlink", "0/queries/0"),
    ]
    files = {file for what, file in done[:named] if what == "fsync"}
    begins_with = ("shards.json", "metadata", "offsets/0", "commits/0")
    assert files == {f"queries/{query.name}/{file}" for file in begins_with}
    done.clear()
    assert stage.take_alone(0) == tmp_path / "0"
    assert {("fsync", f"0/{log}/1") for log in ("offsets", "commits")} <= {*done}


@pytest.mark.parametrize("refused", [errno.EINVAL, errno.ENOTSUP])
def test_file_systems_that_force_no_folder_have_names_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    """But what fails is no name."""
    code = refused

    def sync(opened: int) -> None:
        if Path(os.readlink(f"/proc/self/fd/{opened}")).is_dir():
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", sync)
    before = shard_names.name(tmp_path, shard_names.holder(tmp_path), None)
    shard_names.name(tmp_path, shard_names.holder(tmp_path), None)
    assert not before.exists()
    code = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        shard_names.name(tmp_path, shard_names.holder(tmp_path), None)
