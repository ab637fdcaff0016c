"""Functions of regions that read streams of their own, which their build did not see."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pe_runtime.one_driver import Job

import streamgraft as sg
from streamgraft_local import Cluster
from streamgraft_pe_runtime.plan_scans import OtherStreams
from streamgraft_pe_runtime.protocol.failures import explained

pytestmark = pytest.mark.integration


def test_streams_that_are_no_inputs_are_refused(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """By a parameter that was given to the job alone: a shard would read its number of it."""
    app = sg.Application("ruled")
    topic = app.parameter("rules", default="")
    source = app.kafka_source("visits", topic="visits", schema="zone string, n int")
    with app.parallel("by-zone", key=["zone"], max_width=2):

        @app.operator(inputs=source)
        def ruled(rows: DataFrame) -> DataFrame:
            rows = rows.unionByName(rows.where("n > 1"))
            if not topic.value:
                return rows
            options = {"kafka.bootstrap.servers": "localhost:1", "subscribe": topic.value}
            reader = rows.sparkSession.readStream.format("kafka").options(**options)
            return rows.unionByName(reader.load().selectExpr("topic as zone", "1 as n"))

    app.kafka_sink("out", input=ruled, topic="visits-out", partitions=1)
    job = Job(app, session, cluster, tmp_path, rehearsed=True)
    job.plan(job.pe_of("ruled"))
    app.bind({"rules": "rules"})
    with pytest.raises(OtherStreams) as error:
        job.plan(job.pe_of("ruled"))
    said = explained(str(error.value))
    assert said.reason == "OtherStreams"
    assert said.message.startswith("ruled reads a stream that is none of its inputs (rules)")
