"""A Prometheus that is closed: TLS with an authority of its own, client certificates, a password or
a token, and a tenant's header."""

import ssl
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.metrics_adapter.test_load_history_of_prometheus import running
from tests.serving import serving

from streamgraft_local import pki
from streamgraft_metrics_adapter.prometheus.server import CredentialsError, PrometheusServer
from streamgraft_metrics_adapter.prometheus.source import PrometheusSource, SourceError
from streamgraft_metrics_adapter.settings import parse

HASH = "$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay"
"""bcrypt of `test`, as in Prometheus' own guide."""
REQUIRED = ("--prometheus-url=https://p:9090", "--tls-cert=c", "--tls-key=k")


class FakeProxy(HTTPServer):
    """Answers every query with an empty vector, and keeps the headers: as a proxy before Mimir,
    Thanos and the like is met."""

    def __init__(self, folder: Path) -> None:
        self.headers: list[dict[str, str]] = []
        super().__init__(("127.0.0.1", 0), FakeQuery)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
        context.load_verify_locations(folder / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
        self.socket = context.wrap_socket(self.socket, server_side=True)


class FakeQuery(BaseHTTPRequestHandler):
    """One query."""

    server: FakeProxy

    def do_GET(self) -> None:
        """Answer a query."""
        self.server.headers.append(dict(self.headers))
        content = b'{"status": "success", "data": {"resultType": "vector", "result": []}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


def secret(folder: Path, **files: str | bytes) -> Path:
    """Write the files of a mounted Secret; `_` stands for a dot."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name.replace("_", ".")).write_bytes(data)
    return folder


async def asked(server: PrometheusServer) -> None:
    """Ask a query."""
    assert list(await PrometheusSource(server).rows("lag", "up", time.time())) == []


async def test_certificates_token_and_tenant(tmp_path: Path) -> None:
    keys = tmp_path / "pki"
    pki.ensure(keys)
    read = {name: (keys / name).read_bytes() for name in ("ca.crt", "adapter.crt", "adapter.key")}
    with serving(FakeProxy(keys)) as there:
        url = f"https://127.0.0.1:{there.server_port}"
        client = {"tls_crt": read["adapter.crt"], "tls_key": read["adapter.key"]}
        shown = secret(tmp_path / "shown", ca_crt=read["ca.crt"], token="first\n", **client)
        source = PrometheusSource(PrometheusServer(url, shown, {"X-Scope-OrgID": "team"}))
        await source.rows("lag", "up", time.time())
        (shown / "token").write_text("second\n")
        await source.rows("lag", "up", time.time())
        sent = [(item["Authorization"], item["X-Scope-OrgID"]) for item in there.headers]
        assert sent == [("Bearer first", "team"), ("Bearer second", "team")]
        with pytest.raises(SourceError, match=r"(?i)certificate"):
            await asked(PrometheusServer(url, secret(tmp_path / "unknown", **client)))
        anonymous = secret(tmp_path / "anonymous", ca_crt=read["ca.crt"])
        with pytest.raises(SourceError, match="query of lag"):
            await asked(PrometheusServer(url, anonymous))


@pytest.mark.integration
async def test_a_prometheus_with_a_password(tmp_path: Path) -> None:
    """A real one."""
    web = tmp_path / "web.yml"
    web.write_text(f"basic_auth_users:\n  adapter: {HASH}\n")
    with running(tmp_path, f"--web.config.file={web}", auth=("adapter", "test")) as url:
        right = secret(tmp_path / "right", username="adapter", password="test\n")
        await asked(PrometheusServer(url, right))
        wrong = secret(tmp_path / "wrong", username="adapter", password="guess")
        for server in (PrometheusServer(url), PrometheusServer(url, wrong)):
            with pytest.raises(SourceError, match="401"):
                await asked(server)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "has no credentials"),
        ({"tls_crt": "c"}, "one of tls.crt and tls.key only"),
        ({"username": "u"}, "one of username and password only"),
        ({"username": "u", "password": "p", "token": "t"}, "both token and username"),
    ],
)
def test_half_of_it_is_refused(tmp_path: Path, files: dict[str, str], words: str) -> None:
    server = PrometheusServer("https://p:9090", secret(tmp_path / "some", **files))
    with pytest.raises(CredentialsError, match=words):
        PrometheusSource(server)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="has no credentials"):
        PrometheusSource(PrometheusServer("https://p:9090", tmp_path / "none"))


def test_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    given = parse([*REQUIRED, "--prometheus-credentials=/s", "--prometheus-header=X-Team=a=b"])
    assert given.prometheus == PrometheusServer("https://p:9090", Path("/s"), {"X-Team": "a=b"})
    for header in ("X-Team", "X Team=a", "X-Team=a\nb"):
        with pytest.raises(SystemExit):
            parse([*REQUIRED, f"--prometheus-header={header}"])
    assert "no NAME=VALUE" in capsys.readouterr().err
