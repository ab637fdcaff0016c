"""A stage whose checkpoints are gone, as of a volume that was made anew, and one that is new."""

import shutil
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from tests.pe_runtime.one_driver import Job, make_topic, rows, write
from tests.pe_runtime.two_brokers import another_broker

import streamgraft as sg
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_local import Cluster
from streamgraft_pe_runtime import lost_checkpoints, query
from streamgraft_pe_runtime.checkpoint_files import LEDGERS
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged
from streamgraft_pe_runtime.ledgers import Ledgers
from streamgraft_pe_runtime.lost_checkpoints import ROLLED_BACK
from streamgraft_pe_runtime.protocol.failures import explained
from streamgraft_pe_runtime.query_logs import newest
from streamgraft_pe_runtime.targets import MAIN

pytestmark = pytest.mark.integration


def application(topic: str, *, real_time: bool, servers: str | None = None) -> sg.Application:
    """`servers`: brokers of the sink, if not the job's."""
    app = sg.Application("lost")
    source = app.kafka_source("numbers", topic=topic, schema="key string, n long")

    @app.operator(inputs=source, real_time=real_time)
    def copied(numbers: DataFrame) -> DataFrame:
        return numbers.where("n >= 0")

    topic = f"{topic}-copy"
    if servers:
        app.kafka_sink("copy", input=copied, topic=topic, bootstrap_servers=servers)
    else:
        app.kafka_sink("copy", input=copied, topic=topic, partitions=1)
    return app


def check(session: SparkSession, job: Job, pe: PeMetadata, stage: Path) -> None:
    """Look as a PE does before it starts a query."""
    ledgers = Ledgers(session, pe, job.operators)
    lost_checkpoints.check(stage, lambda: lost_checkpoints.written(ledgers, stage))


@pytest.mark.parametrize("real_time", [False, True])
def test_a_stage_that_has_written_does_not_begin_anew(
    session: SparkSession, cluster: Cluster, tmp_path: Path, real_time: bool
) -> None:
    """It would write everything again; how often it is tried makes no difference."""
    topic = make_topic(cluster)
    job = Job(application(topic, real_time=real_time), session, cluster, tmp_path)
    (pe,) = job.pes
    stage = query.stage_of(job.queries[pe.stage_name]._checkpoint)
    write(cluster, topic, range(10))
    assert sorted(row["n"] for row in rows(job.read(f"{topic}-copy", 10))) == [*range(10)]
    check(session, job, pe, stage)
    job.stop()
    check(session, job, pe, stage)
    shutil.rmtree(stage)
    for _ in range(2):
        with pytest.raises(CheckpointDamaged) as caught:
            check(session, job, pe, stage)
    failure = explained(str(caught.value))
    assert failure.reason == "CheckpointDamaged"
    assert str(stage) in failure.message
    assert "to begin anew, cancel the job" in failure.message
    # A cut of before the first batch was put back: that it begins anew is what was asked for.
    (stage / "0").mkdir(parents=True)
    (stage / "0" / ROLLED_BACK).write_text("uid")
    check(session, job, pe, stage)
    # Another life of the stage, or another job of that name, has written nothing.
    check(session, job, pe, stage.with_name(f"{stage.name}.2"))
    check(session, job, pe.model_copy(update={"job": "other"}), tmp_path / "none")


def test_a_stage_whose_only_ledger_is_at_the_brokers_of_its_sink(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """One producer writes all of a stage in real time, so its ledger is where its records are."""
    topic = make_topic(cluster)
    with another_broker(cluster, tmp_path / "kafka") as servers:
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(f"{topic}-copy", 1, 1)])[f"{topic}-copy"].result()
        app = application(topic, real_time=True, servers=servers)
        job = Job(app, session, cluster, tmp_path)
        job.reads_from(servers)
        (pe,) = job.pes
        stage = query.stage_of(job.queries[pe.stage_name]._checkpoint)
        write(cluster, topic, range(10))
        job.read(f"{topic}-copy", 10)
        job.stop()
        shutil.rmtree(stage)
        with pytest.raises(CheckpointDamaged, match=f"at {servers}"):
            check(session, job, pe, stage)


def test_the_last_batch_of_a_query_is_in_its_ledger(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """By it a takeover sees that a checkpoint was put back; also that another query has it now."""
    topic = make_topic(cluster)
    job = Job(application(topic, real_time=False), session, cluster, tmp_path)
    (pe,) = job.pes
    checkpoint = job.queries[pe.stage_name]._checkpoint
    write(cluster, topic, range(10))
    job.read(f"{topic}-copy", 10)
    job.stop()
    ours = (checkpoint / LEDGERS / MAIN).read_text()
    begun = [(0, ours), (0, "another"), (1, ours)]
    found = Ledgers(session, pe, job.operators).shared(begun)
    assert found[0, ours].incarnation == found[0, "another"].incarnation == ours
    assert found[0, ours].batch == newest(checkpoint / "commits") >= 0
    assert (1, ours) not in found


@pytest.mark.parametrize("real_time", [False, True])
def test_what_a_pod_has_left_amid_its_first_batch_stops_no_other(
    session: SparkSession, cluster: Cluster, tmp_path: Path, real_time: bool
) -> None:
    """The draft of an entry in a log; Spark would take the checkpoint for another query's."""
    topic = make_topic(cluster)
    app = application(topic, real_time=real_time)
    job = Job(app, session, cluster, tmp_path, rehearsed=True)
    for log in ("commits", "offsets"):
        folder = job.checkpoint(job.pes[0]) / log
        folder.mkdir(parents=True)
        (folder / ".0.draft.tmp").write_text("v1")
    write(cluster, topic, range(10))
    job.start()
    assert sorted(row["n"] for row in rows(job.read(f"{topic}-copy", 10))) == [*range(10)]
    job.stop()
