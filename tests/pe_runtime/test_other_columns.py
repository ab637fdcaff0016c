"""Functions that return other columns than when the bundle was built, on real Spark."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pe_runtime.one_driver import Job

import streamgraft as sg
from streamgraft_local import Cluster
from streamgraft_pe_runtime.plan import OtherColumns
from streamgraft_pe_runtime.protocol.failures import explained

pytestmark = pytest.mark.integration


def test_other_columns_than_in_the_build_are_refused(
    session: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """By a parameter that was given to the job alone: who reads them would find nulls."""
    app = sg.Application("chosen")
    by = app.parameter("by", default="zone")
    source = app.kafka_source("visits", topic="visits", schema="zone string, page string, n int")

    @app.operator(inputs=source)
    def chosen(rows: DataFrame) -> DataFrame:
        return rows.select(by.value, "n")

    app.kafka_sink("out", input=chosen, topic="visits-out", partitions=1)
    job = Job(app, session, cluster, tmp_path, rehearsed=True)
    app.bind({"by": "page"})
    with pytest.raises(OtherColumns) as error:
        job.plan(job.pe_of("chosen"))
    said = explained(str(error.value))
    assert said.reason == "OtherColumns"
    assert "operator chosen" in said.message
    assert "(more: page string; missing: zone string)" in said.message
    assert "`streamgraft build --param`" in said.message
    app.bind({"by": "zone"})
    job.plan(job.pe_of("chosen"))
