"""Regions that may sleep, where the cluster's autoscalers can't scale to zero."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.simulation.applications import Submission
from tests.simulation.faults import submit
from tests.simulation.world import World

from streamgraft_common.kinds import AUTOSCALER, EVENT
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_operator.region.lag import RENEW_SECONDS

SECONDS = 180.0
"""Longer than the operator's look at everything: what is reported again would be by then."""


@contextmanager
def running(*, scale_to_zero: bool) -> Iterator[World]:
    """Submit a job whose region may sleep, and let time pass."""
    world = World(1)
    world.server.scale_to_zero = scale_to_zero
    with world.surroundings():
        submit(world, Submission("job", stages=1, max_width=2, width=1, sleepy=True))
        world.operators.start()
        world.run(SECONDS)
        yield world


def autoscaled(*, scale_to_zero: bool) -> World:
    """Return it behind that time."""
    with running(scale_to_zero=scale_to_zero) as world:
        return world


def resized(world: World, width: int) -> tuple[int, int]:
    """Set the width and let time pass; return that of the region's spec and status."""
    (region,) = world.objects(PARALLEL_REGION)
    name = region["metadata"]["name"]
    world.request("PATCH", PARALLEL_REGION, name, {"spec": {"width": width}})
    world.run(SECONDS)
    (region,) = world.objects(PARALLEL_REGION)
    return region["spec"]["width"], region["status"]["width"]


def refusals(world: World) -> list[str]:
    """Return the messages of refusals."""
    found = [item for item in world.objects(EVENT) if item["reason"] == "ScaleToZeroRefused"]
    assert all(item.get("count", 1) == 1 for item in found)
    return [item["message"] for item in found]


def test_the_region_keeps_a_channel_and_reports_why_once() -> None:
    world = autoscaled(scale_to_zero=False)
    (autoscaler,) = world.objects(AUTOSCALER)
    assert autoscaler["spec"]["minReplicas"] == 1
    (message,) = refusals(world)
    assert "turn on the feature gate HPAScaleToZero" in message


def test_another_width_is_no_reason_to_ask_again() -> None:
    """Nor for another Event: an autoscaler that works changes widths all day."""
    with running(scale_to_zero=False) as world:
        assert resized(world, 2) == (2, 2)
    assert len(refusals(world)) == 1


def test_with_the_feature_gate_it_may_have_none() -> None:
    world = autoscaled(scale_to_zero=True)
    (autoscaler,) = world.objects(AUTOSCALER)
    assert autoscaler["spec"]["minReplicas"] == 0
    assert refusals(world) == []


def test_a_region_that_sleeps_is_woken_for_an_autoscaler_that_did_not_put_it_to_sleep() -> None:
    """A new one would take width 0 as set by the user."""
    with running(scale_to_zero=True) as world:
        assert resized(world, 0) == (0, 0)
        (autoscaler,) = world.objects(AUTOSCALER)
        world.request("DELETE", AUTOSCALER, autoscaler["metadata"]["name"], {})
        world.run(SECONDS)
    (woken,) = world.objects(PARALLEL_REGION)
    assert (woken["spec"]["width"], woken["status"]["width"]) == (1, 1)
    assert len(world.objects(AUTOSCALER)) == 1
    assert [item["reason"] for item in world.objects(EVENT)].count("WokenForAutoscaler") == 1


def test_brokers_do_not_forget_how_far_a_region_that_sleeps_has_read() -> None:
    """They forget positions that nobody commits; then the whole log would wait for the region."""
    with running(scale_to_zero=True) as world:
        assert resized(world, 0) == (0, 0)
        assert world.brokers.renewed == {}
        world.run(2.5 * RENEW_SECONDS)
        (at,) = world.brokers.renewed.values()
        assert time.monotonic() - at < RENEW_SECONDS
