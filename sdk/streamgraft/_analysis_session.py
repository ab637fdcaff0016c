"""The Spark session in which applications are analyzed: small, local, and gone afterwards."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from streamgraft_common.spark_jvm import SparkJvm


@contextmanager
def analysis_session(conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Start a driver, hand out its session with the SQL settings of `conf`, and stop it.

    Raises JvmFailed if there is no usable Java.
    """
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


def _quieten() -> None:
    # What Spark rejects comes back as an exception; PySpark writes it to stderr as well.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).disabled = True
