"""What a restore tells and refuses before it begins, and what it applies."""

import asyncio
import base64
import hashlib
import random
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.test_cli_plan import application
from typer.testing import CliRunner, Result

from streamgraft._builder import _zip
from streamgraft.cli import _restore
from streamgraft.cli._app import app
from streamgraft.cli._cluster import Cluster
from streamgraft.cli._output import CommandError
from streamgraft.cli._restore import announced, notes
from streamgraft_common import names
from streamgraft_common.bundle import ADL_FILE
from streamgraft_common.kube import (
    ApiError,
    Forbidden,
    Invalid,
    KubeClient,
    KubeConfig,
    NotFound,
    Unreachable,
)
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, SavepointStatus
from streamgraft_common.restore import Redistribution

FILE = "/shared/flights.zip"
LARGE = 1_000_000


def test_a_restore_estimates_bytes_and_seconds() -> None:
    work = Redistribution("work", "work", 4, 8, 50_000_000, 100_000_000)
    one, two = announced(work, 1), announced(work, 2)
    assert "the state of 4 key groups (50,000,000 bytes) is dealt out to 8" in one
    assert "100,000,000 bytes are read for it by 1 channels, which takes about 7 s" in one
    assert "by 2 channels, which takes about 4 s" in two


def test_a_restore_says_what_is_done_twice_before_anything_stops() -> None:
    """No savepoint of a job that this version takes has such shards; one that exists may."""
    spec: dict[str, Any] = {"bundle": {"configMap": {"name": "flights-bundle"}}}
    assert notes(SavepointStatus(), [], spec) == []
    (note,) = notes(SavepointStatus(unclean_shards=2), [], spec)
    assert note.startswith("In 2 of the shards a pod died within a batch")
    assert "twice" in note


def bundle(folder: Path, size: int = 0) -> Path:
    """Write a bundle, padded by incompressible bytes, and return its path."""
    file = folder / "flights.zip"
    content = application().model_dump_json(by_alias=True).encode()
    file.write_bytes(_zip({ADL_FILE: content, "noise": random.Random(0).randbytes(size)}))
    return file


class OneSavepoint(KubeClient):
    """A cluster with the savepoint `first` of the job `flights`, which runs."""

    def __init__(self, status: dict[str, Any], **metadata: Any) -> None:
        super().__init__(KubeConfig(server="http://127.0.0.1:1"))
        self.job: Object | None = {"metadata": {"name": "flights"}, "spec": {}}
        self.wrote: list[tuple[str, str, dict[str, Any]]] = []
        """The names, managers and specs of what was applied."""
        self.bundle = b""
        """What the job's ConfigMap has by now."""
        self.faults: list[Exception | signal.Signals] = []
        """What the next questions for a job that was deleted meet."""
        self.refuses: ApiError | None = None
        """How the API server answers whether it would take the new Job."""
        self.tried: list[Object] = []
        """The objects of which it was asked whether it would take them."""
        self._savepoint = {
            "metadata": {"name": "first", **metadata},
            "spec": {"job": "flights"},
            "status": {"phase": "Completed", "format": 1, **status},
        }

    async def find(self, path: str, **query: str) -> Object | None:
        """Return the savepoint, or the job as long as it is there."""
        if "/savepoints/" in path:
            return self._savepoint
        if self.job is None and self.faults:
            if isinstance(fault := self.faults.pop(0), Exception):
                raise fault
            signal.raise_signal(fault)
            await asyncio.sleep(1)
        return self.job

    async def get(self, path: str, **query: str) -> Object:
        """Return the job, or the ConfigMap of its bundle."""
        if "/configmaps/" in path:
            return {"binaryData": {names.BUNDLE_KEY: base64.b64encode(self.bundle).decode()}}
        assert self.job
        return self.job

    async def delete(self, path: str, **query: str) -> Object:
        """Delete the job; there is no bundle of its own."""
        if path != JOB.path("default", "flights"):
            raise NotFound(404, "NotFound", path)
        self.job = None
        return {}

    async def apply(self, path: str, body: Object, manager: str, **query: str) -> Object:
        """Take an object."""
        if query:
            self.tried.append(body)
            return body
        self.wrote.append((body["metadata"]["name"], manager, body.get("spec", {})))
        self.job = body
        return body

    async def create(self, path: str, body: Object, **query: str) -> Object:
        """Say whether a Job would be taken."""
        assert query == {"dryRun": "All"}
        self.tried.append(body)
        if self.refuses:
            raise self.refuses
        return body


def without_application(folder: Path) -> OneSavepoint:
    """Return a cluster in which the bundle of the savepoint is nowhere but in its ConfigMap."""
    saved = bundle(folder).read_bytes()
    place = {"bundle": {"configMap": {"name": "flights-bundle"}}}
    client = OneSavepoint({"jobSpec": place, "bundleDigest": hashlib.sha256(saved).hexdigest()})
    client.bundle = saved
    return client


def restored(
    client: OneSavepoint,
    monkeypatch: pytest.MonkeyPatch,
    *arguments: object,
    answer: str | None = None,
) -> Result:
    """Restore the savepoint; `answer`: what somebody at a terminal says, None: --yes."""

    @asynccontextmanager
    async def connected(_: object) -> AsyncIterator[Cluster]:
        yield Cluster(client, "default")

    monkeypatch.setattr(_restore, "connected", connected)
    words = ["savepoint", "restore", "first", *map(str, arguments)]
    return CliRunner().invoke(app, words if answer is not None else [*words, "--yes"], answer)


def refused(client: OneSavepoint, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> str:
    """Return why a restore is refused, which leaves everything as it is."""
    before = client.job
    result = restored(client, monkeypatch, *arguments)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    assert client.job is before
    assert client.wrote == []
    return " ".join(result.output.split())


def test_what_can_not_be_uploaded_is_refused_before_the_job_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = OneSavepoint({"jobSpec": {"bundle": {"file": FILE}}, "bundleDigest": "another"})
    why = refused(client, monkeypatch, bundle(tmp_path, LARGE))
    assert "a ConfigMap carries 900,000" in why
    assert "name it, or a copy of it, after the savepoint" in refused(client, monkeypatch)


@pytest.mark.parametrize("size", [0, LARGE])
def test_a_bundle_that_was_a_file_is_read_from_there_only_if_it_is_too_large(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may have overwritten that file: the job would wait for ever. So it is said."""
    file = bundle(tmp_path, size)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    client = OneSavepoint({"jobSpec": {"bundle": {"file": FILE}}, "bundleDigest": digest})
    result = restored(client, monkeypatch, file)
    assert result.exit_code == 0, result.output
    said = f"reads it from {FILE}" in " ".join(result.output.split())
    uploaded = {name for name, _, _ in client.wrote} == {"flights-bundle", "flights"}
    (place,) = (
        spec["bundle"]
        for _, manager, spec in client.wrote
        if manager == "streamgraft-cli" and "bundle" in spec
    )
    if size:
        assert (said, uploaded) == (True, False)
        assert place == {"file": FILE, "digest": digest}
    else:
        assert (said, uploaded) == (False, True)
        assert place == {"configMap": {"name": "flights-bundle"}, "digest": digest}


def test_without_an_application_the_savepoint_s_own_bundle_is_restored_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later `submit` has overwritten the job's ConfigMap: with what it brought, the state would
    go on in a version that nobody asked for."""
    client = without_application(tmp_path)
    saved, digest = client.bundle, hashlib.sha256(client.bundle).hexdigest()
    client.bundle = bundle(tmp_path, 10).read_bytes()
    why = refused(client, monkeypatch)
    assert f"another one by now (sha256 {hashlib.sha256(client.bundle).hexdigest()})" in why
    assert f"than the savepoint's ({digest}): name the application" in why
    client.bundle = saved
    result = restored(client, monkeypatch)
    assert result.exit_code == 0, result.output
    assert {spec["bundle"]["digest"] for _, _, spec in client.wrote if "bundle" in spec} == {digest}


def test_the_spec_is_that_of_the_savepoint_as_far_as_the_application_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = {
        "bundle": {"configMap": {"name": "flights-bundle"}},
        "parameters": {"limit": "5", "speed": "3"},
        "regions": {"gone": {"width": 2}, "work": {"strategy": "savepoint"}},
        "fusion": {"type": "legacy"},
        "dropState": ["old"],
        "changedStreams": ["clicks"],
    }
    client = OneSavepoint({"jobSpec": spec, "widths": {"work": 3}})
    result = restored(client, monkeypatch, bundle(tmp_path))
    assert result.exit_code == 0, result.output
    (_, uploaded, _), (_, submitter, whole), (_, restorer, kept) = client.wrote
    assert uploaded == submitter == "streamgraft-cli"
    assert restorer == "streamgraft-restore"
    assert whole["parameters"] == {"speed": "3"}
    own = {
        "regions": {"work": {"strategy": "savepoint", "width": 3}},
        "fusion": {"type": "legacy"},
        "savepoint": {"name": "first", "allowDroppedState": False},
    }
    assert kept == own
    assert whole.keys() == own.keys() | {"bundle", "parameters"}


@pytest.mark.parametrize(
    ("status", "metadata", "why"),
    [
        ({}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "savepoint first is being deleted"),
        ({"phase": "Draining"}, {}, "savepoint first is not complete, but Draining"),
    ],
)
def test_a_savepoint_that_goes_or_is_not_complete_cancels_nothing(
    status: dict[str, Any], metadata: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no application is named, and its bundle is looked for in the savepoint."""
    assert why in refused(OneSavepoint(status, **metadata), monkeypatch)


def test_a_job_that_is_replaced_goes_only_if_somebody_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal nobody can; a job that is not there needs no leave."""
    client, file = OneSavepoint({"jobSpec": {}}), bundle(tmp_path)
    unasked = restored(client, monkeypatch, file, answer="")
    assert unasked.exit_code == 1
    assert "job flights in namespace default would be cancelled" in " ".join(unasked.output.split())
    monkeypatch.setattr(_restore, "is_terminal", lambda: True)
    no = restored(client, monkeypatch, file, answer="n\n")
    assert no.exit_code == 1
    assert (
        "Job flights in namespace default is cancelled and started anew from the savepoint. Go on?"
        in no.output
    )
    assert client.job
    assert client.wrote == []
    assert restored(client, monkeypatch, file, answer="y\n").exit_code == 0
    client.job = None
    new = restored(client, monkeypatch, file, answer="")
    assert (new.exit_code, "Go on?" in new.output) == (0, False)


@pytest.mark.parametrize(("given", "seconds"), [((), 480), (("--timeout", "900"), 900)])
def test_a_job_that_does_not_go_in_time_is_waited_for_by_another_run(
    given: tuple[str, ...], seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped by then, so the command says how the new one comes."""
    waited = []

    async def cancel(cluster: Cluster, job: str, timeout_seconds: float) -> bool:
        waited.append(timeout_seconds)
        raise CommandError(f"job {job} is deleted, but not gone")

    monkeypatch.setattr(_restore, "cancel", cancel)
    client = OneSavepoint({"jobSpec": {}})
    why = refused(client, monkeypatch, bundle(tmp_path), *given)
    assert "but not gone, so a new job may not have started: run this command again" in why
    assert waited == [seconds]


def test_the_api_server_may_be_away_while_the_old_job_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old job goes all the same: who gives up then has stopped one and started none."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    client = without_application(tmp_path)
    client.faults = [Unreachable("no answer"), ApiError(503, "ServiceUnavailable", "later")]
    result = restored(client, monkeypatch)
    assert result.exit_code == 0, result.output
    assert "503 ServiceUnavailable: later" in result.output
    assert client.faults == []
    assert [name for name, _, _ in client.wrote] == ["flights-bundle", "flights", "flights"]
    assert {file.name for file in tmp_path.iterdir()} == {"flights.zip"}, "a copy is left"


@pytest.mark.parametrize("fault", [ApiError(401, "Unauthorized", "expired"), signal.SIGINT])
def test_a_restore_that_ends_early_leaves_the_bundle_and_says_how_to_go_on(
    fault: Exception | signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bundle went with the job that was replaced."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    client = without_application(tmp_path)
    client.faults = [fault]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started with & ignores it
    result = restored(client, monkeypatch)
    assert result.exit_code != 0
    assert client.wrote == []
    (kept,) = tmp_path.glob("flights-*.zip")
    assert kept.read_bytes() == client.bundle
    said = "".join(result.output.split())
    assert "anewjobmaynothavestarted" in said
    assert f"runthiscommandagainwith{kept}," in said
    assert restored(client, monkeypatch, kept).exit_code == 0


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Invalid(422, "Invalid", "threading.elastic is for model dynamic only"), "threading"),
        (ApiError(403, "Forbidden", "exceeded quota: few, used: count/jobs=1"), None),
    ],
)
def test_a_job_that_the_cluster_would_not_take_replaces_none(
    answer: ApiError, why: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rules may be others than when the savepoint was taken. In a quota it has the place of the
    job that goes."""
    client = without_application(tmp_path)
    client.refuses = answer
    if why:
        told = refused(client, monkeypatch)
        assert f"would not take the job that replaces flights: 422 Invalid: {why}" in told
    else:
        assert restored(client, monkeypatch).exit_code == 0
    of_bundle, of_job = (item["metadata"] for item in client.tried)
    assert of_bundle["name"] == "flights-bundle"
    assert of_job["generateName"] == "flights-"
    assert "name" not in of_job


def test_a_new_job_that_is_not_taken_leaves_no_bundle_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = without_application(tmp_path)
    client.job = None

    async def refusing(path: str, body: Object, manager: str, **query: str) -> Object:
        assert (path, query) == (JOB.path("default", "flights"), {"dryRun": "All"})
        raise Forbidden(403, "Forbidden", "a policy says no")

    monkeypatch.setattr(client, "apply", refusing)
    assert "a policy says no" in refused(client, monkeypatch)
