"""The version of a job that is noted: what is written is read, and nothing else."""

import gzip
import json
import random
from dataclasses import replace
from typing import Any

import pytest
from tests.operator.integration.world import application, bundle

from streamgraft_common.bundle import read_bundle
from streamgraft_common.resources import JobSpec
from streamgraft_operator.application.versions import LARGEST_BYTES, Version, config_map
from streamgraft_operator.graph import GraphError
from streamgraft_operator.manifests.metadata import Owner

SPEC: dict[str, Any] = {
    "bundle": {"file": "/tiny.zip"},
    "parameters": {"speed": "9", "umlaut": "ü"},
    "resources": {"requests": {"cpu": "3"}},
    "savepoint": {"name": "before"},
}


def version() -> Version:
    tiny = read_bundle(bundle(application("topics")))
    return Version(3, SPEC, JobSpec.model_validate(SPEC), "image:1", tiny)


def test_what_is_noted_is_read() -> None:
    assert Version.from_json(version().to_json()) == version()


def test_equal_versions_are_written_alike() -> None:
    assert version().to_json() == version().to_json()


def changed(**fields: Any) -> bytes:
    document = json.loads(gzip.decompress(version().to_json()))
    return gzip.compress(json.dumps({**document, **fields}).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nothing",
        version().to_json()[:-20],
        gzip.compress(b"{}", mtime=0),
        gzip.compress(b"[]", mtime=0),
        gzip.compress(b"\xff", mtime=0),
        gzip.compress(b"[" * 100_000, mtime=0),
        changed(spec=None),
        changed(adl={}),
        changed(generation="third"),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, OSError, EOFError, RecursionError)):
        Version.from_json(data)


def test_no_more_is_unpacked_than_a_version_may_have() -> None:
    with pytest.raises(ValueError, match="unpacks to more than 8 MiB"):
        Version.from_json(gzip.compress(b" " * (LARGEST_BYTES + 2)))


def test_one_that_has_no_room_in_an_object_says_so() -> None:
    """Kubernetes would not take it, again and again."""
    owner, chance = Owner("ns", "job", "uid", 1), random.Random(1)
    large = {**SPEC, "parameters": {"noise": chance.randbytes(1_100_000).hex()}}
    assert config_map(owner, version())["binaryData"]
    with pytest.raises(GraphError, match=r"version, compressed, takes 1,\d+ kB"):
        config_map(owner, replace(version(), written=large))
