"""The definitions on the real API server: what it refuses, explains and lists."""

from typing import Any

import pytest

from streamgraft_common.kube import ApiError, KubeClient
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    HOST_POOL,
    IMPORT,
    JOB,
    KINDS,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    TEST_SUITE,
)
from streamgraft_common.resources.base import CustomKind

pytestmark = pytest.mark.integration

BUNDLE = {"configMap": {"name": "b"}}
GOOD: dict[str, dict[str, Any]] = {
    "Job": {"bundle": BUNDLE},
    "ProcessingElement": {"job": "j", "peId": 0, "stageName": "pe-0"},
    "ParallelRegion": {"job": "j", "region": "r", "width": 1, "maxWidth": 4, "key": ["k"]},
    "HostPool": {"tags": ["gpu"], "nodeSelector": {"zone": "a"}},
    "Savepoint": {"job": "j"},
    "Import": {"job": "j", "operator": "o", "name": "n"},
    "Export": {"job": "j", "operator": "o", "stream": "s", "properties": {"p": "v"}},
    "ConsistentRegion": {"job": "j", "region": "r", "periodSeconds": 5},
    "TestSuite": {"scenarios": [{"name": "n"}]},
}
REFUSED: list[tuple[CustomKind, dict[str, Any], str]] = [
    (JOB, {"bundle": {}}, "exactly one of"),
    (JOB, {"bundle": {**BUNDLE, "file": "/b"}}, "exactly one of"),
    (JOB, {"bundle": {**BUNDLE, "secret": "s"}}, "for url and git only"),
    (JOB, {"fusion": {"peCount": 2}}, "type manual only"),
    (
        JOB,
        {
            "processingElement": {
                "checkpointRepository": {"s3": {"bucket": "abc"}, "redis": {"service": "a"}}
            }
        },
        "takes one of copies, s3 and redis",
    ),
    (JOB, {"threading": {"model": "dynamic"}}, "needs threadCount"),
    (JOB, {"threading": {"threadCount": 2}}, "needs threadCount"),
    (JOB, {"threading": {"elastic": True}}, "dynamic only"),
    (
        JOB,
        {"threading": {"model": "dedicated"}, "processingElement": {"slots": 2}},
        "manual only",
    ),
    (JOB, {"fusion": {"type": "random"}}, "Unsupported value"),
    (JOB, {"resources": {"requests": {"cpu": "many"}}}, "should match"),
    (PARALLEL_REGION, {"width": 5}, "must not exceed maxWidth"),
    (HOST_POOL, {"hosts": ["a"]}, "either hosts"),
    (IMPORT, {"subscription": "a = 1"}, "either a name"),
    (CONSISTENT_REGION, {"trigger": "operatorDriven"}, "needs periodSeconds"),
    (TEST_SUITE, {"scenarios": []}, "at least one scenario"),
]


async def create(kube: KubeClient, kind: CustomKind, spec: dict[str, Any]) -> None:
    """Let the API server check an object without storing it."""
    manifest = kind.manifest("thing", "default", spec)
    await kube.create(kind.path("default"), manifest, dryRun="All")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
async def test_sound_objects_are_accepted(kube: KubeClient, kind: CustomKind) -> None:
    await create(kube, kind, GOOD[kind.kind])


async def test_mistakes_are_refused_with_the_rules_message(kube: KubeClient) -> None:
    for kind, change, message in REFUSED:
        with pytest.raises(ApiError) as refusal:
            await create(kube, kind, {**GOOD[kind.kind], **change})
        assert message in refusal.value.message, (kind.kind, change)


async def test_identity_of_a_pe_cannot_change(kube: KubeClient) -> None:
    path = PROCESSING_ELEMENT.path("default")
    manifest = PROCESSING_ELEMENT.manifest("fixed-0", "default", GOOD["ProcessingElement"])
    await kube.create(path, manifest)
    try:
        with pytest.raises(ApiError, match="job and peId can't change"):
            await kube.patch(f"{path}/fixed-0", {"spec": {"peId": 1}})
    finally:
        await kube.delete(f"{path}/fixed-0")


def _on(**files: Any) -> dict[str, Any]:
    """Return the spec of a job whose checkpoints are in these files; none: in those of before."""
    repository = {"stateStore": "RocksDB", **({"fileSystem": files} if files else {})}
    return {"processingElement": {"checkpointRepository": repository}}


async def test_the_volume_of_checkpoints_cannot_change(kube: KubeClient) -> None:
    path, claim = JOB.path("default"), {"name": "c"}
    own = _on(volumeClaim=claim)
    for name, first in (("on-its-own", own), ("on-the-default", {})):
        await kube.create(path, JOB.manifest(name, "default", {**GOOD["Job"], **first}))
    refused = [
        ("on-its-own", _on(volumeClaim={"name": "d"})),
        ("on-its-own", _on(volumeClaim={**claim, "subPath": "x"})),
        ("on-its-own", _on(path="/other", volumeClaim=claim)),
        ("on-its-own", {"processingElement": None}),
        ("on-the-default", own),
    ]
    try:
        for name, change in refused:
            with pytest.raises(ApiError, match="fileSystem can't change"):
                await kube.patch(f"{path}/{name}", {"spec": change})
        for name in ("on-its-own", "on-the-default"):
            await kube.patch(f"{path}/{name}", {"spec": {**_on(), "image": "other"}})
    finally:
        for name in ("on-its-own", "on-the-default"):
            await kube.delete(f"{path}/{name}")


async def test_kubectl_can_explain_and_find_the_kinds(kube: KubeClient) -> None:
    """The published OpenAPI has the descriptions, discovery the short names and categories."""
    document = await kube.get("/openapi/v3/apis/streamgraft.io/v1alpha1")
    schemas = document["components"]["schemas"]
    job = schemas["io.streamgraft.v1alpha1.Job"]["properties"]["spec"]["properties"]
    assert job["warmPool"]["description"].startswith("Warm pods")
    assert "label `tag" in str(schemas["io.streamgraft.v1alpha1.HostPool"])
    listed = (await kube.get("/apis/streamgraft.io/v1alpha1"))["resources"]
    kinds = {item["name"]: item for item in listed if "/" not in item["name"]}
    assert kinds.keys() == {kind.plural for kind in KINDS}
    assert all(item["categories"] == ["streamgraft", "streams"] for item in kinds.values())
    assert kinds["processingelements"]["shortNames"] == ["pe"]
