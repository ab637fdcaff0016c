"""Spark's Python workers: where those of a version of the application import it from.

Spark keeps a daemon of workers for each environment that functions come with. What is compiled from
now on comes with the folder of the new code, so it never meets a worker that has the old one.
"""

import logging
import os
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_PATH = "PYTHONPATH"
_FACTORIES = "pythonWorkers"
"""Spark's field; nothing public ends a daemon before its session ends."""


def use(session: SparkSession, folder: Path) -> None:
    """Have the functions of plans that are compiled from now on run with the code in a folder."""
    session.sparkContext.environment[_PATH] = _path(folder)


def end_others(session: SparkSession, folder: Path) -> None:
    """End the daemons of all code but that in a folder: each takes memory."""
    jvm: Any = session._jvm
    environment = jvm.org.apache.spark.SparkEnv.get()
    try:
        field = environment.getClass().getDeclaredField(_FACTORIES)
        field.setAccessible(True)
        known = field.get(environment).toList()
        for index in range(known.size()):
            entry = known.apply(index)
            if _path_of(entry._1().envVars()) != _path(folder):
                entry._2().stop()
    except Exception as error:  # Py4J's: another version of Spark has no such field
        log.warning("Python workers of earlier code were not ended: %s", error)


def _path_of(variables: Any) -> str:
    found = variables.get(_PATH)
    return str(found.get()) if found.isDefined() else ""


def _path(folder: Path) -> str:
    return os.pathsep.join(filter(None, [str(folder), os.environ.get(_PATH)]))
