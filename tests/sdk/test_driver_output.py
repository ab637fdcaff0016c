"""Where the driver's output goes."""

import io
import sys
from pathlib import Path

import pytest

from streamgraft_common.spark_jvm import JvmSettings, SparkJvm


def test_a_driver_starts_where_standard_error_has_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under `pytest --capture=sys`."""
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexit 0\n")
    java.chmod(0o755)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    SparkJvm.start({}, JvmSettings(java=str(java))).stop()
