"""Java classes of ours, compiled in the driver by Janino, as Spark compiles its generated code."""

from functools import cache
from typing import Any

from pyspark.sql import SparkSession


def instance(session: SparkSession, source: str, name: str) -> Any:
    """Return a new object of the class `name` that `source` declares, without a package."""
    nothing = session._jvm.java.util.ArrayList().toArray()  # type: ignore[union-attr]
    return loaded(session, source, name).getConstructors()[0].newInstance(nothing)


@cache
def loaded(session: SparkSession, source: str, name: str) -> Any:
    """Return the class `name` that `source` declares, without a package.

    Py4J takes classes of one name for one class, so each is compiled once.
    """
    jvm: Any = session._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)
