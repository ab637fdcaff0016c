"""Copies of checkpoints, on files as Spark lays them out."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from streamgraft_common import names
from streamgraft_common.adl import Adl, Operator, Region, Stream
from streamgraft_common.key_groups import Split
from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_common.resources import SavedState, Saving
from streamgraft_common.restore import NotRestorable
from streamgraft_pe_runtime import query_logs, savepoints, topic_ids
from streamgraft_pe_runtime.checkpoint_files import LEDGERS, REAL_TIME, link_tree
from streamgraft_pe_runtime.copied_logs import relocated, rewritten
from streamgraft_pe_runtime.positions import read_checkpoint
from streamgraft_pe_runtime.protocol import CopyDamaged
from streamgraft_pe_runtime.repository import Repository
from streamgraft_pe_runtime.saved_stages import saved_stages
from streamgraft_pe_runtime.savepoints import Storage
from streamgraft_pe_runtime.spark_log import Position
from streamgraft_pe_runtime.topic_ids import NOTE

SCHEMA = {"type": "struct", "fields": []}
ADL = Adl(
    name="numbers",
    built_by="test",
    module="numbers",
    application="app",
    operators=[
        Operator(name="counted", kind="function", inputs=["raw"], stateful=True),
        Operator(name="fresh", kind="function", inputs=["raw"], stateful=True),
    ],
    streams=[Stream(name="raw", producer="read", schema=SCHEMA)],
    regions=[Region(name="work", key=["key"], max_width=2)],
)


def storage(
    root: Path,
    job: str,
    savepoint: str | None = None,
    copies: Repository | None = None,
    stage: str = "work",
    operator: str = "counted",
    source: str | None = None,
    brokers: str = "kafka",
) -> Storage:
    metadata = PeMetadata(
        namespace="ns",
        job=job,
        pe_id=0,
        stage_name=stage,
        region="work",
        channel=0,
        shard_count=2,
        operators=[operator],
        inputs=[
            InputPort(
                port=0,
                stream="raw",
                topic=source or names.topic("ns", job, "raw", "work"),
                external=source is not None,
                partitions=2,
                bootstrap_servers=brokers,
                operator="counted",
            )
        ],
        outputs=[],
        checkpoint_path=f"ns/{job}-uid/{stage}",
        savepoint=names.savepoint_path("ns", savepoint) if savepoint else None,
        trigger_seconds=1,
        bundle_digest="digest",
    )
    return Storage(root, metadata, ADL, Undescribed(), copies=copies)


class Undescribed:
    """In place of Spark's state stores: the files of these tests have no state in them."""

    def describe(self, checkpoint: Path) -> list[SavedState]:
        raise ValueError(f"{checkpoint} has no metadata")

    def gather(self, sources: Mapping[int, Path], target: Path, split: Split) -> None:
        raise AssertionError("nothing is to be dealt out anew")


def checkpoint(folder: Path, topic: str, batches: int, *, clean: bool = True) -> None:
    """Write a checkpoint as Spark does, with checksum files."""
    for batch in range(batches):
        lines = ["v1", "{}", json.dumps({topic: {"0": 10 * batch}})]
        for log in ("offsets", "commits")[: 2 if clean or batch < batches - 1 else 1]:
            (folder / log).mkdir(parents=True, exist_ok=True)
            (folder / log / str(batch)).write_text("\n".join(lines))
            (folder / log / f".{batch}.crc").write_text("checksum")
    (folder / "state" / "0" / "0").mkdir(parents=True)
    (folder / "state" / "0" / "0" / "1.delta").write_text("state")
    (folder / "metadata").write_text('{"id": "x"}')


REQUEST = Saving(savepoint="first", uid="1", shards=[0, 1])
CUT = REQUEST.model_copy(update={"cut": 1})
TOPIC = names.topic("ns", "job", "raw", "work")


def test_copies_share_their_files_and_keep_the_last_entries_of_the_logs(tmp_path: Path) -> None:
    here = storage(tmp_path, "job")
    checkpoint(here.checkpoint(0), TOPIC, 5)
    size = here.save(REQUEST).size_bytes
    copy = tmp_path / "ns/savepoints/first/work/0"
    state = "state/0/0/1.delta"
    assert (copy / state).stat().st_ino == (here.checkpoint(0) / state).stat().st_ino
    assert sorted(file.name for file in (copy / "offsets").glob("[0-9]*")) == ["3", "4"]
    assert read_checkpoint(copy).positions == {(TOPIC, 0): 40}
    assert size >= len("state")
    # Shard 1 never ran; and what is there already is not made anew.
    assert (tmp_path / "ns/savepoints/first/work/1").is_dir()
    assert here.save(REQUEST).size_bytes == size


def test_a_later_cut_of_the_number_replaces_the_copies(tmp_path: Path) -> None:
    """Of a job that was deleted and submitted anew: nobody keeps the other."""
    here = storage(tmp_path, "job")
    here.save(CUT)
    checkpoint(here.checkpoint(0), TOPIC, 1)
    here.save(CUT.model_copy(update={"uid": "2"}))
    assert (tmp_path / "ns/savepoints/first/work/0/metadata").exists()


def test_a_savepoint_does_not_take_the_place_of_another_of_its_name(tmp_path: Path) -> None:
    """It may be the same one, whose object came back from a backup without status."""
    here = storage(tmp_path, "job")
    checkpoint(here.checkpoint(0), TOPIC, 5)
    here.save(REQUEST)
    copy = tmp_path / "ns/savepoints/first/work/0"
    shutil.rmtree(here.checkpoint(0))
    checkpoint(here.checkpoint(0), TOPIC, 1)
    with pytest.raises(CopyDamaged, match=r"savepoints/first has the copies .* \(uid 1\)"):
        here.save(REQUEST.model_copy(update={"uid": "2"}))
    assert read_checkpoint(copy).positions == {(TOPIC, 0): 40}
    shutil.rmtree(copy.parent.parent)
    here.save(REQUEST.model_copy(update={"uid": "2"}))
    assert read_checkpoint(copy).positions == {(TOPIC, 0): 0}


def test_stages_of_a_deleted_cut_of_the_number_do_not_count(tmp_path: Path) -> None:
    """Where the operator does not see the volume its files stay."""
    here, other = storage(tmp_path, "job"), storage(tmp_path, "job", stage="other")
    checkpoint(here.checkpoint(0), TOPIC, 1)
    here.save(CUT)
    other.save(CUT.model_copy(update={"uid": "2"}))
    folder = tmp_path / names.savepoint_path("ns", "first")
    assert [stage.name for stage in saved_stages(folder)] == ["other"]
    fork = storage(tmp_path, "fork", "first")
    fork.prepare(0)  # from the stage of the same operators that is in this savepoint
    assert not (fork.checkpoint(0) / "metadata").exists()
    (folder / names.SAVEPOINT_FILE).unlink()  # as former releases have left it
    assert [stage.name for stage in saved_stages(folder)] == ["other", "work"]


def test_what_real_time_mode_has_begun_is_saved_as_unclean(tmp_path: Path) -> None:
    """No log says so, and the copy has no ledgers."""
    here = storage(tmp_path, "job")
    checkpoint(here.checkpoint(0), TOPIC, 2)
    mark = here.checkpoint(0) / LEDGERS / REAL_TIME
    mark.parent.mkdir()
    mark.touch()
    assert here.save(CUT).unclean == [0]
    mark.unlink()
    assert here.save(CUT).unclean == [0]  # the copy is of before
    assert here.save(CUT.model_copy(update={"uid": "2"})).unclean == []


def test_a_batch_that_was_cut_off_is_saved_as_begun_and_runs_again(tmp_path: Path) -> None:
    """The pod died within it: whoever goes on from there has to do what Spark always does."""
    here = storage(tmp_path, "job")
    checkpoint(here.checkpoint(0), TOPIC, 4, clean=False)
    assert here.save(REQUEST).unclean == [0]
    assert here.save(REQUEST).unclean == [0]  # also if it is asked for again
    fork = storage(tmp_path, "fork", "first")
    fork.prepare(0)
    logs = [
        sorted(file.name for file in (fork.checkpoint(0) / log).glob("[0-9]*"))
        for log in ("commits", "offsets")
    ]
    assert logs == [["1", "2"], ["2", "3"]]
    lines = (fork.checkpoint(0) / "offsets" / "3").read_text().splitlines()
    assert json.loads(lines[2]) == {names.topic("ns", "fork", "raw", "work"): {"0": 0}}


def test_batches_of_a_process_that_its_node_lost_are_not_copied_without_their_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = storage(tmp_path, "job")
    checkpoint(here.checkpoint(0), TOPIC, 2)

    def go_on_meanwhile(source: Path, target: Path, leave: frozenset[str]) -> None:
        link_tree(source, target, leave)
        for batch, log in ((2, "offsets"), (2, "commits"), (3, "offsets")):
            (source / log / str(batch)).write_text("v1\n{}\n{}")

    monkeypatch.setattr(savepoints, "link_tree", go_on_meanwhile)
    here.save(REQUEST)
    copy = tmp_path / "ns/savepoints/first/work/0"
    logs = [
        sorted(file.name for file in (copy / log).glob("[0-9]*")) for log in ("commits", "offsets")
    ]
    assert logs == [["0", "1"], ["1", "2"]]


def test_a_fork_begins_its_own_topics_at_their_starts(tmp_path: Path) -> None:
    here = storage(tmp_path, "job")
    checkpoint(here.checkpoint(0), TOPIC, 3)
    here.save(REQUEST)
    fork = storage(tmp_path, "fork", "first")
    fork.prepare(0)
    positions = {(names.topic("ns", "fork", "raw", "work"), 0): 0}
    assert read_checkpoint(fork.checkpoint(0)).positions == positions
    assert not (fork.checkpoint(0) / "offsets" / ".2.crc").exists()
    assert read_checkpoint(here.checkpoint(0)).positions == {(TOPIC, 0): 20}
    saved = tmp_path / "ns/savepoints/first/work/0"
    assert read_checkpoint(saved).positions == {(TOPIC, 0): 20}


def test_a_shard_that_never_had_a_record_begins_the_forks_topic_at_its_start(
    tmp_path: Path,
) -> None:
    """Of such a shard a joint query leaves positions only, behind what transactions wrote."""
    here = storage(tmp_path, "job")
    query_logs.write(here.checkpoint(1), 0, Position(({TOPIC: {"1": 3}}, {"outside": {"1": 7}})))
    here.save(REQUEST)
    fork = storage(tmp_path, "fork", "first")
    fork.prepare(1)
    own = names.topic("ns", "fork", "raw", "work")
    begun = Position(({own: {"1": 0}}, {"outside": {"1": 7}}))
    assert query_logs.read(fork.checkpoint(1)) == begun
    kept = tmp_path / "ns/savepoints/first/work/1"
    assert query_logs.read(kept) == Position(({TOPIC: {"1": 3}}, {"outside": {"1": 7}}))


def test_a_checkpoint_that_is_there_is_left_alone(tmp_path: Path) -> None:
    fork = storage(tmp_path, "fork", "first")
    checkpoint(fork.checkpoint(0), "any", 1)
    fork.prepare(0)
    assert read_checkpoint(fork.checkpoint(0)).positions == {("any", 0): 0}


@pytest.mark.parametrize(("brokers", "kept"), [("kafka", {"clicks": "its id"}), ("other", {})])
def test_which_topics_a_shard_reads_is_restored(
    tmp_path: Path, brokers: str, kept: dict[str, str]
) -> None:
    """In another topic of the name positions mean nothing; but users may have moved to brokers that
    have the same records at the same offsets."""
    here = storage(tmp_path, "job", source="clicks")
    checkpoint(here.checkpoint(0), "clicks", 2)
    (here.checkpoint(0) / NOTE).write_text('{"clicks": "its id", "former": "of a source"}')
    here.save(REQUEST)
    fork = storage(tmp_path, "fork", "first", source="clicks", brokers=brokers)
    fork.prepare(0)
    assert fork.checkpoint(0).exists()
    assert topic_ids.noted(fork.checkpoint(0)) == kept


@pytest.mark.parametrize("gone", ["work", "other"])
def test_a_stage_that_a_savepoint_has_lost_starts_nothing_empty(tmp_path: Path, gone: str) -> None:
    request = REQUEST.model_copy(update={"stages": ["work", "other"]})
    for name in ("work", "other"):
        storage(tmp_path, "job", stage=name).save(request)
    shutil.rmtree(tmp_path / names.savepoint_path("ns", "first") / gone)
    fork = storage(tmp_path, "fork", "first", stage="fresh", operator="fresh")
    with pytest.raises(NotRestorable, match=r"not all of .*/first is there any more"):
        fork.prepare(0)


def test_a_savepoint_that_is_gone_is_named(tmp_path: Path) -> None:
    fork = storage(tmp_path, "fork", "first")
    with pytest.raises(NotRestorable, match="savepoints/first: was it deleted"):
        fork.prepare(0)


@pytest.mark.parametrize("lost", ["offsets", "commits", "state"])
def test_a_savepoint_that_lost_files_starts_nothing(tmp_path: Path, lost: str) -> None:
    here = storage(tmp_path, "job")
    checkpoint(here.checkpoint(0), TOPIC, 3)
    here.save(REQUEST)
    shutil.rmtree(tmp_path / "ns/savepoints/first/work/0" / lost)
    fork = storage(tmp_path, "fork", "first")
    with pytest.raises(NotRestorable, match=r"savepoint first is damaged: .*/work/0 has .* bytes"):
        fork.prepare(0)
    assert not fork.checkpoint(0).exists()
    fork.prepare(1)  # the other one is whole


def test_a_savepoint_with_a_damaged_file_is_named(tmp_path: Path) -> None:
    """Not as a checkpoint that is damaged: there is none yet, which could be put back."""
    here = storage(tmp_path, "job")
    checkpoint(here.checkpoint(0), TOPIC, 3)
    here.save(REQUEST)
    damaged = tmp_path / "ns/savepoints/first/work/0/commits/2"
    damaged.unlink()
    damaged.touch()
    fork = storage(tmp_path, "fork", "first")
    with pytest.raises(NotRestorable, match=r"^savepoint first is damaged: /.*/commits/2: "):
        fork.prepare(0)


def test_a_savepoint_without_any_stage_starts_nothing(tmp_path: Path) -> None:
    """As one that is being removed."""
    here, other = storage(tmp_path, "job"), storage(tmp_path, "job", stage="other")
    other.save(REQUEST)
    folder = tmp_path / "ns/savepoints/first"
    fork = storage(tmp_path, "fork", "first")
    (folder / "other" / "stage.json").rename(tmp_path / "stage.json")
    with pytest.raises(NotRestorable, match="was it deleted"):
        fork.prepare(0)
    shutil.rmtree(folder / "other")
    with pytest.raises(NotRestorable, match="was it deleted"):
        fork.prepare(0)
    assert not fork.checkpoint(0).exists()
    here.save(REQUEST)
    fork.prepare(0)


def test_positions_in_outside_topics_and_other_sources_stay() -> None:
    lines = ["v1", "{}", '{"in": {"0": 7}}', '{"ns.job.a": {"0": 7, "1": 8}}', "-", "17"]
    assert rewritten(lines, {"ns.job.a": "ns.fork.a"}) == [
        "v1",
        "{}",
        '{"in": {"0": 7}}',
        '{"ns.fork.a": {"0": 0, "1": 0}}',
        "-",
        "17",
    ]


def test_schema_files_are_looked_for_in_the_own_checkpoint() -> None:
    schema = "0/_stateSchema/default/0_e5c8"
    document = {
        "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateInPandasExec"},
        "stateStoreInfo": [{"stateSchemaFilePaths": [f"file:/state/old/work/0/state/{schema}"]}],
    }
    version, text = relocated(["v2", json.dumps(document)], "/state/fork/work/0")
    (store,) = json.loads(text)["stateStoreInfo"]
    assert version == "v2"
    assert store["stateSchemaFilePaths"] == [f"file:/state/fork/work/0/state/{schema}"]
