"""The demo as a whole: a few days of flights, the real HPA, everything real."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from examples.flights.demo import INTERRUPTED, demo
from examples.flights.settings import ROOT, Settings
from streamgraft_local.processes import members

pytestmark = pytest.mark.e2e

DAYS = 8
CYCLE_SECONDS = 60.0
PROMISES = 13
APPEARS_SECONDS = 120


async def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The HPA widens and narrows, the result is the batch result, nothing else is touched.

    What depends on how fast the machine is counts for the exit code, and not here; but that the
    first wave serves sooner than a pod starts on the same machine does.
    """
    settings = Settings(DAYS, CYCLE_SECONDS, report=tmp_path / "report", base=tmp_path / "state")
    with capsys.disabled():  # the progress of several minutes is worth seeing
        code = await demo(settings, Console())
    document = json.loads((settings.report / "report.json").read_text())
    broken = [item for item in document["checks"] if not item["kept"] and not item["aim"]]
    assert [item["promise"] for item in broken if not item["timed"]] == []
    assert len(document["checks"]) == PROMISES
    assert document["streamed"] == document["batch"]
    assert document["changes"][0]["pauseSecondsMax"] is not None
    assert (code == 0) == (broken == [])
    assert (settings.report / "report.md").stat().st_size > 1000
    assert not list((tmp_path / "state").iterdir())


def test_interrupted_while_it_starts(tmp_path: Path) -> None:
    """SIGTERM while the environment comes up: it goes down again, and its folder with it."""
    environment = {**os.environ, "STREAMGRAFT_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-m", "examples.flights.demo", "--days", "1"]
    with subprocess.Popen(
        [*command, "--report", str(tmp_path / "report")], env=environment, cwd=ROOT
    ) as process:
        state = tmp_path / "state" / "demo"
        deadline = time.monotonic() + APPEARS_SECONDS
        while not list(state.glob("run/kube-apiserver.json")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        cluster_id = re.findall(r'"id": "(\w+)"', (state / "cluster.json").read_text())[0]
        process.send_signal(signal.SIGTERM)
    assert process.returncode == INTERRUPTED
    assert not state.exists()
    assert members(cluster_id) == []
