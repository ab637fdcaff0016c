"""A pod that a PE adopts while its pool is made smaller is no surplus any more."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.faults import submit
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import POD
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PARALLEL_REGION
from streamgraft_operator.kit.coordinator import Coordinator
from streamgraft_operator.warm_pool import controller
from streamgraft_operator.warm_pool.expectations import Expectations

SECONDS = 90.0


def pods(world: World, label: str) -> set[str]:
    """Return the names of the pods that have a label and are not being deleted."""
    found = (pod["metadata"] for pod in world.objects(POD))
    return {
        has["name"] for has in found if label in has["labels"] and "deletionTimestamp" not in has
    }


def widen(world: World) -> None:
    """Set the largest width."""
    world.request("PATCH", PARALLEL_REGION, "job-r", {"spec": {"width": 3}})


@pytest.fixture
def world() -> Iterator[World]:
    world = World(0)
    with world.surroundings():
        yield world


def widening(world: World, method: Callable[..., Awaitable[Any]], begun: asyncio.Event) -> Any:
    """Return the method that lets a region grow, once, before it does its work."""

    async def other(*arguments: Any, **named: Any) -> Any:
        if not begun.is_set():
            begun.set()
            widen(world)
            await asyncio.sleep(30.0)
        return await method(*arguments, **named)

    return other


def test_while_others_are_deleted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(world, Submission("job", stages=1, max_width=3, width=1, extra={"warmPool": 3}))
    world.operators.start()
    world.run(SECONDS)
    pool = pods(world, names.LABEL_POOL)
    assert len(pool) == 3
    slow = widening(world, Coordinator.delete, asyncio.Event())
    monkeypatch.setattr(Coordinator, "delete", slow)
    world.request("PATCH", JOB, "job", {"spec": {"warmPool": 0}})
    world.run(SECONDS)
    assert len(pods(world, names.LABEL_REGION) & pool) == 2


def test_while_the_metrics_api_is_asked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not even tried to delete them: what the pool has is looked at after the answer."""
    submission = Submission("job", stages=1, max_width=3, width=1, sleepy=True)
    submit(world, submission)
    world.operators.start()
    world.run(SECONDS)
    pool = pods(world, names.LABEL_POOL)
    assert len(pool) == 2
    delete, deleted = Coordinator.delete, set[str]()

    async def noting(self: Coordinator, item: Object, *rest: Any, **named: Any) -> bool:
        deleted.add(item["metadata"]["name"])
        return await delete(self, item, *rest, **named)

    monkeypatch.setattr(Coordinator, "delete", noting)
    begun = asyncio.Event()
    monkeypatch.setattr(Expectations, "widths", widening(world, Expectations.widths, begun))
    # Others of the new channels find no node, so nothing is to wait.
    monkeypatch.setattr(controller, "lacks_room", lambda _: begun.is_set())
    world.run(SECONDS)
    assert pods(world, names.LABEL_REGION) >= pool
    assert not deleted & pool
