"""HorizontalPodAutoscalers of regions that somebody edits, or whose names are taken."""

from tests.simulation.applications import NAMESPACE
from tests.simulation.test_scale_to_zero import SECONDS, running
from tests.simulation.world import World

from streamgraft_common.kinds import AUTOSCALER, EVENT
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PARALLEL_REGION

NAME = "job-r"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}


def target(world: World, name: str = NAME) -> Object | None:
    """Return what an autoscaler scales."""
    found = world.get(AUTOSCALER, name)
    scaled: Object | None = found and found["spec"]["scaleTargetRef"]
    return scaled


def retarget(world: World, to: Object) -> None:
    world.request("PATCH", AUTOSCALER, NAME, {"spec": {"scaleTargetRef": to}})


def region_target(name: str) -> Object:
    return {"apiVersion": PARALLEL_REGION.api_version, "kind": "ParallelRegion", "name": name}


def said(world: World, reason: str) -> int:
    """Return how often Events gave this reason."""
    found = [item for item in world.objects(EVENT) if item["reason"] == reason]
    return sum(item.get("count", 1) for item in found)


def width(world: World) -> int:
    """Return the width that is asked for."""
    asked: int = (world.get(PARALLEL_REGION, NAME) or {})["spec"]["width"]
    return asked


def set_width(world: World, asked: int) -> None:
    world.request("PATCH", PARALLEL_REGION, NAME, {"spec": {"width": asked}})


def take_name(world: World) -> None:
    """Have an autoscaler of somebody else in the place of the generated one."""
    world.request("DELETE", AUTOSCALER, NAME, {})
    spec = {"scaleTargetRef": TARGET, "minReplicas": 1, "maxReplicas": 2}
    manifest = {
        "apiVersion": AUTOSCALER.api_version,
        "kind": AUTOSCALER.kind,
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": spec,
    }
    world.request("POST", AUTOSCALER, "", manifest)


def test_one_that_scales_something_else_by_an_edit_is_put_right_once() -> None:
    with running(scale_to_zero=True) as world:
        before = target(world)
        retarget(world, TARGET)
        world.run(SECONDS)
        assert target(world) == before == region_target(NAME)
        assert said(world, "AutoscalerCreated") == said(world, "AutoscalerCorrected") == 1


def test_one_that_scales_another_region_by_an_edit_is_no_user_s_own_there() -> None:
    with running(scale_to_zero=True) as world:
        spec = {"job": "other", "region": "r", "width": 1, "maxWidth": 4, "key": ["k"]}
        other = PARALLEL_REGION.manifest("other-r", NAMESPACE, {**spec, "autoscaling": {}})
        world.request("POST", PARALLEL_REGION, "", other)
        world.run(10.0)
        there = world.get(AUTOSCALER, "other-r")
        assert there
        retarget(world, region_target("other-r"))
        world.run(10.0)
        assert target(world) == region_target(NAME)
        assert (world.get(AUTOSCALER, "other-r") or {})["metadata"] == there["metadata"]
        assert said(world, "AutoscalerYielded") == 0


def test_a_region_that_sleeps_is_woken_once_by_such_an_edit() -> None:
    """What the autoscaler knows of its target is not of this region any more."""
    with running(scale_to_zero=True) as world:
        set_width(world, 0)
        world.run(SECONDS)
        retarget(world, TARGET)
        world.run(SECONDS)
        assert (width(world), said(world, "WokenForAutoscaler")) == (1, 1)
        set_width(world, 0)
        world.run(SECONDS)
        assert (width(world), said(world, "WokenForAutoscaler")) == (0, 1)


def test_a_name_that_somebody_else_has_is_told_and_wakes_nobody() -> None:
    with running(scale_to_zero=True) as world:
        set_width(world, 0)
        world.run(SECONDS)
        take_name(world)
        theirs = world.get(AUTOSCALER, NAME)
        world.run(SECONDS)
        assert world.get(AUTOSCALER, NAME) == theirs
        assert said(world, "NameTaken") > 0
        assert (width(world), said(world, "WokenForAutoscaler")) == (0, 0)
        world.request("DELETE", AUTOSCALER, NAME, {})
        world.run(10.0)
        assert target(world) == region_target(NAME)
