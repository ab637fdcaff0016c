"""Where state is, in the logs of queries."""

import json
from pathlib import Path

import pytest

from streamgraft_common.pe_metadata import HDFS, ROCKSDB
from streamgraft_pe_runtime import joint_state, query_logs, state_metadata
from streamgraft_pe_runtime.checkpoint_files import entries
from streamgraft_pe_runtime.joint_checkpoints import JointCheckpoints
from streamgraft_pe_runtime.joint_state import Description
from streamgraft_pe_runtime.spark_log import NotJoinable, Position

CONF = {joint_state.PARTITIONS: "1", "other": "kept"}
METADATA = '{"operatorInfo":{},"stateStoreInfo":[{"numPartitions":1}]}'


def position(shard: int, offset: int) -> Position:
    """Return where a query of a shard ended."""
    batch = {"batchTimestampMs": 5, "conf": CONF}
    return Position(({"in": {str(shard): offset}},), batch, {"nextBatchWatermarkMs": 0})


def run_alone(stage: Path, shard: int, batches: int) -> None:
    """Leave the checkpoint of a query of one shard."""
    own = stage / str(shard)
    for batch in range(batches):
        query_logs.write(own, batch, position(shard, batch + 1))
    file = own / "state" / "0" / "_metadata" / "metadata"
    file.parent.mkdir(parents=True)
    file.write_text(f"v1\n{METADATA}")


def commit(query: Path, number: int, ids: list[str]) -> None:
    """Commit a batch of a query, as Spark does; all of its shards have come to offset 9."""
    shards = Description.parse((query / "shards.json").read_text()).shards
    sources = ({"in": {str(shard): 9 for shard in shards}},)
    entry = {"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": [[item] for item in ids]}}
    batch = {"batchTimestampMs": 6, "conf": CONF}
    query_logs.write(query, number, Position(sources, batch, entry, ("v1", "v2")))


def never(checkpoint: Path, shards: object) -> None:
    """No batch is cut off."""
    raise AssertionError(checkpoint)


def begin(topic: str, shard: int) -> int:
    """Shards that no query has run begin here."""
    return 0


def test_shards_keep_versions_of_their_own(tmp_path: Path) -> None:
    """Three batches alone and one together are four versions; who is idle stays at its own."""
    stage = JointCheckpoints(tmp_path, never, HDFS)
    run_alone(tmp_path, 0, 3)
    run_alone(tmp_path, 1, 7)
    query = stage.take_over([0, 1, 2], begin)
    described = Description.parse((query / "shards.json").read_text())
    assert described == Description([0, 1, 2], HDFS, {0: "3", 1: "7"})
    entry = json.loads((query / "commits" / "0").read_text().splitlines()[1])
    assert entry["stateUniqueIds"] == {}
    conf = json.loads((query / "offsets" / "0").read_text().splitlines()[1])["conf"]
    assert conf == {"other": "kept", **joint_state.settings(3)}
    metadata = (query / "state" / "0" / "_metadata" / "metadata").read_text()
    assert json.loads(metadata.splitlines()[1])["stateStoreInfo"] == [{"numPartitions": 3}]
    commit(query, 1, ["4_a", "7", "1_a"])
    other = stage.take_over([1, 2], begin)
    described = Description.parse((other / "shards.json").read_text())
    assert described == Description([1, 2], HDFS, {1: "7", 2: "1_a"})


def test_shards_that_ran_alone_and_together_join(tmp_path: Path) -> None:
    """As when a region is saved, and only some of its channels have taken their shards since."""
    stage = JointCheckpoints(tmp_path, never, HDFS)
    run_alone(tmp_path, 0, 3)
    run_alone(tmp_path, 1, 7)
    commit(stage.take_over([0, 1, 2], begin), 1, ["4_a", "8_a", "0"])
    for shard in (1, 2):
        stage.take_alone(shard)
    query = stage.take_over([0, 1, 2], begin)
    described = Description.parse((query / "shards.json").read_text())
    assert described == Description([0, 1, 2], HDFS, {0: "4_a", 1: "8"})
    found = query_logs.read(query)
    assert found is not None
    assert found.sources == ({"in": {"0": 9, "1": 9, "2": 9}},)
    assert found.version == ("v1", "v2")


def test_shard_goes_on_alone(tmp_path: Path) -> None:
    """Its own checkpoint has the batch that belongs to the version, also if there is none new."""
    stage = JointCheckpoints(tmp_path, never, HDFS)
    for shard, batches in ((0, 3), (1, 7)):
        run_alone(tmp_path, shard, batches)
    query = stage.take_over([0, 1, 2], begin)
    commit(query, 1, ["6_a", "7", "1_a"])
    for shard, logs in ((0, [4, 5]), (1, [5, 6]), (2, [0])):
        own = stage.take_alone(shard)
        assert entries(own / "offsets")[-2:] == logs
        assert entries(own / "commits")[-1] == logs[-1]
        assert not query_logs.is_closed(own)
        version, _ = (own / "commits" / str(logs[-1])).read_text().splitlines()
        assert version == "v1"
        metadata = (own / "state" / "0" / "_metadata" / "metadata").read_text()
        assert json.loads(metadata.splitlines()[1])["stateStoreInfo"] == [{"numPartitions": 1}]
    conf = json.loads((own / "offsets" / "0").read_text().splitlines()[1])["conf"]
    assert conf[joint_state.PARTITIONS] == "1"
    assert (query_logs.read(own) or position(0, 0)).sources == ({"in": {"2": 9}},)


def test_shard_without_records_has_no_batch_alone(tmp_path: Path) -> None:
    """A batch would have left a version of its state."""
    stage = JointCheckpoints(tmp_path, never, HDFS)
    query = stage.take_over([0, 1], begin)
    commit(query, 0, ["1_a", "0"])
    own = stage.take_alone(1)
    assert query_logs.read(own) == Position(({"in": {"1": 9}},))
    assert not (own / "commits").exists()
    again = stage.take_over([0, 1], begin)
    described = Description.parse((again / "shards.json").read_text())
    assert described == Description([0, 1], HDFS, {0: "1_a"})


def test_takeover_that_was_cut_off_leaves_a_shard_alone(tmp_path: Path) -> None:
    """Its log was closed, but no other query named yet: it is opened again."""
    stage = JointCheckpoints(tmp_path, never, HDFS)
    run_alone(tmp_path, 0, 3)
    assert query_logs.close(tmp_path / "0")
    assert entries(stage.take_alone(0) / "offsets") == [0, 1, 2]


def test_states_of_another_kind_do_not_join(tmp_path: Path) -> None:
    """Two providers, several state partitions, or ids where there should be none."""
    stage = JointCheckpoints(tmp_path, never, ROCKSDB)
    run_alone(tmp_path, 0, 1)
    run_alone(tmp_path, 1, 1)
    for file in (tmp_path / "1" / "offsets").iterdir():
        file.write_text(file.read_text().replace('"other"', f'"{PROVIDER}":"{ROCKSDB}","other"'))
    with pytest.raises(NotJoinable, match="kept by"):
        stage.take_over([0, 1], begin)
    for conf, ids in (({joint_state.PARTITIONS: "4"}, None), ({}, {"0": [["1_a"]]})):
        other = Position(({"in": {"0": 1}},), {"conf": conf}, {"stateUniqueIds": ids})
        with pytest.raises(NotJoinable, match="other settings"):
            joint_state.ended_alone(other, 0, 1)
    with pytest.raises(NotJoinable, match="several versions"):
        Description([0], HDFS).ended(Position((), {}, {"stateUniqueIds": {"0": [["1", "2"]]}}))


def test_metadata_of_state_is_that_of_the_newest_batch(tmp_path: Path) -> None:
    """transformWithState writes it again when its variables change, with places of schemas."""
    one, two = tmp_path / "one", tmp_path / "two"
    versions = one / "state" / "0" / "_metadata" / "v2"
    schema = one / "state" / "0" / "_stateSchema" / "default" / "0_a"
    for file, text in (
        (versions / "0", "old"),
        (versions / "12", f'{one}/state/x "numPartitions":8'),
        (schema, "s"),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    state_metadata.copy(one, two, 0, 2)
    copied = two / "state" / "0" / "_metadata" / "v2"
    assert [file.name for file in copied.iterdir()] == ["0"]
    assert (copied / "0").read_text() == f'{two}/state/x "numPartitions":2'
    assert (two / schema.relative_to(one)).read_text() == "s"


PROVIDER = "spark.sql.streaming.stateStore.providerClass"
