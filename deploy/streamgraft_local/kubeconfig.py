"""Kubeconfig files that carry all they need, so that they can be copied."""

import base64
from pathlib import Path
from typing import Any

import yaml

from streamgraft_local import pki
from streamgraft_local.paths import Home


def document(cluster: str, server: str, folder: Path, identity: str) -> dict[str, Any]:
    """Return the kubeconfig of an identity whose keys lie in the PKI `folder`."""

    def data(name: str) -> str:
        return base64.b64encode((folder / name).read_bytes()).decode()

    user = {
        "client-certificate-data": data(f"{identity}.crt"),
        "client-key-data": data(f"{identity}.key"),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": cluster,
                "cluster": {"server": server, "certificate-authority-data": data("ca.crt")},
            }
        ],
        "users": [{"name": identity, "user": user}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": identity}}],
        "current-context": cluster,
    }


def write_all(home: Home, cluster: str, server: str) -> None:
    """Write one kubeconfig per identity, readable by the user only."""
    for identity in pki.IDENTITIES:
        write(home, cluster, server, identity)


def write(home: Home, cluster: str, server: str, identity: str) -> None:
    """Write the kubeconfig of an identity of the PKI, readable by the user only."""
    file = home.kubeconfig(identity)
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(document(cluster, server, home.pki, identity)))
