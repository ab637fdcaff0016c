"""Regions that a restored Job names, and an application has no more."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.test_cli_plan import application
from typer.testing import CliRunner, Result

from streamgraft._builder import _zip
from streamgraft.cli import _plan, _submit
from streamgraft.cli._app import app
from streamgraft.cli._cluster import Cluster
from streamgraft.cli._restored import outlived
from streamgraft_common.bundle import ADL_FILE
from streamgraft_common.kube import KubeClient, KubeConfig, NotFound
from streamgraft_common.kube.client import MergePatch, Object
from streamgraft_common.resources import JOB

RESTORED, USER = "streamgraft-restore", "kubectl-edit"


def fields(manager: str, *regions: str) -> Object:
    """Return what a manager has of a Job."""
    held: dict[str, Any] = {f"f:{name}": {"f:width": {}} for name in regions}
    spec = {"f:fusion": {"f:type": {}}, **({"f:regions": held} if held else {})}
    return {"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": spec}}


@pytest.mark.parametrize(
    ("managed", "gone"),
    [
        ([fields(RESTORED, "work", "old", "older")], ["old", "older"]),
        ([fields(RESTORED, "work", "old", "older"), fields(USER, "old")], ["older"]),
        ([fields(USER, "old"), fields(RESTORED)], []),
        ([{"manager": "operator", "subresource": "status", "fieldsV1": {"f:status": {}}}], []),
    ],
)
def test_what_somebody_wrote_himself_stays(managed: list[Object], gone: list[str]) -> None:
    """He may have misspelt it: the operator says so."""
    assert outlived({"metadata": {"managedFields": managed}}, application()) == gone
    assert outlived({"metadata": {}}, application()) == []


class Restored(KubeClient):
    """An API server with a Job that has the regions `work` and `old`, held by one manager."""

    def __init__(self, manager: str) -> None:
        super().__init__(KubeConfig(server="http://127.0.0.1:1"))
        self.regions: dict[str, Any] = {"work": {"width": 3}, "old": {"width": 2}}
        self.wrote: list[str] = []
        """What was done to the Job, in order."""
        self._manager = manager

    def _job(self) -> Object:
        managed = [fields(self._manager, *self.regions)]
        return {
            "metadata": {"name": "flights", "uid": "u", "managedFields": managed},
            "spec": {"bundle": {"configMap": {"name": "b"}}, "regions": dict(self.regions)},
        }

    async def find(self, path: str, **query: str) -> Object | None:
        """Return the Job."""
        return self._job() if "/jobs/" in path else None

    async def get(self, path: str, **query: str) -> Object:
        """Return the Job, which consists of nothing yet."""
        if path == JOB.path("default", "flights"):
            return self._job()
        if path.endswith("s"):
            return {"items": []}
        raise NotFound(404, "NotFound", path)

    async def apply(self, path: str, body: Object, manager: str, **query: str) -> Object:
        """Take what does not concern the regions."""
        if path == JOB.path("default", "flights") and "dryRun" not in query:
            self.wrote.append("bundle")
        return self._job()

    async def patch(self, path: str, body: MergePatch, **query: str) -> Object:
        """Take regions out."""
        assert path == JOB.path("default", "flights")
        for name, value in body["spec"]["regions"].items():
            assert value is None
            del self.regions[name]
        self.wrote.append("regions")
        return self._job()


def run(client: Restored, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> Result:
    """Run a command with an application that has the region `work` alone."""

    @asynccontextmanager
    async def connected(_: object) -> AsyncIterator[Cluster]:
        yield Cluster(client, "default")

    monkeypatch.setattr(_plan, "connected", connected)
    monkeypatch.setattr(_submit, "connected", connected)
    file = folder / "flights.zip"
    file.write_bytes(_zip({ADL_FILE: application().model_dump_json(by_alias=True).encode()}))
    return CliRunner().invoke(app, [command, str(file)])


def test_a_submission_lets_go_of_what_the_savepoint_alone_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Restored(RESTORED)
    planned = run(client, tmp_path, monkeypatch, "plan")
    assert planned.exit_code == 0, planned.output
    assert client.wrote == []
    submitted = run(client, tmp_path, monkeypatch, "submit")
    assert submitted.exit_code == 0, submitted.output
    assert "regions that the application lacks go: old" in submitted.output
    assert client.wrote == ["bundle", "regions"]
    assert client.regions == {"work": {"width": 3}}
    again = run(client, tmp_path, monkeypatch, "submit")
    assert "lacks" not in again.output
    assert client.wrote == ["bundle", "regions", "bundle"]


def test_a_region_that_somebody_wrote_himself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Restored(USER)
    planned = run(client, tmp_path, monkeypatch, "plan")
    assert planned.exit_code == 1
    assert "the application has no region old" in " ".join(planned.output.split())
    assert client.regions.keys() == {"work", "old"}
