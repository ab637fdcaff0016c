"""The rights that `doctor` looks for are those that the commands take; a role has them all."""

import base64
import json
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml
from tests.rights import Use, allows, use_of, uses_of
from tests.sdk.test_cli import bundle
from tests.serving import JsonHandler, serving
from typer.testing import CliRunner, Result

from streamgraft.cli import _logs
from streamgraft.cli._app import app
from streamgraft.cli._doctor_checks import RIGHTS
from streamgraft_common import names
from streamgraft_common.access import DISCOVERY, EDIT, SYSTEM_NAMESPACE, VIEW
from streamgraft_common.kinds import API_SERVICE
from streamgraft_common.resources import KINDS, TEST_SUITE
from streamgraft_local.pki import ADAPTER_HOST, authority, issue

METRICS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/n/parallelregions.streamgraft.io"
SIGNALS = API_SERVICE.path("", "v1beta2.custom.metrics.k8s.io")
CORE, OURS = "/api/v1/namespaces/n", f"/apis/{names.API_VERSION}/namespaces/n"
OF_JOB = {names.LABEL_JOB: "j"}
SPEC = {"bundle": {"configMap": {"name": "j-bundle"}}}
HAS: dict[str, Any] = {
    f"{OURS}/jobs/j": {"spec": SPEC, "status": {}},
    f"{OURS}/parallelregions/j-r": {
        "spec": {"job": "j", "region": "r", "key": ["k"], "width": 1, "maxWidth": 4}
    },
    f"{OURS}/savepoints/s": {
        "spec": {"job": "j"},
        "status": {"phase": "Completed", "jobSpec": SPEC, "format": 1},
    },
    f"{OURS}/testsuites/t": {"spec": {}, "status": {"phase": "Passed"}},
    f"{CORE}/configmaps/{names.job_config_map('j')}": {"data": {names.PORT_LABELS_KEY: "{}"}},
    f"{CORE}/configmaps/j-bundle": {"binaryData": {names.BUNDLE_KEY: ""}},
    f"{CORE}/pods/p": {"status": {"phase": "Succeeded"}},
    f"{METRICS}/j-r/{names.EXPLANATION}": {"job": "j", "region": "r"},
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
    "explain": "explain region j-r -o json",
    "console": "console --adapter ADAPTER",
    "savepoint create": "savepoint create j --name new",
    "savepoint list": "savepoint list",
    "savepoint restore": "savepoint restore s --yes",
    "savepoint delete": "savepoint delete s",
    "suite": "suite SUITE --bundle BUNDLE",
    "doctor": "doctor",
}
ANYWAY = {
    # Of the claim of checkpoints nothing is said to whom it is not shown.
    ("", "persistentvolumeclaims", "list"),
    # Nor what the API server would make of an HPA.
    ("autoscaling", "horizontalpodautoscalers", "create"),
}
OUTSIDE = {
    # `doctor` says that it may not see them.
    ("apiextensions.k8s.io", "customresourcedefinitions", "get"),
    ("apps", "deployments", "get"),
    ("coordination.k8s.io", "leases", "get"),
    ("", "pods", "list"),
    # `plan` leaves out how many CPUs are free.
    ("", "nodes", "list"),
    ("metrics.k8s.io", "nodes", "list"),
}
"""What commands ask for outside of the namespace, and do without."""
EVERYBODY = re.compile(r"/version|/apis/[^/]+/[^/]+|/apis/authorization.k8s.io/.*reviews")
"""Paths that Kubernetes itself gives whomever it knows."""
SUITES = f"labelSelector={names.LABEL_TEST_SUITE}"
"""What chooses the pods and results of a suite: those of its last run are gone."""
WRITING = {"create", "update", "patch", "delete", "deletecollection"}


@dataclass
class Seen:
    """What a command has asked for."""

    used: set[Use] = field(default_factory=set)
    """In its namespace."""
    refused: set[Use] = field(default_factory=set)
    tickets: int = 0
    """From the metrics adapter itself, as the kubeconfig's user."""


class ApiServer(JsonHandler):
    """Serves one namespace to somebody with the role streamgraft-edit there, and no other rights
    than everybody has."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, Any]
    seen: Seen

    def do_GET(self) -> None:
        """Answer with an object, with those of a collection, or with a log."""
        at = urlsplit(self.path).path
        if (verb := self._note("GET")) is None:
            self._refuse()
        elif at == "/version":
            self.answer(200, {"gitVersion": "v1.34.1"})
        elif at == f"/apis/{names.API_VERSION}":
            self.answer(200, {"resources": []})
        elif verb == "list":
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
        body = self._body()
        if self._note("POST") is None:
            self._refuse()
        elif "name" in body.get("metadata", {}):
            self._store(f"{urlsplit(self.path).path}/{body['metadata']['name']}", body)
        else:
            self.answer(201, {"status": {"allowed": True}})

    def do_PATCH(self) -> None:
        """Apply an object, which takes the right to create it where it is not there."""
        at, body = urlsplit(self.path).path, self._body()
        verbs = [self._note("PATCH")]
        if "apply" in self.headers["Content-Type"] and at not in self.objects:
            verbs.append(self._note("POST", at.rpartition("/")[0]))
        if None in verbs:
            self._refuse()
        else:
            self._store(at, body)

    def do_DELETE(self) -> None:
        """Delete an object, if it is there."""
        self._body()
        if self._note("DELETE") is None:
            self._refuse()
            return
        self.answer(200 if self.objects.pop(urlsplit(self.path).path, None) else 404, {})

    def _note(self, method: str, path: str | None = None) -> str | None:
        """Note a request, and return its verb; None: it is forbidden."""
        place = urlsplit(path or self.path)
        if EVERYBODY.fullmatch(place.path):
            return "get"
        use = use_of(method, place.path, dict(parse_qsl(place.query)))
        inside = "/namespaces/n/" in place.path
        if inside:
            self.seen.used.add(use)
        name = place.path.rpartition("/")[2]
        if allows(EDIT if inside else DISCOVERY, use, name):
            return use[2]
        self.seen.refused.add(use)
        return None

    def _refuse(self) -> None:
        self.answer(403, {"reason": "Forbidden", "message": f"{self.path} is forbidden"})

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


class Adapter(JsonHandler):
    """Gives tickets for the console."""

    seen: Seen

    def do_POST(self) -> None:
        """Give a ticket to whom the token stands for."""
        self.seen.tickets += self.headers["Authorization"] == "Bearer t"
        self.answer(200, {"ticket": "good-once"})


@contextmanager
def adapter(folder: Path, seen: Seen) -> Iterator[tuple[str, str]]:
    """Serve the metrics adapter at a forwarded port; the URL, and the PEM of its own authority."""
    signer = authority("adapter")
    issue(signer, "adapter", hosts=[ADAPTER_HOST]).save(folder, "adapter")
    signer.save(folder, "authority")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "adapter.crt", folder / "adapter.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Adapter,), {"seen": seen}))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server):
        yield f"https://127.0.0.1:{server.server_port}", (folder / "authority.crt").read_text()


def invoked(command: str, words: dict[str, str], folder: Path) -> tuple[Result, Seen]:
    """Run a command; return what came of it, and what it asked for."""
    seen = Seen()
    objects = {path: _named(path, deepcopy(item)) for path, item in HAS.items()}
    handler = type("Handler", (ApiServer,), {"objects": objects, "seen": seen})
    with (
        adapter(folder, seen) as (url, signer),
        serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server,
    ):
        service = {"name": names.ADAPTER, "namespace": SYSTEM_NAMESPACE}
        bundled = base64.b64encode(signer.encode()).decode()
        objects[SIGNALS] = {"spec": {"service": service, "caBundle": bundled}}
        context = {"cluster": "c", "user": "u", "namespace": "n"}
        own = {"server": f"http://127.0.0.1:{server.server_port}"}
        config = {
            "clusters": [{"name": "c", "cluster": own}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": context}],
        }
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump({**config, "current-context": "c"}))
        arguments = [(words | {"ADAPTER": url}).get(it, it) for it in command.split()]
        result = CliRunner().invoke(app, ["--kubeconfig", str(file), *arguments])
    return result, seen


def test_a_cut_is_not_deleted_like_any_savepoint(
    words: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollback without it would make records final twice."""
    cut = {"spec": {"job": "j", "consistentRegion": "r"}}
    monkeypatch.setitem(HAS, f"{OURS}/savepoints/s", cut)
    result, seen = invoked("savepoint delete s", words, tmp_path)
    assert result.exit_code == 1
    assert "kubectl delete savepoint s" in " ".join(result.output.split())
    assert {verb for _, _, verb in seen.used} == {"get"}


def test_the_rights_are_those_that_the_commands_take(
    words: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is missing, and none is asked for that no command takes."""
    monkeypatch.setattr(_logs, "_LOOK_SECONDS", 0.01)
    ran = {name: invoked(text, words, tmp_path) for name, text in COMMANDS.items()}
    assert [name for name, (result, _) in ran.items() if "forbidden" in result.output] == []
    refused = set[Use]().union(*(seen.refused for _, seen in ran.values()))
    assert refused <= OUTSIDE | ANYWAY
    used = {name: seen.used for name, (_, seen) in ran.items()}
    rights = {
        (right.group, "/".join(filter(None, (right.resource, right.subresource))), right.verb)
        for right in RIGHTS
    }
    assert [name for name, uses in used.items() if not uses] == ["console"]
    taken = set[Use]().union(*used.values()) - ANYWAY
    assert taken - rights == set()
    assert rights - taken == set()
    reading = [used[name] for name in ("watch", "top", "ports", "logs", "explain", "doctor")]
    for use in set[Use]().union(*reading) - ANYWAY:
        assert allows(VIEW, use), use
    assert all(allows(EDIT, right) for right in rights)


def test_the_console_is_known_by_the_certificate_that_everybody_may_see(
    words: dict[str, str], tmp_path: Path
) -> None:
    """A forwarded port is all it takes besides: the ticket is the user's."""
    result, seen = invoked(COMMANDS["console"], words, tmp_path)
    assert result.exit_code == 0, result.output
    assert result.output.endswith("/console/#ticket=good-once\n")
    assert seen.tickets == 1


def test_who_may_not_see_the_certificate_learns_what_is_missing(
    words: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.sdk.test_cli_rights.DISCOVERY", ())
    result, seen = invoked(COMMANDS["console"], words, tmp_path)
    assert (result.exit_code, seen.tickets) == (1, 0)
    assert "APIService v1beta2.custom.metrics.k8s.io" in result.output
    assert "streamgraft-discovery" in result.output


def test_without_an_address_it_says_which_right_a_forwarded_port_takes(
    words: dict[str, str], tmp_path: Path
) -> None:
    result, _ = invoked("console", words, tmp_path)
    assert result.exit_code == 1
    assert f"RoleBinding in {SYSTEM_NAMESPACE} to the Role streamgraft-console" in result.output


def test_who_views_changes_nothing_and_who_edits_may_change_all_that_is_ours() -> None:
    """But never a status, which is the operator's."""
    assert {verb for _, _, verb in uses_of(VIEW)} & WRITING == set()
    for kind in KINDS:
        assert (names.GROUP, kind.plural, "watch") in uses_of(VIEW)
        assert (names.GROUP, kind.plural, "patch") in uses_of(EDIT)
    assert not [use for use in uses_of(EDIT) if use[1].endswith("/status")]


def test_an_adapter_of_another_release_explains_nothing(
    words: dict[str, str], tmp_path: Path
) -> None:
    """It knows no such resource; that is not the region's absence."""
    result, _ = invoked("explain region other", words, tmp_path)
    assert result.exit_code == 1
    assert "no metrics adapter of this release" in result.output
