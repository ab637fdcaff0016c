"""Environment and command line of a container."""

import base64
from typing import Any

import pytest

from streamgraft_local.node.environment import command_line, data_of, environment, field_value
from streamgraft_local.node.references import MissingReference, Sources, references

POD: dict[str, Any] = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "labels": {"x": "1", "a": 'q"\n'},
        "annotations": {"streamgraft.io/y": "2"},
    },
    "spec": {"nodeName": "n", "serviceAccountName": "sa"},
    "status": {"podIP": "127.20.7.9", "hostIP": "127.20.7.1"},
}
SOURCES = Sources(
    {
        ("configmaps", "cm"): {"data": {"A": "a", "B": "b"}},
        ("secrets", "se"): {"data": {"key": base64.b64encode(b"s").decode()}},
    }
)
ALLOCATABLE = {"cpu": "64", "memory": "256Gi"}


def resolved(**container: Any) -> dict[str, str]:
    """Return a container's environment, with one variable given by the node."""
    return environment(container, POD, SOURCES, {"GIVEN": "g", "A": "image"}, ALLOCATABLE)


def value_from(**origin: Any) -> str | None:
    """Return the value of one variable, None if it is not set."""
    return resolved(env=[{"name": "V", "valueFrom": origin}]).get("V")


def test_priority_is_given_then_env_from_then_env() -> None:
    maps = [{"configMapRef": {"name": "cm"}}]
    assert resolved()["A"] == "image"
    assert resolved(envFrom=maps)["A"] == "a"
    assert resolved(envFrom=maps, env=[{"name": "A", "value": "own"}])["A"] == "own"


def test_env_refers_to_what_stands_before_it() -> None:
    env = [
        {"name": "ONE", "value": "$(GIVEN)$(TWO)"},
        {"name": "TWO", "value": "2"},
        {"name": "THREE", "value": "$(ONE)/$(TWO)"},
    ]
    found = resolved(env=env)
    assert found["ONE"] == "g$(TWO)"
    assert found["THREE"] == "g$(TWO)/2"


def test_env_from_with_prefix() -> None:
    assert resolved(envFrom=[{"prefix": "P_", "secretRef": {"name": "se"}}])["P_key"] == "s"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u"),
        ("metadata.labels['x']", "1"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['streamgraft.io/y']", "2"),
        ("metadata.labels", 'a="q\\"\\n"\nx="1"'),
        ("spec.nodeName", "n"),
        ("spec.serviceAccountName", "sa"),
        ("status.podIP", "127.20.7.9"),
        ("status.hostIP", "127.20.7.1"),
    ],
)
def test_fields(path: str, value: str) -> None:
    assert field_value(POD, path) == value


def test_an_unknown_field_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"status\.phase"):
        field_value(POD, "status.phase")


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"resource": "requests.cpu"}, "2"),
        ({"resource": "requests.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "limits.memory", "divisor": "1Mi"}, "512"),
        ({"resource": "limits.cpu"}, "64"),
        ({"resource": "requests.memory"}, "0"),
    ],
)
def test_resources(reference: dict[str, str], value: str) -> None:
    resources = {"requests": {"cpu": "1500m"}, "limits": {"memory": "0.5Gi"}}
    env = [{"name": "V", "valueFrom": {"resourceFieldRef": reference}}]
    assert resolved(env=env, resources=resources)["V"] == value


def test_keys() -> None:
    assert value_from(configMapKeyRef={"name": "cm", "key": "B"}) == "b"
    assert value_from(secretKeyRef={"name": "se", "key": "key"}) == "s"
    assert value_from(configMapKeyRef={"name": "no", "key": "B", "optional": True}) is None
    assert value_from(configMapKeyRef={"name": "cm", "key": "no", "optional": True}) is None


def test_missing_keys_and_objects_are_named() -> None:
    with pytest.raises(MissingReference, match='ConfigMap "no" not found'):
        value_from(configMapKeyRef={"name": "no", "key": "B"})
    with pytest.raises(MissingReference, match='key "no" not found in secrets "se"'):
        value_from(secretKeyRef={"name": "se", "key": "no"})
    with pytest.raises(MissingReference, match='Secret "no" not found'):
        resolved(envFrom=[{"secretRef": {"name": "no"}}])


def test_binary_data_is_decoded() -> None:
    item = {"data": {"a": "ä"}, "binaryData": {"b": base64.b64encode(b"\x00\xff").decode()}}
    assert data_of("configmaps", item) == {"a": "ä".encode(), "b": b"\x00\xff"}


def test_command_line_is_expanded_and_needs_a_command() -> None:
    container = {"command": ["run", "$(A)"], "args": ["$$(A)"]}
    assert command_line(container, {"A": "1"}) == ["run", "1", "$(A)"]
    with pytest.raises(ValueError, match="set `command`"):
        command_line({"args": ["x"]}, {})


def test_references_are_found_everywhere() -> None:
    pod = {
        "spec": {
            "initContainers": [{"envFrom": [{"configMapRef": {"name": "one"}}]}],
            "containers": [
                {
                    "env": [
                        {"name": "V", "valueFrom": {"secretKeyRef": {"name": "two", "key": "k"}}},
                        {"name": "W", "value": "plain"},
                    ]
                }
            ],
            "volumes": [
                {"name": "a", "configMap": {"name": "three"}},
                {"name": "b", "secret": {"secretName": "four"}},
                {"name": "c", "projected": {"sources": [{"configMap": {"name": "five"}}]}},
                {"name": "d", "emptyDir": {}},
            ],
        }
    }
    assert references(pod) == {
        ("configmaps", "one"),
        ("secrets", "two"),
        ("configmaps", "three"),
        ("secrets", "four"),
        ("configmaps", "five"),
    }
