"""Who owns what in a restored Job, on the real API server: a later `submit` takes away what is its
own, and nothing else."""

from typing import Any

import pytest
from tests.sdk.test_cli_plan import application

from streamgraft.cli._cluster import Cluster
from streamgraft.cli._output import CommandError
from streamgraft.cli._restore import _keep, _tried
from streamgraft.cli._submit import _let_go, apply
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import JOB

pytestmark = pytest.mark.integration

DIGEST = "0" * 64
KEPT: dict[str, Any] = {
    "savepoint": {"name": "first"},
    "fusion": {"type": "legacy"},
    "regions": {"work": {"width": 3, "strategy": "savepoint"}},
}


async def test_a_later_submit_takes_parameters_and_the_place_of_the_bundle_away(
    kube: KubeClient, namespace: str
) -> None:
    cluster = Cluster(kube, namespace)
    spec = KEPT | {"bundle": {"file": "/shared/b.zip"}, "parameters": {"limit": "5", "speed": "1"}}
    applied = await apply(cluster, "job", spec, DIGEST)
    await _keep(cluster, "job", spec)
    uploaded = {"configMap": {"name": "job-bundle"}}
    first = await apply(cluster, "job", {"bundle": uploaded, "parameters": {"speed": "2"}}, DIGEST)
    assert first["metadata"]["uid"] == applied["metadata"]["uid"]
    pinned = uploaded | {"digest": DIGEST}
    assert first["spec"] == KEPT | {"bundle": pinned, "parameters": {"speed": "2"}}
    again = await apply(cluster, "job", {"bundle": uploaded}, DIGEST)
    assert not again["spec"].pop("parameters", None)
    assert again["spec"] == KEPT | {"bundle": pinned}


async def test_whether_a_job_would_be_taken_is_tried_beside_the_one_that_it_replaces(
    kube: KubeClient, namespace: str
) -> None:
    """As an edit of that one it would be refused: no edit sets a savepoint."""
    cluster = Cluster(kube, namespace)
    uploaded: dict[str, Any] = {"bundle": {"configMap": {"name": "job-bundle"}}}
    running = await apply(cluster, "job", uploaded, DIGEST)
    await _tried(cluster, "job", KEPT | uploaded, b"bundle", DIGEST)
    wrong = KEPT | uploaded | {"fusion": {"type": "legacy", "peCount": 2}}
    with pytest.raises(CommandError, match=r"replaces job: 422 .*peCount is for type manual only"):
        await _tried(cluster, "job", wrong, b"bundle", DIGEST)
    jobs = (await kube.get(JOB.path(namespace)))["items"]
    assert [item["metadata"]["uid"] for item in jobs] == [running["metadata"]["uid"]]
    assert await kube.find(cluster.core("configmaps", "job-bundle")) is None


async def test_a_later_submit_lets_go_of_regions_that_the_application_lacks(
    kube: KubeClient, namespace: str
) -> None:
    cluster, bundle = Cluster(kube, namespace), {"bundle": {"configMap": {"name": "job-bundle"}}}
    spec = KEPT | bundle | {"regions": {**KEPT["regions"], "old": {"width": 2}}}
    await apply(cluster, "job", spec, DIGEST)
    await _keep(cluster, "job", spec)
    applied = await apply(cluster, "job", bundle, DIGEST)
    assert applied["spec"]["regions"].keys() == {"work", "old"}
    assert (await _let_go(cluster, applied, application()))["spec"]["regions"] == KEPT["regions"]
    again = await apply(cluster, "job", bundle, DIGEST)
    assert again["spec"]["regions"] == KEPT["regions"]
