"""Kubeconfig files: which cluster and user a context means, and what of it can be followed."""

import base64
import binascii
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from streamgraft_common.kube.errors import ConfigError

_DELEGATED = {"exec", "auth-provider"}
_CREDENTIALS = {
    "client-certificate",
    "client-certificate-data",
    "token",
    "tokenFile",
}
_KNOWN = {*_CREDENTIALS, *_DELEGATED, "client-key", "client-key-data", "extensions"}


@dataclass(frozen=True)
class Entry:
    """A named entry."""

    name: str
    values: dict[str, Any]
    folder: Path
    """That of its file, to which paths in it are relative."""

    def content(self, key: str) -> bytes | None:
        """Return what stands under `key`-data, or in the file that `key` names."""
        try:
            if data := self.values.get(f"{key}-data"):
                return base64.b64decode(data, validate=True)
            return (self.folder / self.values[key]).read_bytes() if self.values.get(key) else None
        except (OSError, binascii.Error) as error:
            raise ConfigError(f"{key} of {self.name} in the kubeconfig: {error}") from error


@dataclass(frozen=True)
class Chosen:
    """What a context means."""

    context: str
    cluster: Entry
    user: Entry
    namespace: str

    def delegated(self) -> bool:
        """Return whether a plugin or a provider is to be asked for credentials."""
        return bool(_DELEGATED & set(self.user.values))


def chosen(paths: Sequence[Path], context_name: str | None) -> Chosen:
    """Return what the context (else the current one) of some files means.

    As for kubectl, the first file that has an entry of a name wins. Raises ConfigError.
    """
    documents = [(_read(path), path.absolute().parent) for path in paths if os.path.isfile(path)]
    files = ", ".join(map(str, paths))
    if not documents:
        raise ConfigError(f"no kubeconfig at {files}: run `streamgraft up`, or set KUBECONFIG")
    current = (document.get("current-context") for document, _ in documents)
    name = context_name or next(filter(None, current), None)
    try:
        context = _named(documents, "context", name).values
        cluster = _named(documents, "cluster", context["cluster"])
        user = _user(documents, context.get("user"))
        cluster.values["server"]
    except (AttributeError, KeyError, TypeError, StopIteration) as error:
        message = f"kubeconfig {files} has no usable context {name or ''}: {error!r}"
        raise ConfigError(message) from error
    found = Chosen(str(name), cluster, user, context.get("namespace") or "default")
    _refuse_what_would_be_dropped(found)
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"kubeconfig {path} can't be read: {error}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"kubeconfig {path} is no mapping: write one with kubectl config")
    return document


def _named(documents: list[tuple[dict[str, Any], Path]], kind: str, name: str | None) -> Entry:
    return next(
        Entry(item["name"], item[kind] or {}, folder)
        for document, folder in documents
        for item in document.get(f"{kind}s") or ()
        if item["name"] == name
    )


def _user(documents: list[tuple[dict[str, Any], Path]], name: str | None) -> Entry:
    # A context may name none: what `kubectl proxy` listens at needs no user.
    return _named(documents, "user", name) if name else Entry("(none)", {}, documents[0][1])


def _refuse_what_would_be_dropped(found: Chosen) -> None:
    """Raise ConfigError rather than come as somebody else, or as nobody, to the API server."""
    user, cluster = found.user, found.cluster
    if unknown := sorted({key for key, value in user.values.items() if value} - _KNOWN):
        raise ConfigError(
            f"user {user.name} of the kubeconfig has settings that Streamgraft can't follow: "
            f"{', '.join(unknown)}; use a token, a client certificate or an exec plugin"
        )
    secure = str(cluster.values["server"]).startswith("https")
    if secure and not any(user.values.get(key) for key in _CREDENTIALS | _DELEGATED):
        raise ConfigError(
            f"user {user.name} of the kubeconfig has no credentials, and Streamgraft does not come "
            f"to {cluster.values['server']} anonymously: log in, or choose another context"
        )
    proxy = cluster.values.get("proxy-url")
    if proxy and not str(proxy).startswith(("http://", "https://")):
        raise ConfigError(f"proxy-url {proxy} of the kubeconfig: only HTTP proxies are supported")
