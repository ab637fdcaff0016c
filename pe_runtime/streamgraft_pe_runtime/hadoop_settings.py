"""Hadoop's settings of a driver, without a note of where each of them is from.

Spark sends all of Hadoop's settings, more than 400, along with each operator that keeps state, in
each batch. Hadoop writes where a setting is from beside it, each of them compressed by itself,
which takes nearly all of the time; and nobody asks.
"""

from typing import Any

from pyspark.sql import SparkSession

_NOTES = "updatingResource"


def forget_origins(session: SparkSession) -> None:
    """Forget where the settings are from that the driver has by now."""
    conf: Any = session.sparkContext._jsc.hadoopConfiguration()
    assert conf.size(), "which reads them"
    notes = conf.getClass().getDeclaredField(_NOTES)
    notes.setAccessible(True)
    notes.get(conf).clear()
