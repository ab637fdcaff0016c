"""How much the operator writes, counted in a calm simulated cluster: a guard of its performance.

What must be created is created once, and a width change of a large region touches what moves and
nothing else.
"""

from collections import Counter

from tests.simulation.applications import OUTSIDE_PES, Submission
from tests.simulation.fake_resources import FakeResource
from tests.simulation.fake_storage import Change
from tests.simulation.rest import missing
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import CONFIG_MAP, POD
from streamgraft_common.resources import JOB, PARALLEL_REGION, PROCESSING_ELEMENT
from streamgraft_operator.kit import metrics

CHANNELS = 32
PES = OUTSIDE_PES + CHANNELS
LONGEST_SECONDS = 300.0


def writes() -> Counter[str]:
    """Return the operator's API writes so far, by `verb kind`."""
    return Counter(
        {
            f"{sample.labels['verb']} {sample.labels['kind']}": int(sample.value)
            for metric in metrics.API_WRITES.collect()
            for sample in metric.samples
            if sample.name.endswith("_total")
        }
    )


def settle(world: World) -> None:
    """Let time pass until everything is as declared, and the last reports are written."""
    deadline = world.loop.time() + LONGEST_SECONDS
    while left := next(missing(world), None):
        assert world.loop.time() < deadline, left
        world.run(1.0)
    world.run(5.0)


def submitted(world: World) -> None:
    """Bring a job with CHANNELS channels up."""
    submission = Submission("job", stages=1, max_width=2 * CHANNELS, width=CHANNELS)
    world.jobs["job"] = submission
    world.request("POST", CONFIG_MAP, "", submission.bundle_map())
    world.request("POST", JOB, "", submission.manifest())
    world.operators.start()
    settle(world)


def test_submission_creates_each_resource_once() -> None:
    world = World(1)
    with world.surroundings():
        before = writes()
        submitted(world)
        done = writes() - before
    assert {what: count for what, count in done.items() if not what.endswith("Event")} == {
        "create ConfigMap": PES + 2,
        "create Service": PES,
        "create ProcessingElement": PES,
        "create ParallelRegion": 1,
        "create Pod": PES,
        "patch Job": done["patch Job"],
        "patch ParallelRegion": done["patch ParallelRegion"],
        "patch ProcessingElement": done["patch ProcessingElement"],
    }
    # Launched, starting, not ready yet, running: and nothing said twice.
    assert PES * 2 <= done["patch ProcessingElement"] <= PES * 4
    # At most one for each PE that exists, and one for each that is ready.
    assert done["patch Job"] <= PES * 2
    assert done["patch ParallelRegion"] <= PES * 2


def test_width_change_touches_what_moves() -> None:
    world = World(2)
    with world.surroundings():
        submitted(world)
        respecified: set[str] = set()
        written: set[str] = set()

        def note(resource: FakeResource, change: Change) -> None:
            old, new = change.old, change.new
            if resource.plural == PROCESSING_ELEMENT.plural:
                written.add(change.key[1])
                if old and new and old["spec"] != new["spec"]:
                    respecified.add(change.key[1])

        pods = {pod["metadata"]["uid"] for pod in world.objects(POD)}
        world.server.storage.observers.append(note)
        before = writes()
        region = names.region_name("job", "r")
        world.request("PATCH", PARALLEL_REGION, region, {"spec": {"width": CHANNELS + 1}})
        settle(world)
        done = writes() - before
    new = names.pe_name("job", OUTSIDE_PES + CHANNELS)
    status = world.objects(PARALLEL_REGION)[0]["status"]
    moved = status["changes"][-1]["movedShards"]
    assert len(moved) == 1  # 64 shards over 32 channels: one of two shards moves
    assert len(respecified) == 2  # its old owner and its new one
    assert written == respecified
    assert new in written
    creations = {what: count for what, count in done.items() if what.startswith("create")}
    assert creations == {
        "create ConfigMap": 1,
        "create Service": 1,
        "create ProcessingElement": 1,
        "create Pod": 1,
        "create Event": done["create Event"],
    }
    assert done["patch ProcessingElement"] <= 6
    assert sum(done.values()) < 40
    assert pods < {pod["metadata"]["uid"] for pod in world.objects(POD)}
