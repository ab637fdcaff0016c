"""Hostile bundles and Jobs: the operator gets a plan out of them, or an error that says why."""

import asyncio
import copy
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.fuzz.adapter_world import JSON
from tests.fuzz.cases import CASES
from tests.operator.application.test_expansion import expanded
from tests.operator.integration.world import application, bundle

from streamgraft_common.bundle import BundleError, read_bundle
from streamgraft_operator.graph import GraphError

Place = tuple[Any, ...]
"""Names and numbers that lead to a value."""

ADL = application("topics")
JOB: dict[str, Any] = {
    "fusion": {"type": "manual", "peCount": 3, "channels": "ChannelIsolation"},
    "threading": {"model": "dynamic", "threadCount": 4, "elastic": True},
    "resources": {"limits": {"cpu": "6", "memory": "6Gi"}},
    "parameters": {"speed": "4"},
    "regions": {"r": {"width": 2, "autoscaling": {"maxWidth": 3, "metric": "demand"}}},
    "processingElement": {"heapMb": 800, "slots": 2, "sparkConf": {"a": "b"}},
    "warmPool": 2,
    "warmPoolMemory": "1Gi",
}
ODD = JSON | st.sampled_from(
    [
        "in",
        "raw",
        "done",
        "r",
        "kafka-source",
        "sink",
        "split",
        "source",
        "0",
        "1e400",
        "-1",
        "\ud800",
        "a" * 300,
        -1,
        0,
        10**30,
        1025,
        float("inf"),
        [],
        {},
    ]
)


def places(document: Any, path: Place = ()) -> Iterator[Place]:
    """Yield where the values of a document are."""
    yield path
    if isinstance(document, dict):
        for name, value in document.items():
            yield from places(value, (*path, name))
    if isinstance(document, list):
        for number, value in enumerate(document):
            yield from places(value, (*path, number))


def changed(document: Any, path: Place, value: Any) -> Any:
    """Return the document with another value there; ... takes it out, and the word `twice` has it
    there once more."""
    whole = {"": copy.deepcopy(document)}
    parent: Any = whole
    *above, last = ("", *path)
    for name in above:
        try:
            parent = parent[name]
        except (KeyError, IndexError, TypeError):
            return whole[""]  # an earlier change took it away
    with suppress(KeyError, IndexError, TypeError):
        if value is ...:
            del parent[last]
        elif value == "twice" and isinstance(parent, list):
            parent.append(parent[last])
        else:
            parent[last] = value
    return whole.get("")


def mutations(document: Any) -> st.SearchStrategy[Any]:
    """Return documents that differ from this one in a few values."""
    change = st.tuples(
        st.sampled_from(list(places(document))), ODD | st.sampled_from([..., "twice"])
    )

    def apply(changes: list[tuple[Place, Any]]) -> Any:
        found = document
        for path, value in changes:
            found = changed(found, path, value)
        return found

    return st.lists(change, min_size=1, max_size=4).map(apply)


@settings(max_examples=CASES, deadline=None)
@given(
    st.binary(max_size=300),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=8),
    st.integers(0, 2000),
)
def test_any_bytes(noise: bytes, changes: list[tuple[int, int]], end: int) -> None:
    """Noise, and a bundle with a few other bytes that may be cut off."""
    damaged = bytearray(bundle(ADL))
    for place, value in changes:
        damaged[place % len(damaged)] = value
    for data in (noise, bytes(damaged), bytes(damaged[:end])):
        with suppress(BundleError):
            read_bundle(data)


def plan(adl: bytes, **spec: Any) -> None:
    """Plan a job; what can't be planned is an error with words."""
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        file.write(adl)
        file.flush()
        with suppress(BundleError, GraphError):
            expansion = asyncio.run(expanded(Path(file.name), **spec))
            assert expansion.content_id
            assert expansion.contents.keys() == expansion.from_job.keys()
            event("planned")


@settings(max_examples=CASES, deadline=None)
@given(mutations(ADL))
def test_any_description(adl: Any) -> None:
    plan(bundle(adl))


@settings(max_examples=CASES, deadline=None)
@given(mutations(JOB))
def test_any_job(spec: Any) -> None:
    """The API server refuses most of what the models refuse."""
    if isinstance(spec, dict):
        with suppress(ValidationError):
            plan(bundle(ADL), **{name: spec[name] for name in spec.keys() & JOB.keys()})
