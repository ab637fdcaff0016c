"""The command of docker-compose.yml's container, as a process."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

from streamgraft_local import Cluster, ClusterSpec

pytestmark = pytest.mark.integration


def test_up_until_sigterm(tmp_path: Path) -> None:
    """The data source that it writes answers; nothing is left when it ends."""
    written = tmp_path / "datasource.yaml"
    written.write_text("of the run before")
    process = subprocess.Popen(
        [sys.executable, "-m", "streamgraft_local.foreground", "--datasource", str(written)],
        env={**os.environ, "STREAMGRAFT_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    with process, process.stdout:
        process.stdout.readline()
        assert not written.exists()
        for line in process.stdout:
            if "is up" in line:
                break
        url = yaml.safe_load(written.read_text())["datasources"][0]["url"]
        with urllib.request.urlopen(f"{url}/-/ready", timeout=30) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert Cluster(ClusterSpec(base=tmp_path)).leftovers() == []
