"""Credentials that a kubeconfig has others ask for: exec plugins, and auth providers as OIDC.

The official client does it. It is imported here and nowhere else, since that takes 0.3 s.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import certifi
from kubernetes.client import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.dateutil import parse_rfc3339
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader

from streamgraft_common.kube.errors import ConfigError
from streamgraft_common.kube.kubeconfig import Chosen

_EARLY = timedelta(minutes=1)
"""A credential counts as expired this long before: a request takes time."""


def log_in(chosen: Chosen) -> dict[str, Any]:
    """Return fields of KubeConfig: `renewed_token`, or a certificate and its key.

    A certificate holds as long as the process; a token is renewed when it expires.
    Raises ConfigError with the plugin's own words if it gives no credentials.
    """
    if "exec" in chosen.user.values:
        plugin = _Plugin(chosen)
        return plugin.certificate() or {"renewed_token": plugin.token}
    return {"renewed_token": _of_auth_provider(chosen)}


class _Plugin:
    """An exec plugin and its last answer (client.authentication.k8s.io, ExecCredential)."""

    def __init__(self, chosen: Chosen) -> None:
        self._what = f"the exec plugin of user {chosen.user.name} in the kubeconfig"
        settings = ConfigNode("exec", chosen.user.values["exec"])
        cluster = ConfigNode("cluster", dict(chosen.cluster.values))
        self._lock = threading.Lock()
        try:
            self._provider = ExecProvider(settings, str(chosen.user.folder), cluster)
        except ConfigException as error:
            raise ConfigError(f"{self._what}: {error}") from error
        self._answer = self._run()

    def certificate(self) -> dict[str, bytes] | None:
        """Return certificate and key, if that is what the plugin gave."""
        if not self._answer.get("clientCertificateData") or self._answer.get("token"):
            return None
        return {
            "client_certificate": self._answer["clientCertificateData"].encode(),
            "client_key": self._answer["clientKeyData"].encode(),
        }

    def token(self) -> str:
        """Return the token; runs the plugin again if the last one has expired."""
        with self._lock:
            if self._expired():
                self._answer = self._run()
            token = self._answer.get("token")
        if not token:
            raise ConfigError(f"{self._what} gave no token")
        return str(token)

    def _expired(self) -> bool:
        until = self._answer.get("expirationTimestamp")
        return bool(until) and parse_rfc3339(until) <= datetime.now(UTC) + _EARLY

    def _run(self) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._provider.run()
        except (ConfigException, OSError) as error:
            raise ConfigError(f"{self._what} failed: {error}") from error
        except AttributeError as error:
            # On a terminal the official client stumbles over a plugin that failed; the plugin
            # has then written there what happened.
            raise ConfigError(f"{self._what} failed; see what it wrote above") from error
        pair = answer.get("clientCertificateData"), answer.get("clientKeyData")
        if not answer.get("token") and not all(pair):
            raise ConfigError(f"{self._what} gave neither a token nor a certificate with its key")
        return answer


def _of_auth_provider(chosen: Chosen) -> Callable[[], str]:
    provider = dict(chosen.user.values["auth-provider"])
    settings = provider["config"] = dict(provider.get("config") or {})
    # Without an authority the official client would trust any identity provider.
    authority = settings.get("idp-certificate-authority") or certifi.where()
    settings["idp-certificate-authority"] = str(chosen.user.folder / authority)
    what = f"the auth provider {provider.get('name')} of user {chosen.user.name} in the kubeconfig"
    document = {
        "current-context": "chosen",
        "contexts": [{"name": "chosen", "context": {"cluster": "chosen", "user": "chosen"}}],
        "clusters": [{"name": "chosen", "cluster": {}}],
        "users": [{"name": "chosen", "user": {"auth-provider": provider}}],
    }
    lock = threading.Lock()

    def token() -> str:
        with lock:
            loaded = Configuration()
            try:
                # It looks at the expiry of what it has each time, and renews that in place.
                loader = KubeConfigLoader(document, config_base_path=str(chosen.user.folder))
                loader.load_and_set(loaded)
            except Exception as error:  # of requests, oauthlib, urllib3, json…
                raise ConfigError(f"{what} failed: {error!r}") from error
            kept = loaded.api_key.get("BearerToken", "")
        if not kept:
            raise ConfigError(f"{what} gave no token; log in again, or use an exec plugin instead")
        return str(kept).removeprefix("Bearer ")

    token()
    return token
