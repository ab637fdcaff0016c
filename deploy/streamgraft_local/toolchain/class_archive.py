"""The AppCDS archive of a PE's driver: its classes, parsed and verified. It halves a PE's start."""

import sys
from importlib.metadata import version
from pathlib import Path

from streamgraft_local.errors import ToolError
from streamgraft_local.toolchain.cache import Cache, key_of
from streamgraft_local.toolchain.commands import run

_FILE = "pe.jsa"


def make(cache: Cache, java: Path, driver_jars: Path) -> Path | None:
    """Return the archive for this Java and these jars: it is valid for no others.

    None if this Java has no archive of its own classes, on which ours would build: drivers then
    start without.
    """
    if not _shares_classes(java):
        return None
    java_version = run("asking Java for its version", (str(java), "-version"))
    spark = version("pyspark")
    key = key_of(str(java.resolve()), java_version, spark, sys.prefix, str(driver_jars))

    def train(folder: Path) -> None:
        module = "streamgraft_pe_runtime.train_cds"
        environment = {"STREAMGRAFT_JAVA": str(java), "STREAMGRAFT_JARS": str(driver_jars)}
        command = (sys.executable, "-P", "-m", module, "--archive", str(folder / _FILE))
        run("training the class archive", command, environment)

    note = "classes of Spark, parsed, so that drivers start faster; about 40 s"
    return cache.get("class-archive", key, train, note) / _FILE


def _shares_classes(java: Path) -> bool:
    try:
        run("looking for Java's class archive", (str(java), "-Xshare:on", "-version"))
    except ToolError:
        return False
    return True
