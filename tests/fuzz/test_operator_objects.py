"""Hostile objects: whatever a user or a PE has written, the operator's loops and watches go on.

The API server keeps out what breaks the definitions; drawn are objects beyond that, too.
"""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.adapter_world import JSON, NOWHERE
from tests.fuzz.cases import CASES

from streamgraft_common.adl import Autoscaling, Period
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    EXPORT,
    HOST_POOL,
    IMPORT,
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    SAVEPOINT,
    TEST_SUITE,
    ConsistentRegionSpec,
    ExportSpec,
    HostPoolSpec,
    ImportSpec,
    JobSpec,
    ParallelRegionSpec,
    ProcessingElementSpec,
    SavepointSpec,
    SuiteSpec,
)
from streamgraft_common.resources.base import CustomKind, Model
from streamgraft_operator import assembly
from streamgraft_operator.context import Context
from streamgraft_operator.kit.control_loop import ControlLoop
from streamgraft_operator.region.lag_metrics import LagCollector
from streamgraft_operator.settings import Settings

SETTINGS = Settings(bootstrap_servers="kafka:9092", checkpoint_volume={}, image="default:1")
REGION = {"job": "j", "region": "r", "width": 1, "maxWidth": 4, "key": ["k"]}
SPECS: dict[str, tuple[CustomKind, type[Model], dict[str, Any]]] = {
    "regions": (PARALLEL_REGION, ParallelRegionSpec, REGION),
    "processing_elements": (
        PROCESSING_ELEMENT,
        ProcessingElementSpec,
        {"job": "j", "peId": 0, "stageName": "s"},
    ),
    "jobs": (JOB, JobSpec, {"bundle": {"file": "/b"}}),
    "savepoints": (SAVEPOINT, SavepointSpec, {"job": "j"}),
    "consistent_regions": (CONSISTENT_REGION, ConsistentRegionSpec, {"job": "j", "region": "c"}),
    "host_pools": (HOST_POOL, HostPoolSpec, {}),
    "exports": (
        EXPORT,
        ExportSpec,
        {"job": "j", "operator": "o", "stream": "s", "topic": "t", "name": "n"},
    ),
    "imports": (IMPORT, ImportSpec, {"job": "j", "operator": "i", "name": "n"}),
    "test_suites": (TEST_SUITE, SuiteSpec, {"scenarios": []}),
}
"""By name of the cache: kind, model, and what the definition requires."""


def fields(model: type[Any]) -> list[str]:
    """Return the names of a model's fields, as they are written."""
    return [field.alias for field in model.model_fields.values()]


PERIODS = st.lists(st.dictionaries(st.sampled_from(fields(Period)), JSON), max_size=2)
AUTOSCALING = st.dictionaries(st.sampled_from(fields(Autoscaling)), JSON | PERIODS)


@st.composite
def odd_objects(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw the name of a cache and an object for it."""
    name = draw(st.sampled_from(sorted(SPECS)))
    kind, model, required = SPECS[name]
    free = sorted(set(fields(model)) - required.keys())
    spec = draw(st.dictionaries(st.sampled_from(free), JSON)) | required
    if name == "regions" and draw(st.booleans()):
        spec["autoscaling"] = draw(AUTOSCALING)
    metadata = {"labels": {"streamgraft.io/job": "j"}, "uid": "u", "generation": 1}
    item = kind.manifest("odd", "ns", spec, resourceVersion="1", **metadata)
    return name, item


@settings(max_examples=CASES, deadline=None)
@given(st.lists(odd_objects(), min_size=1, max_size=3))
def test_the_loops_go_on(drawn: list[tuple[str, dict[str, Any]]]) -> None:
    async def tried() -> None:
        context = Context.of(NOWHERE, SETTINGS)
        controllers = assembly.controllers_of(context, LagCollector(context.caches.regions))
        loops = [ControlLoop(controller) for controller in controllers]
        for name, item in drawn:
            getattr(context.caches, name).observe(item)
        stopping = asyncio.Event()
        running = [asyncio.create_task(loop.run(stopping)) for loop in loops]
        await asyncio.sleep(0.02)
        assert [task for task in running if task.done()] == []
        for collector in assembly.collectors_of(context.caches):
            assert list(collector.collect())
        stopping.set()
        await asyncio.gather(*running)

    asyncio.run(tried())
