"""The kinds and their generated definitions."""

from pathlib import Path
from typing import Any

import pytest

from streamgraft_common.resources import (
    JOB,
    KINDS,
    PARALLEL_REGION,
    JobSpec,
    ParallelRegionSpec,
    PodSettings,
    RuntimeStatus,
)
from streamgraft_common.resources.base import CustomKind
from streamgraft_common.resources.crds import crd, render

CRDS = Path(__file__).parents[2] / "deploy" / "crds"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_definitions_are_current(kind: CustomKind) -> None:
    """deploy/crds is what the models say; `make generate` writes it."""
    assert (CRDS / f"{kind.plural}.yaml").read_text() == render(kind)


def test_no_stray_definitions() -> None:
    """deploy/crds holds the kinds and nothing else."""
    expected = {f"{kind.plural}.yaml" for kind in KINDS}
    assert {path.name for path in CRDS.iterdir()} == expected


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_schemas_are_structural(kind: CustomKind) -> None:
    """No references, titles or defaults remain, at any depth."""

    def keys(node: object) -> set[str]:
        if isinstance(node, dict):
            return set(node) | {key for value in node.values() for key in keys(value)}
        if isinstance(node, list):
            return {key for item in node for key in keys(item)}
        return set()

    schema = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert keys(schema).isdisjoint({"$ref", "$defs", "title", "default", "const", "propertyNames"})


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
    assert manifest["spec"] == {
        "job": "j",
        "region": "r",
        "width": 2,
        "maxWidth": 4,
        "key": ["k"],
        "changeDeadlineSeconds": 300,
        "strategy": "handover",
        "upstream": [],
        "otherInputs": False,
        "stages": [],
    }
    assert manifest["metadata"] == {"name": "j-r", "namespace": "ns", "labels": {"a": "b"}}
    assert JOB.path("ns", "j") == "/apis/streamgraft.io/v1alpha1/namespaces/ns/jobs/j"
    assert JOB.path() == "/apis/streamgraft.io/v1alpha1/jobs"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_kubectl_explains_every_field(kind: CustomKind) -> None:
    """Each field of spec and status, at any depth, has a description."""

    def undescribed(path: str, node: dict[str, Any]) -> list[str]:
        found = []
        for name, child in node.get("properties", {}).items():
            text = child.get("description", "").replace("\n\n", "")
            found += [] if text and "\n" not in text else [f"{path}.{name}"]
            found += undescribed(f"{path}.{name}", child)
        for part in node.keys() & {"items", "additionalProperties"}:
            found += undescribed(path, node[part])
        return found

    schema = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["description"]
    assert undescribed("", {"properties": schema["properties"]}) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_kinds_follow_the_conventions(kind: CustomKind) -> None:
    """Conditions with observedGeneration, a status subresource, columns with age, categories."""
    definition = crd(kind)["spec"]
    version = definition["versions"][0]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert "observedGeneration" in status
    assert "observedGeneration" in status["conditions"]["items"]["properties"]
    assert version["subresources"]["status"] == {}
    assert version["additionalPrinterColumns"][-1]["name"] == "Age"
    assert definition["names"]["categories"] == ["streamgraft", "streams"]


def test_short_names_are_unique() -> None:
    """Two kinds of one name could not be told apart by kubectl."""
    names = [name for kind in KINDS for name in [kind.plural, kind.kind.lower(), *kind.short_names]]
    assert len(names) == len(set(names))


def test_settings_of_a_pe_win_over_its_jobs() -> None:
    """What a PE does not say is its job's; false is said, too."""
    job = PodSettings(heap_mb=500, delete_failed_pod=True, env={"A": "1", "B": "2"})
    own = PodSettings(delete_failed_pod=False, env={"A": "3"})
    assert own.over(job) == PodSettings(heap_mb=500, delete_failed_pod=False, env={"A": "3"})


def test_map_that_server_side_apply_has_emptied_is_empty() -> None:
    """It leaves null where the last entry went, if another manager still has the map."""
    spec = JobSpec.model_validate({"bundle": {"file": "/x"}, "parameters": None, "regions": None})
    assert (spec.parameters, spec.regions) == ({}, {})
    properties = crd(JOB)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert properties["spec"]["properties"]["parameters"]["nullable"]


def test_failure_of_a_pe_is_its_own_or_that_of_its_first_shard() -> None:
    def failed(message: str) -> dict[str, Any]:
        return {"state": "Failed", "epoch": 1, "message": message}

    shards = {"10": failed("c"), "2": failed("b"), "1": {"state": "Running", "epoch": 1}}
    said = RuntimeStatus.model_validate({"shards": shards})
    assert said.failure == "shard 2 (and 1 more) fails and is tried again: b"
    assert said.model_copy(update={"message": "a"}).failure == "a"
    assert RuntimeStatus().failure == ""
