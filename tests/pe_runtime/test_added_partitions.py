"""Partitions that somebody adds to streams between PEs: their readers do not know of them."""

import json
import time
from pathlib import Path
from typing import Any, Literal

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import DataFrame, SparkSession
from tests.pe_runtime.one_driver import Job, make_topic, read_all
from tests.producers import idempotent

import streamgraft as sg
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

GROUPS, ADDED, RECORDS = 3, 7, 60


def application(topic: str, *, loose: bool) -> sg.Application:
    """One PE that writes into a region, by a key, and into an export, without one."""
    app = sg.Application("added")
    numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")

    def same(rows: DataFrame) -> DataFrame:
        return rows

    delivery: Literal["at_least_once", "exactly_once"] = (
        "at_least_once" if loose else "exactly_once"
    )
    made = app.operator(inputs=numbers, real_time=loose, delivery=delivery)(same)
    app.export(made, name="shared", partitions=GROUPS)
    with app.parallel("work", key=["key"], max_width=GROUPS):

        @app.operator(inputs=made)
        def worked(rows: DataFrame) -> DataFrame:
            return rows

    app.kafka_sink("results", input=worked, topic=f"{topic}-out", key=["key"], partitions=1)
    return app


@pytest.mark.parametrize("loose", [False, True], ids=["exactly once", "in real time"])
def test_partitions_that_are_added_by_hand_get_nothing(
    session: SparkSession, cluster: Cluster, tmp_path: Path, *, loose: bool
) -> None:
    """A key stays in its group, which is that of Kafka's own partitioner."""
    topic = make_topic(cluster)
    job = Job(application(topic, loose=loose), session, cluster, tmp_path, rehearsed=True)
    pe = job.pe_of("same")
    written = {port.topic: port for port in pe.outputs}
    assert {port.partitions for port in written.values()} == {GROUPS}
    assert [bool(port.key) for port in written.values()] == [True, False]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    added = [NewPartitions(name, ADDED) for name in written]
    for made in admin.create_partitions(added).values():
        made.result(30)
    job.start()
    producer = idempotent(cluster.bootstrap_servers)
    for n in range(RECORDS):
        producer.produce(topic, json.dumps({"key": f"k{n}", "n": n}), partition=n % GROUPS)
    assert producer.flush(60) == 0
    deadline = time.monotonic() + 60
    while any(len(read_all(cluster, name, ADDED)) < RECORDS for name in written):
        assert time.monotonic() < deadline
    job.stop()
    jvm: Any = session._jvm
    partitioner = jvm.org.apache.kafka.clients.producer.internals.BuiltInPartitioner
    for name, port in written.items():
        found = read_all(cluster, name, ADDED)
        assert sorted(json.loads(item.value())["n"] for item in found) == [*range(RECORDS)]
        assert {item.partition() for item in found} == {*range(GROUPS)}
        for item in found if port.key else ():
            assert item.partition() == partitioner.partitionForKey(item.key(), GROUPS)
