"""Names of test suites on the real API server: its pods are found by a label that has the name."""

import pytest

from streamgraft_common import names
from streamgraft_common.kinds import POD
from streamgraft_common.kube import ApiError, KubeClient
from streamgraft_common.resources import TEST_SUITE
from streamgraft_common.resources.suite import MAX_SUITE_NAME

pytestmark = pytest.mark.integration


async def create(kube: KubeClient, name: str) -> None:
    """Let the API server check a suite without storing it."""
    manifest = TEST_SUITE.manifest(name, "default", {"scenarios": [{"name": "n"}]})
    await kube.create(TEST_SUITE.path("default"), manifest, dryRun="All")


async def test_a_name_that_is_no_labels_value_is_refused_at_once(kube: KubeClient) -> None:
    """The operator could not even list the pods of such a suite."""
    longest = "s" * MAX_SUITE_NAME
    await create(kube, longest)
    selector = {"labelSelector": f"{names.LABEL_TEST_SUITE}={longest}"}
    assert (await kube.list(POD.path("default"), selector))["items"] == []
    with pytest.raises(ApiError, match="name of a test suite has at most 63 characters"):
        await create(kube, f"{longest}s")
