"""The node's program, without an API server."""

import fcntl
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from streamgraft_local.pki import authority

NODE = [sys.executable, "-m", "streamgraft_local.node", "--name", "node"]


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """Return a kubeconfig of a server that refuses connections (port 9 of an unused address)."""
    parts = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.1.2.3:9"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(parts))
    return path


def command(kubeconfig: Path, home: Path) -> list[str]:
    """Return the command line of a node."""
    authority("clients").save(home.parent, "clients")
    clients = str(home.parent / "clients.crt")
    return [*NODE, "--kubeconfig", str(kubeconfig), "--home", str(home), "--client-ca", clients]


def test_a_folder_belongs_to_one_node(kubeconfig: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with open(home / "lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = subprocess.run(command(kubeconfig, home), capture_output=True, text=True)
    assert done.returncode == 1
    assert f"another process node uses {home}" in done.stderr


def test_sigterm_ends_a_node_that_never_reached_its_api_server(
    kubeconfig: Path, tmp_path: Path
) -> None:
    with subprocess.Popen(
        command(kubeconfig, tmp_path / "home"), stderr=subprocess.PIPE, text=True
    ) as node:
        assert node.stderr is not None
        for line in node.stderr:
            if "no answer from the API server" in line:
                break
        node.send_signal(signal.SIGTERM)
        assert "did not hear that the node leaves" in node.stderr.read()
    assert node.returncode == 0


def test_a_bad_option_is_named(kubeconfig: Path, tmp_path: Path) -> None:
    words = [*command(kubeconfig, tmp_path / "home"), "--memory", "1 GB"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert "argument --memory: not a quantity: '1 GB'" in done.stderr
