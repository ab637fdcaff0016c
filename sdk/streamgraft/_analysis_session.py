"""The Spark session in which applications are analyzed: small, local, and gone afterwards.

A process has one driver at most. Where there is one already, as in tests that use the fixture
`spark`, applications are analyzed in a session of it, and it stays.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkContext
from pyspark.sql import SparkSession

from streamgraft_common.spark_jvm import SparkJvm


@contextmanager
def analysis_session(conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Start a driver, hand out its session with the SQL settings of `conf`, and stop it.

    Raises JvmFailed if there is no usable Java.
    """
    if SparkContext._active_spark_context is not None:
        yield _another(SparkSession.builder.getOrCreate(), conf)
        return
    jvm = SparkJvm.start(
        {
            **{name: value for name, value in conf.items() if name.startswith("spark.sql.")},
            "spark.app.name": "streamgraft-build",
            "spark.master": "local[1]",
            "spark.log.level": "ERROR",
        }
    )
    try:
        spark = jvm.attach()
        _quieten()
        yield spark
    finally:
        jvm.stop()


def _another(driver: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """Return a session of a driver that runs, with those settings of `conf` that can be set."""
    spark = driver.newSession()
    for name, value in conf.items():
        if name.startswith("spark.sql.") and spark.conf.isModifiable(name):
            spark.conf.set(name, value)
    return spark


def _quieten() -> None:
    # What Spark rejects comes back as an exception; PySpark writes it to stderr as well.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).disabled = True
