"""Kubeconfigs whose user is an exec plugin, against the real API server."""

from pathlib import Path

import pytest
import yaml
from tests.common.test_kube_config import plugin
from tests.operator.integration.accounts import Account
from tests.operator.integration.world import World

from streamgraft_common.kube import ApiError, KubeClient, load_config
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def kubeconfig(folder: Path, cluster: Cluster, answers: list[dict[str, str]]) -> Path:
    """Write a kubeconfig of the cluster whose plugin gives one answer after the other."""
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    (context,) = (
        item["context"]
        for item in document["contexts"]
        if item["name"] == document["current-context"]
    )
    context["user"] = "plugged"
    document["users"] = [{"name": "plugged", "user": plugin(folder, *answers)}]
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return path


async def test_requests_go_out_as_whom_the_plugin_says(
    account: Account, world: World, cluster: Cluster, tmp_path: Path
) -> None:
    """Each with a token that has not expired; a refused one is not sent as somebody else."""
    token = (await account.config(load_config(cluster.kubeconfig))).token
    assert token
    expired = {"token": "was never good", "expirationTimestamp": "2020-01-01T00:00:00Z"}
    lasting = {"token": token, "expirationTimestamp": "2099-01-01T00:00:00Z"}
    path = kubeconfig(tmp_path, cluster, [expired, lasting])
    async with KubeClient(load_config(path)) as client:
        review = await client.create(_REVIEWS, {})
        user = review["status"]["userInfo"]["username"]
        assert user == f"system:serviceaccount:{world.namespace}:{account.name}"
        with pytest.raises(ApiError, match="403"):
            await client.get(f"/api/v1/namespaces/{world.namespace}/secrets")
    assert (tmp_path / "count").read_text().strip() == "2"


async def test_a_plugin_with_a_wrong_token_is_unauthorized_and_not_anonymous(
    cluster: Cluster, tmp_path: Path
) -> None:
    path = kubeconfig(tmp_path, cluster, [{"token": "wrong"}] * 2)
    async with KubeClient(load_config(path)) as client:
        with pytest.raises(ApiError, match="401"):
            await client.create(_REVIEWS, {})
