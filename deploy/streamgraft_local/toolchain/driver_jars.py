"""The jars that follow Spark's own on a driver's class path: Spark's Kafka connector, and ours."""

import importlib.util
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

from streamgraft_local.errors import ToolError
from streamgraft_local.toolchain import jars
from streamgraft_local.toolchain.cache import Cache, key_of
from streamgraft_local.toolchain.commands import run

_MODULE = "streamgraft_pe_runtime"
_FILE = "streamgraft-driver.jar"


def make(cache: Cache, java: Path) -> Path:
    """Return a folder with all of them, for STREAMGRAFT_JARS."""
    note = "Spark's Kafka connector; about 10 s"
    connector = jars.fetch(cache, java, "connector", jars.CONNECTOR, transitive=False, note=note)

    def compile_ours(folder: Path) -> None:
        target = folder / "jars"
        shutil.copytree(connector, target, copy_function=_link)
        environment = {"STREAMGRAFT_JAVA": str(java), "STREAMGRAFT_JARS": str(connector)}
        command = (sys.executable, "-P", "-m", f"{_MODULE}.build_jar", "--jar", str(target / _FILE))
        run("compiling the driver's Scala", command, environment)

    key = key_of(str(connector), version("pyspark"), *_sources())
    return cache.get("driver-jars", key, compile_ours, "our Scala; about 10 s") / "jars"


def _sources() -> list[bytes]:
    """Return what the jar is made of, and by."""
    found = importlib.util.find_spec(_MODULE)
    if found is None or found.origin is None:
        raise ToolError(f"{_MODULE} is not installed")
    root = Path(found.origin).parent
    files = [root / "build_jar.py", *sorted(root.glob("scala/**/*"))]
    parts = [(str(file.relative_to(root)).encode(), file) for file in files if file.is_file()]
    return [data for name, file in parts for data in (name, file.read_bytes())]


def _link(source: str, target: str) -> None:
    """Make a file appear under another name as well; a copy on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
