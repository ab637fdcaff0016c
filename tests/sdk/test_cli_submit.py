"""What `submit` applies, and how long it waits."""

from collections.abc import Iterator
from typing import Any

import pytest

from streamgraft.cli import _submit
from streamgraft.cli._cluster import Cluster
from streamgraft.cli._output import CommandError
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


def edited(*accepted: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a job of the same bundle says after an edit: how it was, then these."""
    healthy = {"phase": "Healthy", "bundleDigest": "d", "imageSubmission": "before"}
    yield {**healthy, "observedGeneration": 0}
    for item in accepted:
        said = {"type": "Accepted", "reason": "Planned", "message": "", "observedGeneration": 1}
        condition = {**said, **item, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        message = condition["message"]
        yield {**healthy, "observedGeneration": 1, "message": message, "conditions": [condition]}


async def waited(statuses: Iterator[dict[str, Any]], seconds: float = 60) -> None:
    """Wait for an edit whose status has been there for long."""
    cluster = Cluster(OneJob(statuses), "n")
    await wait_healthy(cluster, await apply(cluster, "job", SPEC, "d"), "d", seconds)
    assert list(statuses) == []


@pytest.fixture
def _long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_submit, "_UNCHANGED_SECONDS", 0.0)


HELD = {"status": "Unknown", "reason": "RollbackUnderWay", "message": "rollback 1"}
AWAITED = {"status": "False", "reason": "BundleMissing", "message": "no bundle"}
REFUSED = {"status": "False", "reason": "PodForbidden", "message": "no host network"}


@pytest.mark.usefixtures("_long_ago")
async def test_a_refused_edit_fails_with_why_although_what_ran_before_is_healthy() -> None:
    with pytest.raises(CommandError) as error:
        await waited(edited({**REFUSED, "observedGeneration": 0}, HELD, REFUSED))
    assert str(error.value) == "refused, and what ran before goes on: no host network"


@pytest.mark.usefixtures("_long_ago")
async def test_an_edit_that_is_not_accepted_yet_is_waited_for() -> None:
    await waited(
        edited({"status": "True", "observedGeneration": 0}, HELD, AWAITED, {"status": "True"})
    )


@pytest.mark.usefixtures("_long_ago")
async def test_an_edit_that_is_not_accepted_in_time_fails_with_why() -> None:
    with pytest.raises(CommandError, match="is not healthy after 0 s: Healthy: rollback 1"):
        await waited(edited(HELD), 0)
