"""`streamgraft logs` on an API server that is played."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml
from tests.serving import serving
from typer.testing import CliRunner

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


def test_a_processing_element_has_the_pods_that_it_adopted(tmp_path: Path) -> None:
    """Those of the warm pool keep their names."""
    file = tmp_path / "config"
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), _Handler)) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        content = {
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        file.write_text(yaml.safe_dump(content))
        result = CliRunner().invoke(app, ["--kubeconfig", str(file), "logs", "j", "1"])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [f"{pod}: line of {pod}" for pod in ("j-1-1", "j-warm-a")]
