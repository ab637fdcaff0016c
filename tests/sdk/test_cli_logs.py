"""`streamgraft logs` on an API server that is played."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl

import pytest
import yaml
from tests.serving import serving
from typer.testing import CliRunner, Result

from streamgraft.cli._app import app
from streamgraft_common import names

PES = {"j-0-1": "j-0", "j-1-1": "j-1", "j-warm-a": "j-1", "j-10-1": "j-10", "j-warm-b": None}
"""The processing element of each pod of job j; none has adopted the last one."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0].removeprefix("/api/v1/namespaces/default/pods")
        if path:
            self._answer(f"line of {path.split('/')[1]}\n")
            return
        labels = {
            pod: {names.LABEL_JOB: "j"} | ({names.LABEL_PE: pe} if pe else {})
            for pod, pe in PES.items()
        }
        items = [{"metadata": {"name": pod, "labels": has}} for pod, has in labels.items()]
        self._answer(json.dumps({"items": items}))

    def _answer(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Flaky(_Handler):
    """One pod, whose log breaks off, then ends while it runs; then the pod is gone."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        path, _, query = self.path.removeprefix("/api/v1/namespaces/default/pods").partition("?")
        logs = len(self.asked)
        if path.endswith("/log"):
            self.asked.append(query)
            if logs == 0:
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b"before\n")
                return
            self._answer(f"line {logs}\n")
        elif path:
            phase = "Running" if logs < 3 else "Succeeded"
            self._answer(json.dumps({"metadata": {"name": "j-0-1"}, "status": {"phase": phase}}))
        else:
            item = {"metadata": {"name": "j-0-1", "labels": {names.LABEL_JOB: "j"}}}
            self._answer(json.dumps({"items": [item] if logs < 3 else []}))


class _Starting(_Handler):
    """The container of one pod is not there yet."""

    def do_GET(self) -> None:
        if "/j-1-1/log" in self.path:
            self.send_error(400, "waiting to start")
        else:
            super().do_GET()


def logs(file: Path, handler: type[BaseHTTPRequestHandler], *arguments: str) -> Result:
    """Run the command on an API server."""
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        content = {
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        file.write_text(yaml.safe_dump(content))
        result = CliRunner().invoke(app, ["--kubeconfig", str(file), "logs", *arguments])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("pe", ["1", "j-1"])
def test_a_processing_element_has_the_pods_that_it_adopted(tmp_path: Path, pe: str) -> None:
    """Those of the warm pool keep their names. `watch` and `top` show the name of the element."""
    result = logs(tmp_path / "config", _Handler, "j", pe)
    assert result.stdout.splitlines() == [f"{pod}: line of {pod}" for pod in ("j-1-1", "j-warm-a")]


def test_a_pod_that_starts_keeps_no_other_back(tmp_path: Path) -> None:
    result = logs(tmp_path / "config", _Starting, "j")
    others = sorted(pod for pod in PES if pod != "j-1-1")
    assert result.stdout.splitlines() == [f"{pod}: line of {pod}" for pod in others]
    assert "j-1-1: " in result.stderr


def test_a_log_that_breaks_off_is_followed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamgraft.cli._logs._LOOK_SECONDS", 0.2)
    result = logs(tmp_path / "config", _Flaky, "j", "--follow", "--tail", "7")
    assert result.stdout.splitlines() == [
        f"j-0-1: {line}" for line in ("before", "line 1", "line 2")
    ]
    assert "j-0-1: " in result.stderr
    assert "is left out" in result.stderr
    asked = [dict(parse_qsl(query)) for query in _Flaky.asked]
    assert [query["tailLines"] for query in asked] == ["7", "0", "0"]
    assert {query["container"] for query in asked} == {"pe"}, "there may be sidecars"
