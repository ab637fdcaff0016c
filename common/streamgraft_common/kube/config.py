"""Where the API server is and how to prove who we are: kubeconfig file or in-cluster account."""

import os
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamgraft_common.kube.errors import ConfigError
from streamgraft_common.kube.kubeconfig import Chosen, chosen

__all__ = ["ConfigError", "KubeConfig", "account_config", "load_config"]

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class KubeConfig:
    """One cluster and one identity."""

    server: str
    namespace: str = "default"
    ca_data: str | None = None
    """PEM text; None: the system's CAs."""
    client_certificate: bytes | None = None
    client_key: bytes | None = None
    token: str | None = None
    token_file: Path | None = None
    """Read again at every request, since the kubelet rotates it."""
    renewed_token: Callable[[], str] | None = None
    """Of a plugin or provider: returns the token to send, a new one if the last has expired."""
    insecure: bool = False
    tls_server_name: str | None = None
    """The name in the server's certificate, if it is not that of the URL."""
    proxy: str | None = None
    """URL of an HTTP proxy on the way to the server."""
    context: str | None = None
    """Name of the kubeconfig's context; None: a pod's own cluster."""

    def bearer_token(self) -> str | None:
        """Return the token to send, or None. Raises ConfigError if a new one can't be had."""
        if self.renewed_token:
            return self.renewed_token()
        return self.token_file.read_text().strip() if self.token_file else self.token

    def of_bearer(self, token: str) -> "KubeConfig":
        """Return the same cluster with the identity of a token, and no other."""
        return replace(
            self,
            token=token,
            token_file=None,
            renewed_token=None,
            client_certificate=None,
            client_key=None,
        )

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS settings, or None for plain http."""
        if not self.server.startswith("https"):
            return None
        context = ssl.create_default_context(cadata=self.ca_data)
        # From Python 3.13 on it is strict, and refuses authorities without key identifiers, as many
        # clusters have (EKS); kubectl is not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_certificate and self.client_key:
            # The ssl module loads a key from a file only; the file is gone before we return.
            with tempfile.NamedTemporaryFile() as file:
                file.write(self.client_certificate + b"\n" + self.client_key)
                file.flush()
                context.load_cert_chain(file.name)
        return context


def load_config(path: str | Path | None = None, context: str | None = None) -> KubeConfig:
    """Return the configuration that kubectl would use: for people, wherever they are.

    That is `path`, else the files of $KUBECONFIG, else ~/.kube/config; in-cluster only where none
    of them says anything, and no context is named. Raises ConfigError if there is none, if the
    context is unknown, or if it asks for a way to log in that is not known.
    """
    paths = _named(path)
    # Path.home() raises for a user without a home directory, as pods on OpenShift have.
    home = Path(os.path.expanduser("~/.kube/config"))
    # Unlike Path's, it raises nothing in a home directory that may not be looked into.
    if not (paths or context or os.path.isfile(home)) and _in_pod():
        return _in_cluster()
    return _from_kubeconfig(chosen(paths or [home], context))


def account_config(path: str | Path | None = None) -> KubeConfig:
    """Return the configuration of a process that is a pod's own: the pod's account.

    Whatever home directory an image has; only `path` and $KUBECONFIG come before it. Outside of a
    pod it is `load_config`'s. Raises ConfigError.
    """
    return _in_cluster() if not _named(path) and _in_pod() else load_config(path)


def _named(path: str | Path | None) -> list[Path]:
    named = str(path) if path else os.environ.get("KUBECONFIG", "")
    return [Path(part) for part in named.split(os.pathsep) if part]


def _in_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and _ACCOUNT.exists()


def _in_cluster() -> KubeConfig:
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    port = os.environ["KUBERNETES_SERVICE_PORT"]
    return KubeConfig(
        server=f"https://{host if ':' not in host else f'[{host}]'}:{port}",
        namespace=(_ACCOUNT / "namespace").read_text().strip(),
        ca_data=(_ACCOUNT / "ca.crt").read_text(),
        token_file=_ACCOUNT / "token",
    )


def _from_kubeconfig(entry: Chosen) -> KubeConfig:
    cluster, user = entry.cluster, entry.user
    authority = cluster.content("certificate-authority")
    certificate, key = user.content("client-certificate"), user.content("client-key")
    token_file = user.values.get("tokenFile")
    credentials: dict[str, Any] = {
        "client_certificate": certificate,
        "client_key": key,
        "token": user.values.get("token"),
        "token_file": user.folder / token_file if token_file else None,
    }
    if entry.delegated():
        # The official client is slow to import, and hardly any process needs it.
        from streamgraft_common.kube import providers

        credentials |= providers.log_in(entry)
    return KubeConfig(
        server=cluster.values["server"].rstrip("/"),
        namespace=entry.namespace,
        ca_data=authority.decode() if authority else None,
        insecure=bool(cluster.values.get("insecure-skip-tls-verify")),
        tls_server_name=cluster.values.get("tls-server-name"),
        proxy=cluster.values.get("proxy-url"),
        context=entry.context,
        **credentials,
    )
