"""Who has lost a shard commits nothing in its folder, on real Spark."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.pe_runtime.one_driver import driver

from streamgraft_common.pe_metadata import HDFS, ROCKSDB, STATE_STORE_PROVIDER
from streamgraft_local import Cluster
from streamgraft_pe_runtime import shard_names
from streamgraft_pe_runtime.joint_checkpoints import JointCheckpoints
from streamgraft_pe_runtime.protocol import failures

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """A driver with the settings of a PE."""
    with driver(cluster, {}) as found:
        yield found


def begun(
    session: SparkSession, stage: JointCheckpoints, write: Callable[[DataFrame, int], None]
) -> StreamingQuery:
    """Start a query with state that runs a shard alone."""
    own = stage.take_alone(0)
    shard_names.hold(session, own, [stage.names[0]])
    rows = session.readStream.format("rate").option("rowsPerSecond", 20).load()
    counts = rows.groupBy("value").count().writeStream.outputMode("update")
    return (
        counts.foreachBatch(write)
        .option("checkpointLocation", str(own))
        .trigger(processingTime="0.3 seconds")
        .start()
    )


def collect(rows: DataFrame, number: int) -> None:
    """Compute a batch."""
    rows.collect()


def go_back(own: Path, cut: Path) -> dict[str, bytes]:
    """Put a cut in the place of a shard's folder, as a rollback does; return what is there then."""
    copy, old = own.with_name(".copy"), own.with_name(".old")
    shutil.copytree(cut, copy)
    shard_names.name_anew(copy, own)
    own.rename(old)
    copy.rename(own)
    shutil.rmtree(old, ignore_errors=True)
    return files(own)


def files(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder, but for drafts, and those of RocksDB that a version of the
    state is made of: they have names of their own, and mean nothing without one."""
    found = (file for file in folder.rglob("*") if file.is_file() and file.name[0] != ".")
    texts = {str(file.relative_to(folder)): file.read_bytes() for file in found}
    return {name: text for name, text in texts.items() if "/SSTs/" not in name}


@pytest.mark.parametrize("provider", [HDFS, ROCKSDB])
@pytest.mark.parametrize("amid", [True, False])
def test_who_comes_back_after_a_rollback_commits_nothing(
    session: SparkSession, tmp_path: Path, provider: str, *, amid: bool
) -> None:
    """Neither an entry of a log nor a version of the state, if it was frozen amid a batch, before
    its state was read, or between two."""
    session.conf.set(STATE_STORE_PROVIDER, provider)
    stage, cut = JointCheckpoints(tmp_path, lambda checkpoint, shards: None), tmp_path / "cut"
    own, there = tmp_path / "0", dict[str, bytes]()

    def write(rows: DataFrame, number: int) -> None:
        if number == 2 and not cut.exists():
            shutil.copytree(own, cut)
        if amid and number == 4:
            there.update(go_back(own, cut))
        rows.collect()

    query = begun(session, stage, write)
    handle: Any = query._jsq
    deadline = time.monotonic() + 60
    while not amid and len(list((own / "commits").glob("[0-9]*"))) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    if not amid:
        there.update(go_back(own, cut))
    deadline = time.monotonic() + 60
    while query.isActive:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert failures.is_fenced(str(handle.exception().get().toString()))
    assert there
    assert files(own) == there

    heir = begun(session, stage, collect)
    deadline = time.monotonic() + 60
    while len(list((own / "commits").glob("[0-9]*"))) < 6:
        assert heir.isActive, heir.exception()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    heir.stop()


def test_who_finds_its_folder_replaced_amid_a_file_is_fenced(
    session: SparkSession, tmp_path: Path
) -> None:
    """Spark makes a draft, and looks for it once more, which is not there any more."""
    jvm: Any = session._jvm
    own = tmp_path / "0"
    own.mkdir()
    (own / "offsets").touch()  # so nothing can be made in it
    shard_names.hold(session, own, [own / shard_names.QUERIES / "1"])
    log, draft = (jvm.org.apache.hadoop.fs.Path(f"{own}/offsets{name}") for name in ("", "/.5"))
    conf = jvm.org.apache.hadoop.conf.Configuration()
    files = jvm.org.apache.spark.sql.streamgraft.ExclusiveCheckpointFiles(log, conf)
    with pytest.raises(Py4JJavaError) as caught:
        files.createTempFile(draft)
    assert failures.is_fenced(str(caught.value))
