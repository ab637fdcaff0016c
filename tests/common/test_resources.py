"""The kinds and their generated definitions."""

from pathlib import Path

import pytest

from streamgraft_common.resources import JOB, KINDS, PARALLEL_REGION, ParallelRegionSpec
from streamgraft_common.resources.base import Kind
from streamgraft_common.resources.crds import crd, render

CRDS = Path(__file__).parents[2] / "deploy" / "crds"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_definitions_are_current(kind: Kind) -> None:
    """deploy/crds is what the models say; `make generate` writes it."""
    assert (CRDS / f"{kind.plural}.yaml").read_text() == render(kind)


def test_no_stray_definitions() -> None:
    """deploy/crds holds the kinds and nothing else."""
    expected = {f"{kind.plural}.yaml" for kind in KINDS}
    assert {path.name for path in CRDS.iterdir()} == expected


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_schemas_are_structural(kind: Kind) -> None:
    """No references, titles or defaults remain, at any depth."""

    def keys(node: object) -> set[str]:
        if isinstance(node, dict):
            return set(node) | {key for value in node.values() for key in keys(value)}
        if isinstance(node, list):
            return {key for item in node for key in keys(item)}
        return set()

    schema = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert keys(schema).isdisjoint({"$ref", "$defs", "title", "default", "const"})


def test_region_has_scale_subresource() -> None:
    """The HPA reads and writes the width through these paths."""
    version = crd(PARALLEL_REGION)["spec"]["versions"][0]
    assert version["subresources"]["scale"] == {
        "specReplicasPath": ".spec.width",
        "statusReplicasPath": ".status.width",
        "labelSelectorPath": ".status.selector",
    }


def test_manifest_and_paths() -> None:
    """A manifest is a plain dict in camelCase; paths follow the API group."""
    spec = ParallelRegionSpec(job="j", region="r", width=2, max_width=4, key=["k"])
    manifest = PARALLEL_REGION.manifest("j-r", "ns", spec, labels={"a": "b"})
    assert manifest["spec"] == {"job": "j", "region": "r", "width": 2, "maxWidth": 4, "key": ["k"]}
    assert manifest["metadata"] == {"name": "j-r", "namespace": "ns", "labels": {"a": "b"}}
    assert JOB.path("ns", "j") == "/apis/streamgraft.io/v1alpha1/namespaces/ns/jobs/j"
    assert JOB.path() == "/apis/streamgraft.io/v1alpha1/jobs"
