"""A pod's access to the API: service account tokens (TokenRequest) and a kubeconfig."""

import asyncio
import base64
from pathlib import Path

import yaml

from streamgraft_common.kube import KubeClient, KubeConfig
from streamgraft_common.kube.client import Object
from streamgraft_local.node.files import write_atomically
from streamgraft_local.node.volumes import TOKEN_SECONDS, TokenKey

API_TOKEN: TokenKey = ("", TOKEN_SECONDS)
"""The token of the pod's kubeconfig."""
_RENEW_AT = 0.8
"""Part of its lifetime after which a token is renewed (as the kubelet does)."""


class Tokens:
    """The tokens of one pod, bound to it, so that they end with it."""

    def __init__(self, client: KubeClient, pod: Object) -> None:
        self._client = client
        self._metadata = pod["metadata"]
        self._account = pod["spec"].get("serviceAccountName") or "default"
        self._current: dict[TokenKey, tuple[str, float]] = {}

    async def get(self, key: TokenKey) -> str:
        """Return a token with a good part of its life left. Raises ApiError."""
        token, renew_at = self._current.get(key, ("", 0.0))
        if asyncio.get_running_loop().time() >= renew_at:
            token = await self._request(key)
            renew_at = asyncio.get_running_loop().time() + key[1] * _RENEW_AT
            self._current[key] = token, renew_at
        return token

    def seconds_to_renewal(self) -> float:
        """Return how long all tokens stay good enough."""
        now = asyncio.get_running_loop().time()
        return min((renew_at - now for _, renew_at in self._current.values()), default=3600.0)

    async def _request(self, key: TokenKey) -> str:
        audience, seconds = key
        pod = {name: self._metadata[name] for name in ("name", "uid")}
        spec: Object = {
            "expirationSeconds": seconds,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", **pod},
            "audiences": [audience] if audience else [],
        }
        path = f"/api/v1/namespaces/{self._metadata['namespace']}/serviceaccounts/{self._account}"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = await self._client.create(f"{path}/token", request)
        return str(answer["status"]["token"])


def write_kubeconfig(folder: Path, config: KubeConfig, namespace: str, token: str) -> Path:
    """Write a kubeconfig for a token into a folder; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "token", token.encode())
    cluster: Object = {"server": config.server}
    if config.ca_data:
        authority = base64.b64encode(config.ca_data.encode()).decode()
        cluster["certificate-authority-data"] = authority
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": "pod", "user": {"tokenFile": str(folder / "token")}}],
        "contexts": [
            {
                "name": "pod",
                "context": {"cluster": "cluster", "user": "pod", "namespace": namespace},
            }
        ],
        "current-context": "pod",
    }
    path = folder / "config"
    write_atomically(path, yaml.safe_dump(document).encode())
    return path
