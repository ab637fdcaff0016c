"""The rights that `doctor` looks for are those that the commands take; a role has them all."""

import json
from copy import deepcopy
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml
from tests.rights import Use, use_of, uses_of
from tests.sdk.test_cli import bundle
from tests.serving import JsonHandler, serving
from typer.testing import CliRunner

from streamgraft.cli import _logs
from streamgraft.cli._app import app
from streamgraft.cli._doctor_checks import RIGHTS
from streamgraft_common import names
from streamgraft_common.access import EDIT, VIEW
from streamgraft_common.resources import KINDS, TEST_SUITE

CORE, OURS = "/api/v1/namespaces/n", f"/apis/{names.API_VERSION}/namespaces/n"
OF_JOB = {names.LABEL_JOB: "j"}
SPEC = {"bundle": {"configMap": {"name": "j-bundle"}}}
HAS: dict[str, Any] = {
    f"{OURS}/jobs/j": {"spec": SPEC, "status": {}},
    f"{OURS}/parallelregions/j-r": {
        "spec": {"job": "j", "region": "r", "key": ["k"], "width": 1, "maxWidth": 4}
    },
    f"{OURS}/savepoints/s": {"spec": {"job": "j"}, "status": {"jobSpec": SPEC, "format": 1}},
    f"{OURS}/testsuites/t": {"spec": {}, "status": {"phase": "Passed"}},
    f"{CORE}/configmaps/{names.job_config_map('j')}": {"data": {names.PORT_LABELS_KEY: "{}"}},
    f"{CORE}/configmaps/j-bundle": {"binaryData": {names.BUNDLE_KEY: ""}},
    f"{CORE}/configmaps/{names.junit_config_map('t')}": {"data": {"junit.xml": "<a/>"}},
    f"{CORE}/pods/p": {"status": {"phase": "Succeeded"}},
}
BECOMES: dict[str, Any] = {
    "savepoints": {"phase": "Completed", "durationSeconds": 1.0},
    "testsuites": {"phase": "Passed"},
}
"""What is created of these ends well at once."""
COMMANDS = {
    "submit": "submit BUNDLE --name new",
    "submit again": "submit BUNDLE --name j",
    "plan": "plan BUNDLE --name j",
    "cancel": "cancel j",
    "scale": "scale j r 2",
    "scale, where there is no such region": "scale j other 2",
    "watch": "watch --once",
    "top": "top",
    "ports": "ports j",
    "logs": "logs j",
    "logs of what runs": "logs j --follow",
    "explain": "explain region j-r --adapter ADAPTER -o json",
    "savepoint create": "savepoint create j --name new",
    "savepoint list": "savepoint list",
    "savepoint restore": "savepoint restore s",
    "savepoint delete": "savepoint delete s",
    "suite": "suite SUITE --bundle BUNDLE",
    "doctor": "doctor",
}
ANYWAY = {
    # Of the claim of checkpoints nothing is said to whom it is not shown.
    ("", "persistentvolumeclaims", "list"),
}
SUITES = f"labelSelector={names.LABEL_TEST_SUITE}"
"""What chooses the pods and results of a suite: those of its last run are gone."""
WRITING = {"create", "update", "patch", "delete", "deletecollection"}


class ApiServer(JsonHandler):
    """Serves one namespace and the metrics adapter, and notes what is asked for in the former."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, Any]
    used: set[Use]

    def do_GET(self) -> None:
        """Answer with an object, with those of a collection, or with a log."""
        at = urlsplit(self.path).path
        if at.startswith("/adapter"):
            self.answer(200, {"name": "j-r", "job": "j", "region": "r"})
        elif at == "/version":
            self.answer(200, {"gitVersion": "v1.34.1"})
        elif at == f"/apis/{names.API_VERSION}":
            self.answer(200, {"resources": []})
        elif self._note("GET") == "list":
            below = [item for path, item in self.objects.items() if path.rpartition("/")[0] == at]
            self.answer(200, {"items": [] if SUITES in self.path else below})
        elif at.endswith("/log"):
            self.answer(200, {})
        elif found := self.objects.get(at):
            if found is self.objects.get(f"{CORE}/pods/p"):
                del self.objects[at]  # who follows it is done then
            self.answer(200, found)
        else:
            self.answer(404, {"message": "the server could not find it"})

    def do_POST(self) -> None:
        """Create an object; everything is allowed."""
        self._note("POST")
        body = self._body()
        if "name" in body.get("metadata", {}):
            self._store(f"{urlsplit(self.path).path}/{body['metadata']['name']}", body)
        else:
            self.answer(201, {"status": {"allowed": True}})

    def do_PATCH(self) -> None:
        """Apply an object, which takes the right to create it where it is not there."""
        self._note("PATCH")
        at = urlsplit(self.path).path
        if "apply" in self.headers["Content-Type"] and at not in self.objects:
            self._note("POST", at.rpartition("/")[0])
        self._store(at, self._body())

    def do_DELETE(self) -> None:
        """Delete an object, if it is there."""
        self._note("DELETE")
        self._body()
        self.answer(200 if self.objects.pop(urlsplit(self.path).path, None) else 404, {})

    def _note(self, method: str, path: str | None = None) -> str:
        """Note a request in the namespace, and return its verb."""
        place = urlsplit(path or self.path)
        if not place.path.startswith((CORE, OURS, "/apis/autoscaling/v2/namespaces/n/")):
            return "get" if method == "GET" else ""
        use = use_of(method, place.path, dict(parse_qsl(place.query)))
        self.used.add(use)
        return use[2]

    def _store(self, path: str, body: dict[str, Any]) -> None:
        metadata = {**body.get("metadata", {}), "uid": "u", "generation": 1}
        status = BECOMES.get(path.split("/")[-2], {})
        self.objects[path] = _named(path, {**body, "metadata": metadata, "status": status})
        self.answer(200, self.objects[path])

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return body


def _named(path: str, item: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        "name": path.rpartition("/")[2],
        "labels": OF_JOB,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "uid": "u",
    }
    return {**item, "metadata": metadata | item.get("metadata", {})}


@pytest.fixture
def words(tmp_path: Path) -> dict[str, str]:
    """What stands for files in commands."""
    suite = tmp_path / "suite.yaml"
    suite.write_text(yaml.safe_dump(TEST_SUITE.manifest("t", "n", {"scenarios": []})))
    return {"BUNDLE": str(bundle(tmp_path)), "SUITE": str(suite)}


def used_by(command: str, words: dict[str, str], folder: Path) -> set[Use]:
    """Return what a command takes in its namespace."""
    objects = {path: _named(path, deepcopy(item)) for path, item in HAS.items()}
    used = set[Use]()
    handler = type("Handler", (ApiServer,), {"objects": objects, "used": used})
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        context = {"cluster": "c", "user": "u", "namespace": "n"}
        config = {
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": context}],
        }
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump({**config, "current-context": "c"}))
        arguments = [(words | {"ADAPTER": f"{url}/adapter"}).get(it, it) for it in command.split()]
        CliRunner().invoke(app, ["--kubeconfig", str(file), *arguments])
    return used


def test_the_rights_are_those_that_the_commands_take(
    words: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is missing, and none is asked for that no command takes."""
    monkeypatch.setattr(_logs, "_LOOK_SECONDS", 0.01)
    used = {name: used_by(text, words, tmp_path) for name, text in COMMANDS.items()}
    rights = {
        (right.group, "/".join(filter(None, (right.resource, right.subresource))), right.verb)
        for right in RIGHTS
    }
    assert all(used.values())
    taken = set[Use]().union(*used.values()) - ANYWAY
    assert taken - rights == set()
    assert rights - taken == set()
    reading = [used[name] for name in ("watch", "top", "ports", "logs", "explain", "doctor")]
    assert set[Use]().union(*reading) - ANYWAY <= uses_of(VIEW)
    assert rights <= uses_of(EDIT)


def test_who_views_changes_nothing_and_who_edits_may_change_all_that_is_ours() -> None:
    """But never a status, which is the operator's."""
    assert {verb for _, _, verb in uses_of(VIEW)} & WRITING == set()
    for kind in KINDS:
        assert (names.GROUP, kind.plural, "watch") in uses_of(VIEW)
        assert (names.GROUP, kind.plural, "patch") in uses_of(EDIT)
    assert not [use for use in uses_of(EDIT) if use[1].endswith("/status")]
