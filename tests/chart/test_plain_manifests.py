"""The commands of docs/operate/install.md for those who have no Helm."""

import base64
import re
import ssl
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/operate/install.md"


def test_certificate_is_what_the_api_server_asks_for(tmp_path: Path) -> None:
    """It is of the Service's name, fits its key, and is in each APIService."""
    section = PAGE.read_text().partition("## Without Helm")[2]
    (commands,) = re.findall(r"```sh\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=tmp_path, check=True, capture_output=True
    )
    items = list(yaml.safe_load_all((tmp_path / "streamgraft.yaml").read_text()))
    services = [item["spec"] for item in items if item["kind"] == "APIService"]
    assert len(services) == 3
    for spec in services:
        authority = base64.b64decode(spec["caBundle"]).decode()
        host = f"{spec['service']['name']}.{spec['service']['namespace']}.svc"
        assert shakes_hands(tmp_path, authority, host)


def shakes_hands(folder: Path, authority: str, host: str) -> bool:
    """Return whether a client that trusts the authority takes the server for this host."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    client = ssl.create_default_context(cadata=authority)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    done = set[int]()
    for number in (0, 1, 0, 1, 0, 1):
        try:
            ends[number].do_handshake()
        except ssl.SSLWantReadError:
            continue
        done.add(number)
    return done == {0, 1}
