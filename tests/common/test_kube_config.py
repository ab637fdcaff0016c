"""Finding the API server and the identity."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamgraft_common.kube import KubeClient, Unreachable
from streamgraft_common.kube import config as kube_config
from streamgraft_common.kube.config import ConfigError, account_config, load_config


def kubeconfig(folder: Path) -> Path:
    """Write a kubeconfig with two contexts and return its path."""
    (folder / "ca.crt").write_text("CA")
    (folder / "token").write_text("from-file\n")
    document = {
        "current-context": "one",
        "clusters": [
            {
                "name": "c",
                "cluster": {"server": "https://127.0.0.1:6443/", "certificate-authority": "ca.crt"},
            }
        ],
        "users": [
            {
                "name": "cert",
                "user": {
                    "client-certificate-data": base64.b64encode(b"CERT").decode(),
                    "client-key-data": base64.b64encode(b"KEY").decode(),
                },
            },
            {"name": "token", "user": {"tokenFile": "token"}},
        ],
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "cert"}},
            {"name": "two", "context": {"cluster": "c", "user": "token", "namespace": "team"}},
        ],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return path


def test_current_context(tmp_path: Path) -> None:
    """Files are found beside the kubeconfig, data is decoded."""
    config = load_config(kubeconfig(tmp_path))
    assert config.server == "https://127.0.0.1:6443"
    assert (config.ca_data, config.namespace) == ("CA", "default")
    assert (config.client_certificate, config.client_key) == (b"CERT", b"KEY")


def test_named_context_and_rotated_token(tmp_path: Path) -> None:
    """A token file is read anew every time."""
    config = load_config(kubeconfig(tmp_path), "two")
    assert (config.namespace, config.bearer_token()) == ("team", "from-file")
    (tmp_path / "token").write_text("rotated")
    assert config.bearer_token() == "rotated"


def test_unknown_context(tmp_path: Path) -> None:
    """The error names the context."""
    with pytest.raises(ConfigError, match="three"):
        load_config(kubeconfig(tmp_path), "three")


def test_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to do."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match="streamgraft up"):
        load_config()


def written(folder: Path, user: dict[str, Any], **cluster: str) -> Path:
    """Write a kubeconfig with one context and return its path."""
    parts = {"server": "https://127.0.0.1:6443", **cluster}
    document = {
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": parts}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "me"}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return path


def plugin(folder: Path, *statuses: dict[str, str]) -> dict[str, Any]:
    """Return the user of an exec plugin: a program that answers one status after the other."""
    kind = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    for number, status in enumerate(statuses):
        (folder / f"answer-{number}").write_text(json.dumps({**kind, "status": status}))
    program = folder / "plugin"
    program.write_text(
        "#!/bin/sh\nn=$(cat count 2>/dev/null || echo 0)\necho $((n + 1)) > count\n"
        'cat "$ANSWERS-$n"\n'
    )
    program.chmod(0o755)
    environment = [{"name": "ANSWERS", "value": "answer"}]
    return {"exec": {"apiVersion": kind["apiVersion"], "command": "./plugin", "env": environment}}


def test_exec_plugin_gives_a_token_and_a_new_one_when_it_expires(tmp_path: Path) -> None:
    """A plugin runs in the kubeconfig's folder, and again only for a token that has expired."""
    expired = {"token": "first", "expirationTimestamp": "2020-01-01T00:00:00Z"}
    lasting = {"token": "second", "expirationTimestamp": "2099-01-01T00:00:00Z"}
    config = load_config(written(tmp_path, plugin(tmp_path, expired, lasting)))
    assert [config.bearer_token() for _ in range(3)] == ["second"] * 3
    assert (tmp_path / "count").read_text().strip() == "2"
    assert config.of_bearer("theirs").bearer_token() == "theirs"


def test_exec_plugin_gives_a_certificate(tmp_path: Path) -> None:
    """It takes the place of a certificate in the kubeconfig."""
    user = plugin(tmp_path, {"clientCertificateData": "CERT", "clientKeyData": "KEY"})
    config = load_config(written(tmp_path, user))
    assert (config.client_certificate, config.client_key) == (b"CERT", b"KEY")
    assert config.bearer_token() is None


def test_failing_exec_plugin(tmp_path: Path) -> None:
    """The error has the plugin's own words; nothing goes out without credentials."""
    user = plugin(tmp_path)
    with pytest.raises(ConfigError, match=r"user me .* failed: .*answer-0"):
        load_config(written(tmp_path, user))
    user["exec"]["command"] = "no-such-plugin"
    with pytest.raises(ConfigError, match="no-such-plugin"):
        load_config(written(tmp_path, user))
    with pytest.raises(ConfigError, match="neither a token nor a certificate"):
        load_config(written(tmp_path, plugin(tmp_path, *[{"clientKeyData": "KEY"}] * 9)))


async def test_a_token_that_cannot_be_renewed_is_no_answer(tmp_path: Path) -> None:
    """Whoever watches tries again; and no request goes out without the token."""
    expired = {"token": "first", "expirationTimestamp": "2020-01-01T00:00:00Z"}
    config = load_config(written(tmp_path, plugin(tmp_path, expired)))
    async with KubeClient(config) as client:
        with pytest.raises(Unreachable, match="exec plugin"):
            await client.get("/api")


def token_of_oidc(expires: int) -> str:
    """Return an unsigned JSON web token; only its expiry is looked at here."""
    parts: tuple[dict[str, Any], ...] = ({"alg": "none"}, {"exp": expires}, {})
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    )


def test_auth_provider(tmp_path: Path) -> None:
    """The token of an OIDC provider is sent; one that has expired and can't be renewed is not."""
    settings = {"idp-issuer-url": "https://127.0.0.1:1", "client-id": "me"}
    token = token_of_oidc(4_000_000_000)
    user = {"auth-provider": {"name": "oidc", "config": {**settings, "id-token": token}}}
    assert load_config(written(tmp_path, user)).bearer_token() == token
    user["auth-provider"]["config"] = {**settings, "id-token": token_of_oidc(1_000_000_000)}
    with pytest.raises(ConfigError, match="auth provider oidc of user me"):
        load_config(written(tmp_path, user))
    user["auth-provider"]["name"] = "azure"
    with pytest.raises(ConfigError, match=r"azure of user me .* gave no token"):
        load_config(written(tmp_path, user))


def test_never_anonymous_and_never_somebody_else(tmp_path: Path) -> None:
    """What would be dropped is an error; only plain HTTP (`kubectl proxy`) needs no user."""
    with pytest.raises(ConfigError, match="anonymously"):
        load_config(written(tmp_path, {}))
    with pytest.raises(ConfigError, match="can't follow: as"):
        load_config(written(tmp_path, {"token": "mine", "as": "root"}))
    with pytest.raises(ConfigError, match="password, username"):
        load_config(written(tmp_path, {"username": "me", "password": "secret"}))
    with pytest.raises(ConfigError, match="only HTTP proxies"):
        load_config(written(tmp_path, {"token": "mine"}, **{"proxy-url": "socks5://127.0.0.1:1"}))
    assert load_config(written(tmp_path, {}, server="http://127.0.0.1:8001")).bearer_token() is None


def test_server_name_and_proxy(tmp_path: Path) -> None:
    """Both are as in the kubeconfig."""
    ways = {"proxy-url": "http://127.0.0.1:3128", "tls-server-name": "api"}
    config = load_config(written(tmp_path, {"token": "mine"}, **ways))
    assert (config.proxy, config.tls_server_name) == ("http://127.0.0.1:3128", "api")


def test_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for kubectl, the first file with an entry wins, and missing files do not count."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    paths = [tmp_path / "absent", written(first, {"token": "mine"}), kubeconfig(second)]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
    assert load_config().bearer_token() == "mine"
    assert load_config(context="two").bearer_token() == "from-file"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a pod of another cluster than those of kubeconfig files; return the home directory."""
    account = tmp_path / "account"
    account.mkdir()
    for name, text in {"namespace": "pods\n", "ca.crt": "CA", "token": "pod's"}.items():
        (account / name).write_text(text)
    monkeypatch.setattr(kube_config, "_ACCOUNT", account)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    return tmp_path


def test_in_a_pod_without_kubeconfig_it_is_the_pods_cluster(home: Path) -> None:
    """And its account, for people as for the pod's own process."""
    for config in (load_config(), account_config()):
        assert (config.server, config.namespace) == ("https://10.0.0.1:443", "pods")
        assert config.bearer_token() == "pod's"


def test_in_a_pod_whose_home_may_not_be_looked_into(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of another user: it has no kubeconfig, then."""

    def refuse(path: Path, **_: object) -> os.stat_result:
        if path.name == "config":
            raise PermissionError
        return os.stat(path)

    monkeypatch.setattr(Path, "stat", refuse)
    assert load_config().server == "https://10.0.0.1:443"


def test_in_a_pod_a_kubeconfig_comes_first_for_people(home: Path) -> None:
    """As for kubectl; a pod's own process stays the pod's account, whatever its image has."""
    kubeconfig(home / ".kube")
    assert load_config().server == "https://127.0.0.1:6443"
    assert load_config(context="two").namespace == "team"
    assert account_config().server == "https://10.0.0.1:443"


def test_in_a_pod_what_is_named_is_never_dropped(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than act on another cluster than the one that was meant."""
    with pytest.raises(ConfigError, match="no kubeconfig"):
        load_config(context="prod")
    monkeypatch.setenv("KUBECONFIG", str(written(home, {"token": "mine"})))
    assert load_config().bearer_token() == account_config().bearer_token() == "mine"


def test_the_official_client_is_imported_only_when_needed(tmp_path: Path) -> None:
    """It would cost every process a third of a second."""
    path = written(tmp_path, {"token": "mine"})
    code = (
        "import sys; from streamgraft_common.kube import load_config; "
        f"load_config({str(path)!r}); print('kubernetes' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
