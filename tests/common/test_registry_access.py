"""What a schema registry is shown, and who gets to see it."""

import json
from pathlib import Path

import pytest
from tests.common.schema_registry import registry

from streamgraft_common.encodings.registry import Registry, RegistryError
from streamgraft_common.encodings.registry_access import VARIABLE, Access

BASIC = "Basic a2V5OnM6M2NyZXQ="
PASSWORD = {"registry.username": "key\n", "registry.password": "s:3cret\n"}
TOKEN = {"registry.token": "abc"}


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a mounted Secret."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def put(secret: Path, data: dict[str, str]) -> None:
    for key, text in data.items():
        (secret / key).write_text(text)


@pytest.mark.parametrize(("data", "shown"), [(PASSWORD, BASIC), (TOKEN, "Bearer abc")])
def test_a_registry_is_shown_what_it_wants(secret: Path, data: dict[str, str], shown: str) -> None:
    put(secret, {**data, "spark.hadoop.x": "y"})
    with registry() as server:
        server.wanted = shown
        asking = Registry(server.url)
        assert asking.register("t-value", '"long"') == 1
        assert asking.schema(1) == "long"


def test_who_is_refused_is_told_which_keys_to_look_at(secret: Path) -> None:
    """What was shown is not told; and a Secret that is put right counts with the next question."""
    put(secret, {**PASSWORD, "registry.password": "guessed"})
    with registry() as server:
        server.wanted, server.schemas[1] = BASIC, json.dumps("long")
        asking = Registry(server.url)
        with pytest.raises(
            RegistryError, match=r"401 .*registry\.password.*PropertiesSecret"
        ) as seen:
            asking.schema(1)
        assert "guessed" not in str(seen.value)
        put(secret, PASSWORD)
        assert asking.schema(1) == "long"


def test_others_do_not_see_it(secret: Path) -> None:
    """Wherever a registry leads to."""
    put(secret, PASSWORD)
    with registry() as server, registry() as other:
        server.leads_to, other.schemas[1] = other.url, json.dumps("long")
        assert Registry(server.url).schema(1) == "long"
        assert (server.shown, other.shown) == ([BASIC], [None])


def test_without_a_secret_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with registry() as server:
        assert Registry(server.url).register("t-value", '"long"') == 1
        assert server.shown == [None]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"registry.username": "hidden"}, "registry.username without registry.password"),
        ({"registry.password": "hidden"}, "registry.password without registry.username"),
        ({**PASSWORD, **TOKEN}, "both registry.username and registry.token"),
        ({"registry.ca.crt": "hidden"}, "registry.ca.crt of restrictedPropertiesSecret is no"),
    ],
)
def test_a_secret_that_makes_no_sense_is_told_by_its_keys(
    secret: Path, data: dict[str, str], problem: str
) -> None:
    put(secret, data)
    with registry() as server, pytest.raises(RegistryError, match=problem) as seen:
        Registry(server.url).schema(1)
    assert "hidden" not in str(seen.value)


def test_nobody_prints_it() -> None:
    assert "s:3cret" not in repr(Access.parse(PASSWORD))
