"""$(VARIABLE) and the rewriting of mount paths."""

import pytest

from streamgraft_local.node.expansion import expand, rewrite


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$$", "$$"),
        ("$A ${A} $", "$A ${A} $"),
        ("$()", "$()"),
    ],
)
def test_expand(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expected


def test_values_are_not_expanded_again() -> None:
    assert expand("$(A)", {"A": "$(B)", "B": "2"}) == "$(B)"


MOUNTS = {"/data": "/real/d", "/data/in": "/real/i", "/etc/app.conf/": "/real/c"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/data", "/real/d"),
        ("/data/", "/real/d/"),
        ("/data/x", "/real/d/x"),
        ("/data/in/x", "/real/i/x"),
        ("/data/input", "/real/d/input"),
        ("/etc/app.conf", "/real/c"),
        ("--path=/data/x", "--path=/real/d/x"),
        ("/data/a:/data/in:/usr", "/real/d/a:/real/i:/usr"),
        ("file:///data/x", "file:///real/d/x"),
        ("cat /data/x > '/data/y'", "cat /real/d/x > '/real/d/y'"),
        ('{"dir": "/data"}', '{"dir": "/real/d"}'),
        ("/database", "/database"),
        ("/data.old", "/data.old"),
        ("/data-old", "/data-old"),
        ("/mnt/data", "/mnt/data"),
        ("./data", "./data"),
        ("http://host/data", "http://host/data"),
        ("s3://data", "s3://data"),
        ("data", "data"),
        ("", ""),
    ],
)
def test_rewrite(text: str, expected: str) -> None:
    assert rewrite(text, MOUNTS) == expected


def test_rewriting_never_touches_its_own_result() -> None:
    assert rewrite("/a/x /b", {"/a": "/b", "/b": "/c"}) == "/b/x /c"


def test_without_mounts_nothing_changes() -> None:
    assert rewrite("/data", {}) == "/data"
    assert rewrite("/data", {"/": "/real"}) == "/data"
