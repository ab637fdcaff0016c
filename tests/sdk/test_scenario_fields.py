"""The paths by which probes name fields."""

import pytest

from streamgraft.scenarios.fields import text_at

ITEM = {
    "spec": {"width": 2, "on": True},
    "status": {
        "phase": "Healthy",
        "nothing": None,
        "conditions": [
            {"type": "Resizing", "status": "False"},
            {"type": "Ready", "status": "True"},
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
        ("status.phase[type=Ready]", None),
        ("status.phase.deeper", None),
        ("status.nothing", None),
        ("nowhere", None),
    ],
)
def test_fields_are_found_by_path(path: str, text: str | None) -> None:
    assert text_at(ITEM, path) == text


def test_of_no_object_there_is_none() -> None:
    assert text_at(None, "status.phase") is None
