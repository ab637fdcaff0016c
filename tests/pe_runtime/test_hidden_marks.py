"""A ledger whose mark in the checkpoint an NFS client does not show at first, on a real broker."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pe_runtime.one_driver import make_topic

from streamgraft_local import Cluster
from streamgraft_pe_runtime import java_classes

pytestmark = pytest.mark.integration

RUNS = """
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.kafka010.exactlyonce.*;

public class Runs {
    static class Hidden extends Checkpoint {
        private boolean asked;

        Hidden(Path root) { super(root); }

        public scala.Option incarnation(Path marker) {
            boolean first = !asked;
            asked = true;
            return first ? scala.Option.empty() : super.incarnation(marker);
        }
    }

    static class Never extends scala.runtime.AbstractFunction0 {
        public Object apply() { return Boolean.FALSE; }
    }

    public Transactions begin(Target target, Identity identity, String root, boolean hidden) {
        Path path = new Path(root);
        Checkpoint checkpoint = hidden ? new Hidden(path) : new Checkpoint(path);
        return new Transactions(target, identity, checkpoint, new Never(), false);
    }
}
"""
"""Begins the transactions of a run as the sink does, but for a mark that is not seen at first."""

Begin = Callable[[bool], Any]


@pytest.fixture
def begin(session: SparkSession, cluster: Cluster, tmp_path: Path) -> Begin:
    """What begins the transactions of a run, with or without a mark that is hidden at first."""
    jvm: Any = session._jvm
    options = {
        "checkpointLocation": str(tmp_path),
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "topic": make_topic(cluster),
        "transactionalId": f"hidden-{uuid.uuid4()}",
    }
    given = jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(jvm.java.util.HashMap(options))
    settings = jvm.org.apache.spark.sql.kafka010.exactlyonce.Settings.apply(given)
    target = settings.targets().apply(0)
    runs = java_classes.instance(session, RUNS, "Runs")
    return lambda hidden: runs.begin(target, target.identity().get(), str(tmp_path), hidden)


def test_what_is_written_stays_so_though_its_mark_is_not_seen(
    session: SparkSession, begin: Begin
) -> None:
    """Else the batch would be written again, which may have been cut off."""
    jvm: Any = session._jvm
    run = begin(False)
    incarnation = run.last().incarnation()
    entry = jvm.org.apache.spark.sql.kafka010.exactlyonce.Entry(incarnation, 7, "plan")
    run.begin()
    run.commit(entry)
    run.close()
    for hidden in (True, False):
        run = begin(hidden)
        assert run.last().toString() == entry.toString()
        run.close()


def test_a_mark_of_one_who_wrote_nothing_is_taken(begin: Begin) -> None:
    """An owner that was fenced before it wrote."""
    run = begin(False)
    incarnation = run.last().incarnation()
    run.close()
    run = begin(True)
    assert run.last().incarnation() == incarnation
    assert run.last().batch() == -1
    run.close()
