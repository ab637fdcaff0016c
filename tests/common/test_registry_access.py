"""What a schema registry is shown, and nobody else: the keys of a mounted Secret."""

import base64
import traceback
from pathlib import Path

import pytest
from tests.common.schema_registry import FakeRegistry, registry

from streamgraft_common.encodings import Encoding
from streamgraft_common.encodings.codecs import codec_of
from streamgraft_common.encodings.registry import Registry, RegistryError
from streamgraft_local import pki

SCHEMA = '"long"'
SECRET = "the Secret that processingElement.restrictedPropertiesSecret names"
PASSWORD = "s3cr3t:é"
BASIC = base64.b64encode(f"key:{PASSWORD}".encode()).decode()
USER = {"registry-user": "key", "registry-password": PASSWORD}
TOKEN = {"registry-token": "t0k3n.of-ours"}


def secret(folder: Path, server: FakeRegistry | None, given: dict[str, str]) -> Path:
    """Write a Secret as it is mounted; the way to the registry is said to be safe."""
    url = {"registry-url": server.url + "/any"} if server else {}
    mounted = folder / "secret"
    mounted.mkdir(exist_ok=True)
    for old in mounted.iterdir():
        old.unlink()
    for key, value in {**url, **given}.items():
        (mounted / key).write_text(value + "\n")
    return mounted


def refusal(asked: Registry) -> str:
    """Ask for a schema, and return what is logged of the error."""
    with pytest.raises(RegistryError) as caught:
        asked.schema(7)
    logged = "".join(traceback.format_exception(caught.value))
    for hidden in (PASSWORD, BASIC, TOKEN["registry-token"]):
        assert hidden not in logged
    return str(caught.value)


@pytest.mark.parametrize(
    ("given", "header"),
    [(USER, f"Basic {BASIC}"), (TOKEN, f"Bearer {TOKEN['registry-token']}")],
)
def test_a_registry_that_asks_is_shown_what_it_wants(
    tmp_path: Path, given: dict[str, str], header: str
) -> None:
    with registry() as server:
        server.wanted = header
        asked = Registry(server.url + "/", secret(tmp_path, server, given))
        assert asked.schema(asked.register("orders-value", SCHEMA)) == "long"
        assert server.shown == [header, header]


def test_a_refusal_says_which_keys_to_set(tmp_path: Path) -> None:
    with registry() as server:
        server.wanted = f"Basic {BASIC}"
        wanted = f"set registry-user and registry-password, or registry-token, in {SECRET}"
        for mounted in (None, secret(tmp_path, server, {})):
            said = refusal(Registry(server.url, mounted))
            assert f"401 the registry asks for credentials, and there are none: {wanted}" in said
        other = {**USER, "registry-url": "https://other.example.com"}
        said = refusal(Registry(server.url, secret(tmp_path, None, other)))
        assert f"and its registry-url is of another: {wanted}" in said
        assert server.shown == [None, None, None]
        said = refusal(Registry(server.url, secret(tmp_path, server, TOKEN)))
        assert f"does not accept registry-token: set what it accepts in {SECRET}" in said
        assert "Unauthorized: Bearer …" in said
        wrong = {**USER, "registry-password": "other"}
        said = refusal(Registry(server.url, secret(tmp_path, server, wrong)))
        assert "401 the registry does not accept registry-user and registry-password" in said


def test_a_right_that_is_missing_is_told(tmp_path: Path) -> None:
    with registry() as server:
        server.forbidden = {"error_code": 40301, "message": f"no right for {PASSWORD} to read"}
        said = refusal(Registry(server.url, secret(tmp_path, server, TOKEN)))
        assert "403 the registry accepts registry-token, but they have no right to this" in said
        assert "to read" in said
        asked = Registry(server.url, secret(tmp_path, server, TOKEN))
        with pytest.raises(RegistryError, match=r"POST .*orders-value/versions: 403 .*registry-to"):
            asked.register("orders-value", SCHEMA)


def test_a_new_password_needs_no_restart(tmp_path: Path) -> None:
    """The kubelet writes it into the pod; a question that failed is asked again."""
    with registry() as server:
        server.schemas[7] = SCHEMA
        server.wanted = f"Basic {BASIC}"
        asked = Registry(server.url, secret(tmp_path, server, {**USER, "registry-password": "old"}))
        refusal(asked)
        secret(tmp_path, server, USER)
        assert asked.schema(7) == "long"


def test_credentials_follow_no_redirect_elsewhere(tmp_path: Path) -> None:
    with registry() as server, registry() as other:
        other.schemas[7] = SCHEMA
        server.moved = other.url
        said = refusal(Registry(server.url, secret(tmp_path, server, USER)))
        assert f"it redirects to {other.url}: if that is the registry, give its URL" in said
        assert other.shown == []
        assert Registry(server.url).schema(7) == "long"
        assert other.shown == [None]
        with pytest.raises(RegistryError, match="it redirects to"):
            Registry(server.url).register("orders-value", SCHEMA)


def test_credentials_follow_a_redirect_of_the_registry_itself(tmp_path: Path) -> None:
    with registry() as server:
        server.schemas[7] = SCHEMA
        server.moved = f"{server.url}/moved"
        server.wanted = f"Basic {BASIC}"
        assert Registry(server.url, secret(tmp_path, server, USER)).schema(7) == "long"
        assert server.shown == [f"Basic {BASIC}"] * 2


def test_over_plain_http_only_if_the_secret_allows_it(tmp_path: Path) -> None:
    with registry() as server:
        said = refusal(Registry(server.url, secret(tmp_path, None, USER)))
        assert "registry-user and registry-password go by https only" in said
        assert "allow it by a key registry-url" in said
        assert server.shown == []


def test_a_registry_of_an_authority_of_ones_own(tmp_path: Path) -> None:
    signer = pki.authority("ca")
    signer.save(tmp_path, "ca")
    pki.issue(signer, "registry", hosts=["127.0.0.1"]).save(tmp_path, "tls")
    authority = {"registry-ca.crt": (tmp_path / "ca.crt").read_text()}
    with registry(tmp_path) as server:
        server.schemas[7] = SCHEMA
        server.wanted = f"Basic {BASIC}"
        said = refusal(Registry(server.url, secret(tmp_path, None, USER)))
        assert f"if its authority is your own, set registry-ca.crt in {SECRET}" in said
        assert server.shown == []
        assert Registry(server.url, secret(tmp_path, None, USER | authority)).schema(7) == "long"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"registry-user": "key"}, "registry-user without registry-password"),
        ({"registry-password": PASSWORD}, "registry-password without registry-user"),
        (USER | TOKEN, "both registry-user and registry-token"),
        ({**USER, "registry-user": f"key:{PASSWORD}"}, "registry-user has a colon"),
        ({"registry-token": f"{PASSWORD}\nx"}, "registry-token has characters"),
        ({"registry-ca.crt": PASSWORD}, "registry-ca.crt is no certificate in PEM"),
        ({**USER, "registry-url": f"https://{PASSWORD}@h"}, "registry-url is no URL of a registry"),
    ],
)
def test_what_can_not_be_shown_is_named(
    tmp_path: Path, given: dict[str, str], problem: str
) -> None:
    said = refusal(Registry("https://registry.invalid", secret(tmp_path, None, given)))
    assert problem in said
    assert said.endswith(f"(in {SECRET})")


def test_a_key_that_is_no_text_is_named(tmp_path: Path) -> None:
    mounted = secret(tmp_path, None, USER)
    (mounted / "registry-password").write_bytes(b"\xff\xfe")
    assert "registry-password is no text" in refusal(Registry("https://h.invalid", mounted))


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (f"https://key:{PASSWORD}@registry:8081", "has a user or password"),
        ("https://registry:8081?api_key=s3cr3t", "has more than host and path"),
        ("file:///etc/passwd", "is none of https or http"),
        ("registry:8081", "is none of https or http"),
        ("https://registry:s3cr3t", "has no valid port"),
    ],
)
def test_a_url_with_a_password_is_refused(url: str, problem: str) -> None:
    """Also one in a bundle that somebody else has built."""
    encoding = Encoding(kind="avro", schema_text=SCHEMA, registry=url)
    with pytest.raises(ValueError, match=problem) as caught:
        codec_of(encoding, "orders")
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("answer", ["[]", "{}", '{"login": "here"}'])
def test_an_answer_of_something_else_is_no_schema(answer: str) -> None:
    """Of a proxy that asks for a login, for one: the record is not at fault."""
    with registry() as server:
        server.proxied, server.proxied_code = answer.encode(), 200
        with pytest.raises(RegistryError, match="an answer without schema"):
            Registry(server.url).schema(7)
