"""Finding the API server and the identity."""

import base64
from pathlib import Path

import pytest
import yaml

from streamgraft_common.kube.config import ConfigError, load_config


def kubeconfig(folder: Path) -> Path:
    """Write a kubeconfig with two contexts and return its path."""
    (folder / "ca.crt").write_text("CA")
    (folder / "token").write_text("from-file\n")
    document = {
        "current-context": "one",
        "clusters": [
            {
                "name": "c",
                "cluster": {"server": "https://127.0.0.1:6443/", "certificate-authority": "ca.crt"},
            }
        ],
        "users": [
            {
                "name": "cert",
                "user": {
                    "client-certificate-data": base64.b64encode(b"CERT").decode(),
                    "client-key-data": base64.b64encode(b"KEY").decode(),
                },
            },
            {"name": "token", "user": {"tokenFile": "token"}},
        ],
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "cert"}},
            {"name": "two", "context": {"cluster": "c", "user": "token", "namespace": "team"}},
        ],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return path


def test_current_context(tmp_path: Path) -> None:
    """Files are found beside the kubeconfig, data is decoded."""
    config = load_config(kubeconfig(tmp_path))
    assert config.server == "https://127.0.0.1:6443"
    assert (config.ca_data, config.namespace) == ("CA", "default")
    assert (config.client_certificate, config.client_key) == (b"CERT", b"KEY")


def test_named_context_and_rotated_token(tmp_path: Path) -> None:
    """A token file is read anew every time."""
    config = load_config(kubeconfig(tmp_path), "two")
    assert (config.namespace, config.bearer_token()) == ("team", "from-file")
    (tmp_path / "token").write_text("rotated")
    assert config.bearer_token() == "rotated"


def test_unknown_context(tmp_path: Path) -> None:
    """The error names the context."""
    with pytest.raises(ConfigError, match="three"):
        load_config(kubeconfig(tmp_path), "three")


def test_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to do."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match="streamgraft up"):
        load_config()
