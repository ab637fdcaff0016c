"""A driver is warm only if its Python workers are, and has them only if its plans need them."""

import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.pe_runtime.one_driver import Job, driver, make_topic

import streamgraft as sg
from streamgraft_local import Cluster
from streamgraft_pe_runtime.python_daemon import NEEDED

pytestmark = pytest.mark.integration


def plain(rows: DataFrame) -> DataFrame:
    """Keep rows in the JVM."""
    return rows.where("n >= 0")


def copied(rows: DataFrame) -> DataFrame:
    """Take rows through Python workers."""
    return rows.mapInArrow(lambda batches: batches, rows.schema)


def test_python_workers_are_there_before_rows_come(cluster: Cluster, tmp_path: Path) -> None:
    with driver(cluster, {}) as session:
        for function, wanted in ((plain, False), (copied, True)):
            app = sg.Application(f"warm-{function.__name__}")
            topic = make_topic(cluster)
            numbers = app.kafka_source("numbers", topic=topic, schema="key string, n long")
            worked = app.operator(inputs=numbers)(function)
            app.kafka_sink("results", input=worked, topic=make_topic(cluster), key=["key"])
            Job(app, session, cluster, tmp_path, rehearsed=True)
            assert _has_daemon(session) is wanted
        loaded = F.udf(lambda name: name in sys.modules, "boolean")
        needed = session.createDataFrame([(name,) for name in NEEDED], "name string")
        found = needed.select("name", loaded("name").alias("loaded")).collect()
        assert {row["name"]: row["loaded"] for row in found} == dict.fromkeys(NEEDED, True)


def _has_daemon(session: SparkSession) -> bool:
    jvm: Any = session._jvm
    process = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())
    return any("python_daemon" in " ".join(child.cmdline()) for child in process.children())
