"""`streamgraft console`: a link that signs a browser in, once."""

import asyncio
from typing import Any

from streamgraft.cli import _output as output
from streamgraft.cli._adapter import adapter
from streamgraft.cli._cluster import MANAGER, connected
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft_common.kinds import CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT
from streamgraft_common.kube import KubeClient

_EMBEDDED = ("kube-system", "streamgraft-console")
"""Account of the embedded environment, whose own administrator has a certificate and no token."""
_TOKEN_SECONDS = 8 * 3600


def run(target: Target, url: str | None, account: str | None) -> None:
    """Print a link that signs in whoever the kubeconfig's token, or the account's, is of."""
    output.say(asyncio.run(link(target, url, account)))


async def link(target: Target, url: str | None, account: str | None) -> str:
    """Return the link; its ticket is good once, for five minutes. Raises CommandError."""
    async with connected(target) as cluster:
        embedded = url is None and target.may_be_embedded
        token = await _token(cluster.client, account, embedded)
        async with adapter(target, cluster, url, token) as client:
            answer = await client.request("POST", "/console/api/tickets")
        return f"{client.config.server}/console/#ticket={answer['ticket']}"


async def _token(client: KubeClient, account: str | None, embedded: bool) -> str:
    if account is None and (token := client.config.bearer_token()):
        return token
    if account is None and not embedded:
        raise CommandError(
            "your kubeconfig has a client certificate and no token, which the console can't pass"
            " on: choose a service account to sign in as, --account NAMESPACE/NAME"
        )
    if account is None:
        await _make_account(client)
    namespace, _, name = (account or "/".join(_EMBEDDED)).partition("/")
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    answer = await client.create(f"{SERVICE_ACCOUNT.path(namespace, name)}/token", body)
    return str(answer["status"]["token"])


async def _make_account(client: KubeClient) -> None:
    """Make an account that may do all in the embedded environment, as its user may."""
    namespace, name = _EMBEDDED
    account: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace},
    }
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
    }
    await client.apply(SERVICE_ACCOUNT.path(namespace, name), account, MANAGER)
    await client.apply(CLUSTER_ROLE_BINDING.path("", name), binding, MANAGER)
