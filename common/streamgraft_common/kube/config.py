"""Where the API server is and how to prove who we are: kubeconfig file or in-cluster account."""

import base64
import os
import ssl
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConfigError(Exception):
    """No usable configuration; the message says what to do."""


@dataclass(frozen=True)
class KubeConfig:
    """One cluster and one identity.

    `token_file` is read again at every request, since the kubelet rotates it.
    """

    server: str
    namespace: str = "default"
    ca_data: str | None = None
    """PEM text; None: the system's CAs."""
    client_certificate: bytes | None = None
    client_key: bytes | None = None
    token: str | None = None
    token_file: Path | None = None
    insecure: bool = False

    def bearer_token(self) -> str | None:
        """Return the token to send, or None."""
        return self.token_file.read_text().strip() if self.token_file else self.token

    def of_bearer(self, token: str) -> "KubeConfig":
        """Return the same cluster with the identity of a token, and no other."""
        return replace(self, token=token, token_file=None, client_certificate=None, client_key=None)

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS settings, or None for plain http."""
        if not self.server.startswith("https"):
            return None
        context = ssl.create_default_context(cadata=self.ca_data)
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
    """Return the configuration: `path`, else $KUBECONFIG, else in-cluster, else ~/.kube/config.

    Raises ConfigError if there is none or the context is unknown.
    """
    chosen = str(path) if path else os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    if not chosen and "KUBERNETES_SERVICE_HOST" in os.environ and _ACCOUNT.exists():
        return _in_cluster()
    file = Path(chosen) if chosen else Path.home() / ".kube" / "config"
    if not file.is_file():
        raise ConfigError(f"no kubeconfig at {file}: run `streamgraft up`, or set KUBECONFIG")
    try:
        return _from_file(yaml.safe_load(file.read_text()), file.parent, context)
    except (KeyError, TypeError, StopIteration) as error:
        raise ConfigError(
            f"kubeconfig {file} has no usable context {context or ''}: {error!r}"
        ) from error


def _in_cluster() -> KubeConfig:
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    port = os.environ["KUBERNETES_SERVICE_PORT"]
    return KubeConfig(
        server=f"https://{host if ':' not in host else f'[{host}]'}:{port}",
        namespace=(_ACCOUNT / "namespace").read_text().strip(),
        ca_data=(_ACCOUNT / "ca.crt").read_text(),
        token_file=_ACCOUNT / "token",
    )


def _from_file(document: dict[str, Any], folder: Path, context_name: str | None) -> KubeConfig:
    def named(kind: str, name: str) -> dict[str, Any]:
        entry = next(item for item in document[f"{kind}s"] if item["name"] == name)
        part: dict[str, Any] = entry[kind]
        return part

    def content(part: dict[str, Any], key: str) -> bytes | None:
        if data := part.get(f"{key}-data"):
            return base64.b64decode(data)
        return (folder / part[key]).read_bytes() if key in part else None

    context = named("context", context_name or document["current-context"])
    cluster, user = named("cluster", context["cluster"]), named("user", context["user"])
    authority = content(cluster, "certificate-authority")
    token_file = user.get("tokenFile")
    return KubeConfig(
        server=cluster["server"].rstrip("/"),
        namespace=context.get("namespace", "default"),
        ca_data=authority.decode() if authority else None,
        client_certificate=content(user, "client-certificate"),
        client_key=content(user, "client-key"),
        token=user.get("token"),
        token_file=folder / token_file if token_file else None,
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
    )
