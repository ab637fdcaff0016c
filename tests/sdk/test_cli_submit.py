"""What `submit` applies, and how long it waits."""

from collections.abc import Iterator
from typing import Any

from streamgraft.cli._cluster import Cluster
from streamgraft.cli._submit import apply, wait_healthy
from streamgraft_common import names
from streamgraft_common.kube import KubeClient, KubeConfig
from streamgraft_common.kube.client import Object

SPEC = {"bundle": {"configMap": {"name": "b"}}}


class OneJob(KubeClient):
    """An API server that takes a Job, and says next what it has of `statuses`."""

    def __init__(self, statuses: Iterator[dict[str, Any]]) -> None:
        super().__init__(KubeConfig(server="http://127.0.0.1:1"))
        self._statuses = statuses
        self._job: Object = {}

    async def apply(self, path: str, body: Object, manager: str, **query: str) -> Object:
        """Take the Job."""
        generation = {"generation": 1}
        self._job = {**body, "metadata": {**body["metadata"], **generation}}
        return await self.get(path)

    async def get(self, path: str, **query: str) -> Object:
        """Return the Job with its next status."""
        return {**self._job, "status": next(self._statuses)}


async def test_the_health_of_before_an_unchanged_submission_is_not_its_own() -> None:
    """Its spec has the same generation, and the operator may have another image for it."""
    healthy = {"phase": "Healthy", "observedGeneration": 1, "bundleDigest": "d"}

    def told() -> Iterator[dict[str, Any]]:
        yield healthy
        yield healthy
        yield {**healthy, "phase": "Submitted", "imageSubmission": submitted}
        yield {**healthy, "imageSubmission": submitted}

    statuses = told()
    cluster = Cluster(OneJob(statuses), "n")
    applied = await apply(cluster, "job", SPEC, "d")
    submitted = applied["metadata"]["annotations"][names.ANNOTATION_SUBMITTED]
    await wait_healthy(cluster, applied, "d", 60)
    assert list(statuses) == []
