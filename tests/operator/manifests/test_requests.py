"""What a pod requests, by Kubernetes' own rules."""

from typing import Any

import pytest
from tests.operator.manifests.test_manifests import IN_CONFIG_MAP, OWNER, SETTINGS, planned

from streamgraft_common.resources import JobSpec
from streamgraft_operator import manifests
from streamgraft_operator.manifests.requests import requested_memory

MIB = 2**20


@pytest.mark.parametrize(
    ("resources", "mib"),
    [
        (None, 512),
        ({"requests": {"memory": "1Gi"}}, 1024),
        ({"requests": {"memory": "1Gi"}, "limits": {"memory": "4Gi"}}, 1024),
        ({"limits": {"memory": "4Gi"}}, 4096),
        ({"requests": {"cpu": "1"}, "limits": {"memory": "4Gi"}}, 4096),
        ({"requests": {"cpu": "1"}}, 0),
    ],
)
def test_memory_of_a_warm_pod(resources: dict[str, Any] | None, mib: int) -> None:
    settings = {"resources": resources} if resources else {}
    job = JobSpec.model_validate({**IN_CONFIG_MAP, "processingElement": settings})
    pod = manifests.warm_pod("flights-warm-1", planned(), OWNER, job, SETTINGS)
    assert requested_memory(pod["spec"]) == mib * MIB


def container(mib: int, **fields: Any) -> dict[str, Any]:
    """Return a container that requests so much memory."""
    return {"resources": {"requests": {"memory": f"{mib}Mi"}}, **fields}


@pytest.mark.parametrize(
    ("spec", "mib"),
    [
        ({}, 500),
        ({"initContainers": [container(400)]}, 500),
        ({"initContainers": [container(900)]}, 900),
        ({"initContainers": [container(50, restartPolicy="Always"), container(400)]}, 550),
        ({"initContainers": [container(50, restartPolicy="Always"), container(900)]}, 950),
        ({"initContainers": [container(900), container(50, restartPolicy="Always")]}, 900),
        ({"resources": {"limits": {"memory": 800 * MIB}}}, 800),
    ],
)
def test_memory_of_several_containers(spec: dict[str, Any], mib: int) -> None:
    containers = [container(300), container(200), {"name": "none"}]
    assert requested_memory({"containers": containers, **spec}) == mib * MIB
