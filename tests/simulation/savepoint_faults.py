"""What users do with savepoints, and what befalls those."""

from collections.abc import Callable
from dataclasses import replace

from tests.simulation.applications import NAMESPACE, Submission
from tests.simulation.fake_pe import FakePe
from tests.simulation.faults import any_submission, delete_job, has_begun, submit
from tests.simulation.world import World

from streamgraft_common.kube.client import Object
from streamgraft_common.resources import CONSISTENT_REGION, JOB, SAVEPOINT

TRIES = 60
"""How often a user looks, every two seconds, whether something is there by now."""


def request_cuts(world: World) -> None:
    """Raise what users ask of consistent regions, every 20 seconds while there are faults.

    In some seeds that is a rollback now and then.
    """
    if not world.faulty:
        return
    for item in world.objects(CONSISTENT_REGION):
        status, name = item.get("status") or {}, item["metadata"]["name"]
        wanted = {"requested": status.get("sequenceId", 0) + 1}
        if world.rolls_back and status.get("cuts"):
            wanted["rollbackRequested"] = status.get("rollbackId", 0) + 1
        world.request("PATCH", CONSISTENT_REGION, name, {"spec": wanted})
    world.loop.later(20.0, request_cuts, world)


def is_healthy(world: World, job: str) -> bool:
    """Return whether a job says that all of it runs."""
    item = world.get(JOB, job) or {}
    return (item.get("status") or {}).get("phase") == "Healthy"


def take_savepoint(world: World) -> None:
    """Create a savepoint of a job: mostly of one that can be saved."""
    if not world.jobs:
        return
    job = world.chance.choice(list(world.jobs))
    if not is_healthy(world, job) and world.chance.random() < 0.8:
        world.loop.later(2.0, take_savepoint, world)
        return
    create_savepoint(world, job, world.chance.choice([20, 60, 300]))


def create_savepoint(world: World, job: str, seconds: int) -> str:
    """Create a savepoint of a job; return its name, which none had before."""
    world.savepoints += 1
    name = f"save-{world.savepoints}"
    world.note(f"user: takes savepoint {name} of {job} within {seconds} s")
    manifest = {
        "apiVersion": SAVEPOINT.api_version,
        "kind": SAVEPOINT.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"job": job, "timeoutSeconds": seconds},
    }
    world.request("POST", SAVEPOINT, "", manifest)
    return name


def delete_savepoint(world: World) -> None:
    """Delete a savepoint, also one that is being written or that a width change waits for.

    But none that a job is to begin from: its shards would wait for ever.
    """
    needed = {
        submission.extra["savepoint"]["name"]
        for submission in world.jobs.values()
        if not has_begun(world, submission)
    }
    found = [item["metadata"]["name"] for item in world.objects(SAVEPOINT)]
    if free := [name for name in found if name not in needed]:
        name = world.chance.choice(free)
        world.note(f"user: deletes savepoint {name}")
        world.request("DELETE", SAVEPOINT, name, {})


def crash_what_stops(world: World) -> None:
    """Take a savepoint, and let pods of stages that stop for it crash in the midst of that."""
    if not (found := [job for job in world.jobs if is_healthy(world, job)]):
        return
    job = world.chance.choice(found)
    name = create_savepoint(world, job, 300)

    def stops(pe: FakePe) -> bool:
        status = (world.get(SAVEPOINT, name) or {}).get("status") or {}
        parked = pe.stage[1] in status.get("parked", ())
        return pe.job == job and parked and bool(pe.shards)

    _crash(world, stops, "stops", world.chance.randint(1, 3), 10 * TRIES)


def crash_what_begins(world: World) -> None:
    """Let pods crash, now or later, while they make checkpoints from a savepoint."""

    def begins(pe: FakePe) -> bool:
        restores = pe.origin is not None and pe.origin.savepoint is not None
        return restores and any(shard.state == "Starting" for shard in pe.shards.values())

    _crash(world, begins, "begins", world.chance.randint(1, 3), 10 * TRIES)


def _crash(
    world: World, which: Callable[[FakePe], bool], why: str, crashes: int, tries: int
) -> None:
    """Look again and again for pods to crash, until there were enough of them."""
    found = [uid for uid, item in sorted(world.nodes.containers.items()) if which(item.pe)]
    if found:
        uid = world.chance.choice(found)
        world.note(f"pod {world.nodes.containers[uid].process.name} crashes while it {why}")
        world.nodes.crash(uid)
        crashes -= 1
    if crashes and tries:
        again = world.chance.random() * 0.4
        world.loop.later(again, _crash, world, which, why, crashes, tries - 1)


def restore_savepoint(world: World) -> None:
    """Start a job from a savepoint: a further one, or one in the place of one that there is."""
    complete = [item for item in world.objects(SAVEPOINT) if _is_whole(item)]
    if complete:
        _restore(world, world.chance.choice(complete))
    elif world.jobs:
        job = world.chance.choice(list(world.jobs))
        if is_healthy(world, job):
            _restore_when_complete(world, create_savepoint(world, job, 300), TRIES)


def _restore_when_complete(world: World, name: str, tries: int) -> None:
    item = world.get(SAVEPOINT, name)
    if item and _is_whole(item):
        _restore(world, item)
    elif item and tries and (item.get("status") or {}).get("phase") != "Failed":
        world.loop.later(2.0, _restore_when_complete, world, name, tries - 1)


def _is_whole(savepoint: Object) -> bool:
    status = savepoint.get("status") or {}
    part = savepoint["spec"].get("region") or savepoint["spec"].get("consistentRegion")
    whole = status.get("phase") == "Completed" and not part
    return whole and "deletionTimestamp" not in savepoint["metadata"]


def _restore(world: World, savepoint: Object) -> None:
    job = world.chance.choice(["job", "other"])
    submission = restored(world, savepoint, job)
    if job in world.jobs:
        delete_job(world, job)
    _submit_when_free(world, submission, TRIES)


def restored(world: World, savepoint: Object, job: str) -> Submission:
    """Return a job that starts from a savepoint, perhaps with other key groups."""
    in_region = [stage for stage in savepoint["status"]["stages"] if stage.get("region")]
    fresh = any_submission(world, job)
    groups = in_region[0]["shards"]
    if world.chance.random() < 0.6:
        groups = world.chance.choice([2, 3, 4])
    # Its sink may have nothing to do at cuts any more.
    drops = {"allowDroppedState": not fresh.consistent}
    origin = {"savepoint": {"name": savepoint["metadata"]["name"], **drops}}
    return replace(
        fresh,
        stages=len(in_region),
        max_width=groups,
        sleepy=False,
        extra={**fresh.extra, **origin},
    )


def _submit_when_free(world: World, submission: Submission, tries: int) -> None:
    """Submit a job once the one that had its name is gone, unless another user was first."""
    taken = submission.job in world.jobs or len(world.jobs) > 1
    savepoint = world.get(SAVEPOINT, submission.extra["savepoint"]["name"])
    if taken or savepoint is None or not _is_whole(savepoint):
        return
    if world.get(JOB, submission.job) is None:
        submit(world, submission)
    elif tries:
        world.loop.later(2.0, _submit_when_free, world, submission, tries - 1)
