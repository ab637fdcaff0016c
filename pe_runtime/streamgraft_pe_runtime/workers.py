"""Spark's Python workers: where they import the application from, and its parameters' values.

Spark keeps a daemon of workers for each environment that functions come with. What is compiled from
now on comes with the folder of the new code, and with the values that its plan is bound to, so it
never meets a worker that has the old ones.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.udf import UserDefinedFunction
from pyspark.sql.udtf import UserDefinedTableFunction

from streamgraft_common import worker_values

log = logging.getLogger(__name__)

_PATH = "PYTHONPATH"
_FACTORIES = "pythonWorkers"
"""Spark's field; nothing public ends a daemon before its session ends."""


Environment = Mapping[str, str]
"""What tells the workers of one daemon from those of another."""


def environment(folder: Path, application: str, values: Mapping[str, str]) -> Environment:
    """Return that of workers with the code in a folder, and these values of parameters."""
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get(_PATH)]))
    return {_PATH: path, worker_values.VARIABLE: worker_values.encoded(application, values)}


def use(session: SparkSession, wanted: Environment) -> None:
    """Have the functions of plans that are compiled from now on run in such workers."""
    session.sparkContext.environment.update(wanted)


def make_functions_anew() -> None:
    """Have a function that was made once, as at the top of a module, made anew for each plan.

    PySpark would keep it as it was used first, with the environment and the parameters' values of
    then.
    """
    scalar: Any = UserDefinedFunction
    table: Any = UserDefinedTableFunction
    scalar._judf = property(lambda function: function._create_judf(function.func))
    table._judtf = property(lambda function: function._create_judtf(function.func))


def end_others(session: SparkSession, kept: Sequence[Environment]) -> None:
    """End all daemons but those with one of these environments: each takes memory."""
    jvm: Any = session._jvm
    spark = jvm.org.apache.spark.SparkEnv.get()
    try:
        field = spark.getClass().getDeclaredField(_FACTORIES)
        field.setAccessible(True)
        known = field.get(spark).toList()
        for index in range(known.size()):
            entry = known.apply(index)
            if _seen(entry._1().envVars()) not in kept:
                entry._2().stop()
    except Exception as error:  # Py4J's: another version of Spark has no such field
        log.warning("Python workers of earlier code were not ended: %s", error)


def _seen(variables: Any) -> Environment:
    found = {name: variables.get(name) for name in (_PATH, worker_values.VARIABLE)}
    return {name: str(value.get()) for name, value in found.items() if value.isDefined()}
