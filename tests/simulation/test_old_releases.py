"""A release counts for the epoch that took the shard away, and for no later one.

Chance does not get there: what a pod says that it holds usually does the same. So here a shard goes
from channel 0 to 1, where the pod dies; the next pod starts the shard, but can't say so; and then
the shard is to go on to channel 2. That of channel 0 released it, in the epoch before.
"""

import pytest
from tests.simulation.applications import Submission
from tests.simulation.fake_nodes import Container
from tests.simulation.faults import submit
from tests.simulation.invariants import Broken
from tests.simulation.test_mutations import accept_old_releases
from tests.simulation.world import World

from streamgraft_common.resources import PARALLEL_REGION

SECONDS = 60.0


def resize(world: World, width: int) -> None:
    """Set the width of the one region."""
    (region,) = world.objects(PARALLEL_REGION)
    world.request("PATCH", PARALLEL_REGION, region["metadata"]["name"], {"spec": {"width": width}})


def serving(world: World) -> int:
    """Return the width at which the region serves."""
    (region,) = world.objects(PARALLEL_REGION)
    return int(region["status"]["width"])


def holder(world: World, channel: int) -> Container | None:
    """Return the container of the region's PE in a channel, once it holds shards."""
    for container in world.nodes.containers.values():
        pe = container.pe
        if pe.wanted and pe.wanted.region and pe.wanted.channel == channel and pe.shards:
            return container
    return None


def move_on(seed: int) -> None:
    """Move a shard twice, the second time from a pod that can't say that it runs it."""
    world = World(seed)
    with world.surroundings():
        submit(world, Submission("job", stages=1, max_width=4, width=1))
        world.operators.start()
        world.run(SECONDS)
        resize(world, 2)
        world.run(SECONDS)
        first = holder(world, 1)
        assert first
        assert serving(world) == 2
        before = set(first.pe.shards)
        world.nodes.crash(first.pe.pod["metadata"]["uid"])
        while (second := holder(world, 1)) is None or second is first:
            world.run(0.01)
        second.network.cut = True
        resize(world, 3)
        world.run(SECONDS)
        second.network.cut = False
        world.run(SECONDS)
        assert serving(world) == 3
        assert set(second.pe.shards) < before


SEEDS = range(1, 5)
"""In most of them the third pod starts the shard while the second one still writes."""


def move_on_in_all() -> None:
    """Do so in each of them."""
    for seed in SEEDS:
        move_on(seed)


def test_an_old_release_does_not_count() -> None:
    move_on_in_all()


def test_it_would_be_seen_if_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    accept_old_releases(monkeypatch)
    with pytest.raises(Broken, match="both write for shard"):
        move_on_in_all()
