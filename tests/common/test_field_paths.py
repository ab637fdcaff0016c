"""The paths by which probes name fields."""

import pytest

from streamgraft_common.field_paths import NoPath, check, text_at

ITEM = {
    "metadata": {"annotations": {"example.org/note": "yes", "a/b": "short"}},
    "spec": {
        "width": 2,
        "on": True,
        "containers": [{"image": "one", "ports": [{"at": {"port": 80}}]}, {"image": "two"}],
    },
    "status": {
        "phase": "Healthy",
        "nothing": None,
        "$ref": "quoted",
        "names": ["a", "b"],
        "conditions": [
            {"type": "Resizing", "status": "False"},
            {"type": "Ready", "status": "True", "reason": "[x] = 'y'"},
            {"type": "Accepted", "status": "True", "reason": "a = 'b'"},
        ],
    },
}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("status.phase", "Healthy"),
        ("spec.width", "2"),
        ("spec.on", "true"),
        ("status.conditions[type=Ready].status", "True"),
        ("status.conditions[type=Gone].status", None),
        ("status.names[type=Ready]", None),
        ("status.phase[type=Ready]", None),
        ("status.phase.deeper", None),
        ("status.nothing", None),
        ("nowhere", None),
        ("spec.containers[1].image", "two"),
        ("spec.containers[0].ports[at.port=80].at.port", "80"),
        ("spec.containers[2].image", None),
        ("spec.width[0]", None),
        ("metadata.annotations['example.org/note']", "yes"),
        ("['metadata']['annotations'].a/b", "short"),
        ("status.conditions[reason=a = 'b'].type", "Accepted"),
        ("status['$ref']", "quoted"),
        ("metadata.annotations['other']", None),
    ],
)
def test_fields_are_found_by_path(path: str, text: str | None) -> None:
    check(path)
    assert text_at(ITEM, path) == text


def test_of_no_object_there_is_none() -> None:
    assert text_at(None, "status.phase") is None


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("", "''"),
        (".status", "'.status'"),
        ("status.", "'.'"),
        ("status..phase", "'..phase'"),
        ("spec.containers[]", "'[]'"),
        ("spec.containers[-1]", "'[-1]'"),
        ("spec.containers[*].image", "'[*].image'"),
        ("spec.containers[0]image", "'image'"),
        ("status.conditions[type=Ready", "'[type=Ready'"),
        ("status.conditions[.type=Ready]", "'.type'"),
        ("metadata.annotations['a.b/c", '"[\'a.b/c"'),
        ("status.phase]", "']'"),
        ("$.status.phase", "'$.status.phase'"),
        ("{.status.phase}", "'{.status.phase}'"),
        ("status.phase ", "' '"),
        ("metadata.labels.app\\.kubernetes\\.io/name", repr("\\.kubernetes\\.io/name")),
        ('status.conditions[?(@.type=="Ready")].status', repr('[?(@.type=="Ready")].status')),
        ("status.conditions[?(@.type=Ready)].status", "'?(@.type'"),
        ("status.conditions[type='Ready'].status", repr("[type='Ready'].status")),
        ('status.conditions[type="Ready"].status', repr('[type="Ready"].status')),
        ("status.conditions[type==Ready].status", "'[type==Ready].status'"),
        ("status.conditions[type = Ready].status", "'[type = Ready].status'"),
        ("status.conditions[type=Ready ].status", "'[type=Ready ].status'"),
        ("status.conditions[@type=Ready].status", "'@type'"),
    ],
)
def test_what_is_no_path_is_refused(path: str, rest: str) -> None:
    """It would be of no field for ever."""
    with pytest.raises(NoPath) as refused:
        check(path)
    assert f"from {rest} on" in str(refused.value)
    if path != "status.conditions[.type=Ready]":
        with pytest.raises(NoPath):
            text_at(ITEM, path)
