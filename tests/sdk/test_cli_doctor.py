"""`doctor` before an API server that shows a tenant no more than Kubernetes' own roles do."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from tests.serving import JsonHandler, serving
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_common import names
from streamgraft_common.resources import KINDS
from streamgraft_local.resources import definitions, path_of
from streamgraft_operator.manifests.autoscaler import without_tolerance

SPACE = "namespaces/n"
REGION = {
    "metadata": {"name": "j-r", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"job": "j"},
}
JOB = {"metadata": {"name": "j"}, "status": {"phase": "Healthy"}}
SHOWN: dict[str, Any] = {
    "/version": {"gitVersion": "v1.34.1"},
    f"/apis/{names.API_VERSION}": {"resources": [{"name": kind.plural} for kind in KINDS]},
    f"/apis/{names.API_VERSION}/{SPACE}/jobs": {"items": [JOB]},
    f"/apis/{names.API_VERSION}/{SPACE}/parallelregions": {"items": [REGION]},
    f"/apis/autoscaling/v2/{SPACE}/horizontalpodautoscalers": {"items": []},
}
FORBIDDEN = {"kind": "Status", "reason": "Forbidden", "message": "forbidden"}


class ApiServer(JsonHandler):
    """Shows what is in the namespace, and forbids all that is outside of it."""

    protocol_version = "HTTP/1.1"
    shown = SHOWN
    tried: ClassVar[list[str]] = []
    """Where HPAs were created."""

    def do_GET(self) -> None:
        """Answer a request for an object, or a list."""
        found = self.shown.get(self.path)
        self.answer(403 if found is None else 200, FORBIDDEN if found is None else found)

    def do_POST(self) -> None:
        """Answer a SelfSubjectAccessReview, or an HPA as `autoscaler` says."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body["kind"] == "SelfSubjectAccessReview":
            self.answer(201, {"status": {"allowed": True}})
        else:
            self.tried.append(self.path)
            self.answer(*self.autoscaler(body))

    @staticmethod
    def autoscaler(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the answer to one who creates an HPA."""
        return 403, FORBIDDEN


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of who is shown `ApiServer.shown`."""
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), ApiServer)) as server:
        cluster = {"server": f"http://127.0.0.1:{server.server_port}"}
        context = {"cluster": "c", "user": "u", "namespace": "n"}
        named = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": context}],
        }
        file = tmp_path / "kubeconfig"
        file.write_text(yaml.safe_dump({**named, "current-context": "c"}))
        yield file


def examined(kubeconfig: Path) -> tuple[int, dict[str, str]]:
    """Return the exit code, and the state of each check."""
    arguments = ["--kubeconfig", str(kubeconfig), "doctor", "-o", "json"]
    result = CliRunner().invoke(app, arguments)
    found = json.loads(result.stdout)
    return result.exit_code, {check["name"]: check["state"] for check in found}


def test_what_is_forbidden_is_not_missing(kubeconfig: Path) -> None:
    """A tenant of a healthy cluster learns of no fault."""
    code, states = examined(kubeconfig)
    assert code == 0
    hidden = ("custom.metrics.k8s.io", "external.metrics.k8s.io")
    for name in (*hidden, "Prometheus", "Resource definitions", "Operator"):
        assert states[name] == "unknown"


def test_definitions_are_compared_with_those_of_this_release(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = {path_of(item): deepcopy(item) for item in definitions()}
    monkeypatch.setattr(ApiServer, "shown", SHOWN | installed)
    assert examined(kubeconfig)[1]["Resource definitions"] == "good"
    del next(iter(installed.values()))["metadata"]["annotations"]  # as before they had ids
    code, states = examined(kubeconfig)
    assert (code, states["Resource definitions"]) == (1, "bad")


def test_definitions_of_helm_are_upgraded_by_helm(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = {"meta.helm.sh/release-name": "mine", "meta.helm.sh/release-namespace": "ours"}
    installed = {path_of(item): deepcopy(item) for item in definitions()}
    for item in installed.values():
        item["metadata"]["annotations"] = owner
    monkeypatch.setattr(ApiServer, "shown", SHOWN | installed)
    result = CliRunner().invoke(app, ["--kubeconfig", str(kubeconfig), "doctor"])
    assert "helm upgrade mine -n ours" in result.stdout
    assert "kubectl apply" not in result.stdout


def test_an_api_server_without_the_gates(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses minReplicas 0, as Kubernetes 1.34 does, and drops tolerances. It keeps no HPA."""
    refusal = "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body["spec"]["minReplicas"] == 0:
            return 422, {"kind": "Status", "reason": "Invalid", "message": refusal}
        return 201, without_tolerance(body)

    monkeypatch.setattr(ApiServer, "autoscaler", staticmethod(answer))
    monkeypatch.setattr(ApiServer, "tried", [])
    code, states = examined(kubeconfig)
    assert (code, states["Scale to zero"], states["Small steps of HPAs"]) == (0, "good", "unknown")
    path = f"/apis/autoscaling/v2/{SPACE}/horizontalpodautoscalers?dryRun=All"
    assert ApiServer.tried == [path, path]
    sleeper = {**REGION, "spec": {"job": "j", "autoscaling": {"minWidth": 0}}}
    regions = {f"/apis/{names.API_VERSION}/{SPACE}/parallelregions": {"items": [sleeper]}}
    monkeypatch.setattr(ApiServer, "shown", SHOWN | regions)
    code, states = examined(kubeconfig)
    assert (code, states["Scale to zero"]) == (1, "bad")


def test_it_asks_all_that_it_can_at_once(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other fifty questions would take seconds where the API server is far away."""
    asking, most = 0, 0
    lock = threading.Lock()

    def counted(answer: Callable[[ApiServer], None]) -> Callable[[ApiServer], None]:
        def do(handler: ApiServer) -> None:
            nonlocal asking, most
            with lock:
                asking += 1
                most = max(most, asking)
            time.sleep(0.1)  # as the way there and back
            answer(handler)
            with lock:
                asking -= 1

        return do

    monkeypatch.setattr(ApiServer, "do_GET", counted(ApiServer.do_GET))
    monkeypatch.setattr(ApiServer, "do_POST", counted(ApiServer.do_POST))
    examined(kubeconfig)
    assert most >= 10
