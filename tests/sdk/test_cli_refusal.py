"""Edits that the operator would refuse are refused by `plan` and `submit` as well."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.test_cli_plan import application, running, submission
from typer.testing import CliRunner

from streamgraft._builder import _zip
from streamgraft.cli import _plan, _submit
from streamgraft.cli._app import app
from streamgraft.cli._cluster import Cluster
from streamgraft.cli._output import CommandError
from streamgraft.cli._plan_compare import Outlook, outlook
from streamgraft.cli._refusal import check_edit
from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.bundle import ADL_FILE
from streamgraft_common.kube import ApiError, Forbidden, KubeClient, KubeConfig, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, SavedStage
from streamgraft_operator.graph.stages import saved_stages


def stateful(name: str = "work") -> Adl:
    """Return an application with state in its region."""
    adl = application()
    operators = [
        item.model_copy(update={"stateful": True, "name": name}) if item.name == "work" else item
        for item in adl.operators
    ]
    streams = [
        item.model_copy(update={"producer": name}) if item.producer == "work" else item
        for item in adl.streams
    ]
    return adl.model_copy(update={"operators": operators, "streams": streams})


def stages() -> tuple[SavedStage, ...]:
    """Return what the operator has noted of a job in which `read` and `clean` are apart."""
    read, *others = saved_stages(submission(stateful()).topology({"work": 2}), stateful())
    clean = read.model_copy(update={"name": "clean", "operators": ["clean"]})
    return read.model_copy(update={"operators": ["read"]}), clean, *others


def plan(new: Adl, **spec: Any) -> Outlook:
    """Return what comes of an edit of a job in which `read` and `clean` are one stage."""
    old = submission(stateful())
    noted = tuple(saved_stages(old.topology({"work": 2}), stateful()))
    return outlook(submission(new, **spec), replace(running(old), stages=noted))


def test_state_that_goes_has_to_be_allowed() -> None:
    check_edit(plan(stateful()))
    with pytest.raises(CommandError, match="--drop-state work"):
        check_edit(plan(stateful("other")))
    check_edit(plan(stateful("other"), dropState=["work"]))


def test_another_application_is_told_to_take_a_name_of_its_own() -> None:
    """Its operators may all be there under one name, and to drop what they keep is not meant."""
    adl = stateful("other")
    others = {name: f"other-{name}" for name in ("read", "clean", "show")}
    operators = [
        item.model_copy(update={"name": others.get(item.name, item.name)}) for item in adl.operators
    ]
    streams = [
        item.model_copy(update={"producer": others.get(item.producer, item.producer)})
        for item in adl.streams
    ]
    another = adl.model_copy(update={"operators": operators, "streams": streams})
    with pytest.raises(CommandError) as error:
        check_edit(plan(another))
    assert str(error.value).startswith(
        "job flights runs another application (it has the operators clean, read, show, work): give"
        " this one a name of its own with --name; the operator would refuse this: this edit drops"
    )
    check_edit(plan(another, dropState=["work"]))
    with pytest.raises(CommandError, match=r"^the operator would refuse this"):
        check_edit(plan(stateful("other")))


class OneJob(KubeClient):
    """An API server with a job that runs the application with `read` and `clean` apart."""

    def __init__(self, *, hidden: bool = False, **metadata: str) -> None:
        super().__init__(KubeConfig(server="http://127.0.0.1:1"))
        self.metadata = {"name": "flights", "uid": "u", **metadata}
        self.stored: list[str] = []
        """Paths of what was applied, and no dry run."""
        self._hidden = hidden

    async def find(self, path: str, **query: str) -> Object | None:
        """Return the Job."""
        spec = {"bundle": {"configMap": {"name": "b"}}}
        return {"metadata": self.metadata, "spec": spec, "status": {}} if "jobs" in path else None

    async def get(self, path: str, **query: str) -> Object:
        """Return the job's own ConfigMap, and nothing else."""
        if self._hidden:
            raise Forbidden(403, "Forbidden", "no")
        if path.endswith(("/processingelements", "/parallelregions")):
            return {"items": []}
        if not path.endswith("/configmaps"):
            raise NotFound(404, "NotFound", path)
        data = {names.STAGES_KEY: json.dumps([stage.to_wire() for stage in stages()])}
        return {"items": [{"metadata": {"name": names.job_config_map("flights")}, "data": data}]}

    async def apply(self, path: str, body: Object, manager: str, **query: str) -> Object:
        """Take an object, in which nobody else has set anything."""
        if "dryRun" not in query:
            self.stored.append(path)
        return body


class NoJob(OneJob):
    """An API server without jobs; `answer`: what it says of a Job that is applied, dry or not."""

    def __init__(self, answer: Exception | None = None) -> None:
        super().__init__()
        self._answer = answer

    async def find(self, path: str, **query: str) -> Object | None:
        """Return nothing."""
        return None

    async def apply(self, path: str, body: Object, manager: str, **query: str) -> Object:
        """Take an object, unless it is a Job that is refused."""
        if self._answer and path == JOB.path("default", "flights"):
            raise self._answer
        return await super().apply(path, body, manager, **query)


def run(
    client: OneJob,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    adl: Adl | None = None,
) -> Any:
    """Run a command with an application, else one whose `read` and `clean` are one stage."""

    @asynccontextmanager
    async def connected(_: object) -> AsyncIterator[Cluster]:
        yield Cluster(client, "default")

    monkeypatch.setattr(_plan, "connected", connected)
    monkeypatch.setattr(_submit, "connected", connected)
    file = folder / "flights.zip"
    described = (adl or stateful()).model_dump_json(by_alias=True)
    file.write_bytes(_zip({ADL_FILE: described.encode()}))
    return CliRunner().invoke(app, [command, str(file)])


@pytest.mark.parametrize("command", ["plan", "submit"])
def test_nothing_is_uploaded_of_what_would_be_refused(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = OneJob()
    result = run(client, tmp_path, monkeypatch, command)
    assert result.exit_code == 1
    said = "the operator would refuse this: operator clean would move from stage clean to stage"
    assert said in " ".join(result.output.split())
    assert client.stored == []


def test_a_job_that_may_not_be_looked_into_is_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = OneJob(hidden=True)
    run(client, tmp_path, monkeypatch, "submit")
    assert JOB.path("default", "flights") in client.stored


@pytest.mark.parametrize("method", ["find", "get", "apply"])
def test_an_api_server_in_trouble_leaves_no_check_out(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them the bundle of a job that runs would be replaced by one that is refused."""

    async def troubled(*_: object, **__: object) -> Object:
        raise ApiError(503, "ServiceUnavailable", "try again")

    client = OneJob()
    monkeypatch.setattr(client, method, troubled)
    result = run(client, tmp_path, monkeypatch, "submit")
    assert "503 ServiceUnavailable: try again" in result.output
    assert client.stored == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Forbidden(403, "Forbidden", "a policy says no"), "a policy says no"),
        (
            NotFound(404, "NotFound", "the server could not find the requested resource"),
            "install the operator first",
        ),
    ],
)
def test_no_bundle_is_left_behind_by_a_job_that_is_not_taken(
    answer: ApiError, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = NoJob(answer)
    result = run(client, tmp_path, monkeypatch, "submit")
    assert result.exit_code == 1
    assert why in " ".join(result.output.split())
    assert client.stored == []


def test_a_new_job_is_checked_as_the_operator_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is submitted, only its status says that it never runs."""
    whole = application()
    read, clean, work, show = whole.operators
    for adl, why in (
        (whole.model_copy(update={"operators": [read, clean, work]}), "has no sink"),
        (
            whole.model_copy(
                update={
                    "operators": [read, clean, work, show.model_copy(update={"inputs": ["rows"]})]
                }
            ),
            "region work has no operator that leads to a sink",
        ),
    ):
        client = NoJob()
        result = run(client, tmp_path, monkeypatch, "submit", adl)
        assert result.exit_code == 1
        assert why in " ".join(result.output.split())
        assert client.stored == []
    client = NoJob()
    run(client, tmp_path, monkeypatch, "submit")
    assert client.stored[-1] == JOB.path("default", "flights")


def test_a_job_that_was_never_planned_is_checked_as_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was submitted before it was refused."""
    monkeypatch.setattr("tests.sdk.test_cli_refusal.stages", tuple)
    client = OneJob()
    without = application().model_copy(update={"operators": application().operators[:3]})
    result = run(client, tmp_path, monkeypatch, "submit", without)
    assert "has no sink" in " ".join(result.output.split())
    assert client.stored == []


def test_nothing_is_submitted_onto_a_job_that_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server takes it, and the operator would delete it, the new bundle included."""
    client = OneJob(deletionTimestamp="2026-01-01T00:00:00Z")
    result = run(client, tmp_path, monkeypatch, "submit")
    assert result.exit_code == 1
    assert "job flights is being deleted" in " ".join(result.output.split())
    assert client.stored == []


async def test_a_job_that_is_deleted_meanwhile_is_not_called_submitted() -> None:
    class Going(OneJob):
        async def apply(self, path: str, body: Object, manager: str, **query: str) -> Object:
            gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
            return {**body, "metadata": {**body["metadata"], **gone}}

    spec = {"bundle": {"configMap": {"name": "b"}}}
    with pytest.raises(CommandError, match="job flights is being deleted"):
        await _submit.apply(Cluster(Going(), "default"), "flights", spec, "d")
