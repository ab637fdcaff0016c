"""Files that a driver writes: their permissions, and what writing them costs."""

import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pe_runtime.one_driver import driver

from streamgraft_local import Cluster
from streamgraft_pe_runtime import local_files

pytestmark = pytest.mark.integration

BATCHES = 5


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """Return the session of a driver with our files."""
    with driver(cluster, {}) as session:
        local_files.install(session)
        # Spark starts `getconf PAGESIZE` once, at the first heartbeat, 10-20 s after the start: its
        # own process, which no test is to count.
        jvm: Any = session._jvm
        jvm.org.apache.spark.executor.ProcfsMetricsGetter.pTreeInfo()
        yield session


def files(session: SparkSession) -> Any:
    """Return Hadoop's local file system."""
    jvm: Any = session._jvm
    conf = session.sparkContext._jsc.hadoopConfiguration()
    return jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), conf)


def mode(path: Path) -> int:
    """Return the permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("wanted", [0o600, 0o644, 0o755, 0o000, 0o777, 0o1777])
def test_permissions_are_set(session: SparkSession, tmp_path: Path, wanted: int) -> None:
    """All that Hadoop knows, of files and folders."""
    jvm: Any = session._jvm
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    permission = jvm.org.apache.hadoop.fs.permission.FsPermission(wanted)
    for path in (tmp_path / "file", tmp_path / "folder"):
        files(session).setPermission(jvm.org.apache.hadoop.fs.Path(str(path)), permission)
        assert mode(path) == wanted


def test_a_missing_file_is_an_error(session: SparkSession, tmp_path: Path) -> None:
    """As it was."""
    jvm: Any = session._jvm
    permission = jvm.org.apache.hadoop.fs.permission.FsPermission(0o600)
    missing = jvm.org.apache.hadoop.fs.Path(str(tmp_path / "missing"))
    with pytest.raises(Exception, match="NoSuchFileException"):
        files(session).setPermission(missing, permission)


def test_files_have_the_permissions_of_the_umask_and_checksums(
    session: SparkSession, tmp_path: Path
) -> None:
    """As with Hadoop's own."""
    jvm: Any = session._jvm
    files(session).create(jvm.org.apache.hadoop.fs.Path(str(tmp_path / "file"))).close()
    assert mode(tmp_path / "file") == 0o644
    assert (tmp_path / ".file.crc").exists()


def reaped_faults(session: SparkSession) -> int:
    """Return the page faults of all processes that the driver has started and that are over."""
    jvm: Any = session._jvm
    fields = Path(f"/proc/{jvm.ProcessHandle.current().pid()}/stat").read_text().rpartition(")")
    return int(fields[2].split()[8])


@pytest.mark.parametrize("stateful", [False, True])
def test_batches_start_no_process(session: SparkSession, tmp_path: Path, stateful: bool) -> None:
    """Nor does the start of a query, or its state."""
    before = reaped_faults(session)
    frame = session.readStream.format("rate").option("rowsPerSecond", 20).load()
    frame = frame.groupBy("value").count() if stateful else frame
    writer = frame.writeStream.format("noop").outputMode("update")
    writer = writer.option("checkpointLocation", str(tmp_path))
    query = writer.trigger(processingTime="0.1 seconds").start()
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "commits").glob("[0-9]*"))) < BATCHES:
        assert time.monotonic() < deadline
        assert query.isActive
        time.sleep(0.1)
    query.stop()
    assert reaped_faults(session) == before


def test_a_file_system_of_the_application_stays(session: SparkSession) -> None:
    """Its own settings win."""
    conf = session.sparkContext._jsc.hadoopConfiguration()
    ours = files(session)
    conf.set("fs.file.impl", "org.apache.hadoop.fs.LocalFileSystem")
    try:
        local_files.install(session)
        assert files(session) == ours
    finally:
        conf.unset("fs.file.impl")
