"""Who may vouch for callers: ConfigMap kube-system/extension-apiserver-authentication, watched.

The API server publishes there the authority of its front proxy (the aggregator), the names that it
uses, the headers in which it tells the user, and the authority of ordinary client certificates.
"""

import json
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509

from streamgraft_common.kube import KubeClient, Store
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_metrics_adapter.access.tls import ServerContext

log = logging.getLogger(__name__)

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"


@dataclass(frozen=True)
class Authorities:
    """The present content of the ConfigMap; empty until it was read, and then nobody is trusted."""

    proxy: tuple[x509.Certificate, ...] = ()
    allowed_names: frozenset[str] = frozenset()
    """Common names of front proxies; empty allows any, as in the API server."""
    user_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()
    clients: tuple[x509.Certificate, ...] = ()


def authorities_of(data: Mapping[str, str]) -> Authorities:
    """Return the content of the ConfigMap's data. Raises ValueError if it is malformed."""
    return Authorities(
        proxy=_certificates(data.get("requestheader-client-ca-file", "")),
        allowed_names=frozenset(_texts(data, "requestheader-allowed-names")),
        user_headers=_headers(data, "requestheader-username-headers"),
        group_headers=_headers(data, "requestheader-group-headers"),
        extra_prefixes=_headers(data, "requestheader-extra-headers-prefix"),
        clients=_certificates(data.get("client-ca-file", "")),
    )


def _certificates(pem: str) -> tuple[x509.Certificate, ...]:
    return tuple(x509.load_pem_x509_certificates(pem.encode())) if pem.strip() else ()


def _texts(data: Mapping[str, str], key: str) -> list[str]:
    return [str(text) for text in json.loads(data.get(key) or "[]")]


def _headers(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(text.lower() for text in _texts(data, key))


class AuthoritiesWatch:
    """Keeps `current`, and tells the TLS context about new authorities."""

    def __init__(self, client: KubeClient, context: ServerContext) -> None:
        self._context = context
        self.current = Authorities()
        self.store = Store(
            client,
            f"/api/v1/namespaces/{NAMESPACE}/configmaps",
            fieldSelector=f"metadata.name={NAME}",
        )
        self.store.listen(self._changed)

    def _changed(self, key: Key, old: Object | None, new: Object | None) -> None:
        data: Mapping[str, str] = (new or {}).get("data", {})
        try:
            found = authorities_of(data)
            # Together with what a bundle holds, so that a bad one leaves both as they were.
            self._context.trust(
                data.get(key, "") for key in ("requestheader-client-ca-file", "client-ca-file")
            )
        except (ValueError, TypeError, ssl.SSLError) as error:
            log.error("ConfigMap %s/%s is malformed: %s", NAMESPACE, NAME, error)
            return
        self.current = found
        log.info("trusting %d front proxy and %d client CAs", len(found.proxy), len(found.clients))
