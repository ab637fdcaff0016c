"""What may happen to a world: users who edit and delete anything, and everything that breaks.

Each fault is a function of the world; it takes all its chance from there. A seed uses some of them
only, so that each gets seeds in which it meets few others.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.simulation.applications import NAMESPACE, POOL, TAG, Submission, host_pool
from tests.simulation.fake_resources import place_of
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import CONFIG_MAP, POD, SERVICE, Kind
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import HOST_POOL, JOB, PARALLEL_REGION, PROCESSING_ELEMENT

_GONE: Object = {"metadata": {"deletionTimestamp": ""}}
Fault = Callable[[World], None]


# Users.


def submit(world: World, submission: Submission) -> None:
    """Upload the bundle, then create or change the Job, as `streamgraft submit` does."""
    world.note(f"user: submits {submission}")
    world.jobs[submission.job] = submission
    upload(world, submission)
    apply(world, JOB, submission.manifest())
    if submission.pooled:
        world.loop.later(world.chance.random() * 20, _make_host_pool, world)


def upload(world: World, submission: Submission) -> None:
    """Upload the bundle alone."""
    apply(world, CONFIG_MAP, submission.bundle_map())


def apply(world: World, kind: Kind, manifest: Object) -> None:
    """Apply an object as a user does."""
    path = kind.path(NAMESPACE, manifest["metadata"]["name"])
    query = {"fieldManager": "user", "force": "true"}
    world.server.request("PATCH", path, manifest, query, "application/apply-patch+yaml")


def any_submission(world: World, job: str) -> Submission:
    """Return one that nobody has submitted yet."""
    chance = world.chance
    stages = chance.choice([1, 1, 1, 2])
    max_width = chance.choice([2, 3, 4]) if stages == 1 else 2
    found = Submission(
        job,
        stages,
        max_width,
        width=chance.randint(1, 2),
        deadline=chance.choice([120, 300]),
        pooled=chance.random() < 0.2,
        strategy=chance.choice(["handover", "handover", "handover", "savepoint"]),
        extra={"warmPool": chance.choice([0, 0, 1, 2])},
    )
    # No chance of its own: seeds give the traces that they gave before regions could sleep.
    sleepy = found.deadline == 120 and max_width < 4
    consistent = found.width == 2
    if stages > 1 and world.joint:  # where two shards move, they move at once or one by one
        found = replace(found, max_width=3)
    return replace(
        found,
        sleepy=sleepy,
        consistent=consistent,
        falls_back=world.rolls_back,
        joint=world.joint,
    )


def edit_job(world: World) -> None:
    """Change the code, a parameter, or a setting."""
    if (submission := _any_job(world)) is None:
        return
    speed, version = world.chance.randint(1, 3), world.chance.randint(1, 2)
    extra = submission.extra
    if world.chance.random() < 0.3:
        extra = {**extra, "warmPool": world.chance.randint(0, 2)}
    sleepy = submission.sleepy and speed < 3
    submit(world, replace(submission, speed=speed, version=version, extra=extra, sleepy=sleepy))


def edit_operators(world: World) -> None:
    """Submit a version with an operator more or less in its region, each of which is a PE.

    As long as a job begins from a savepoint, the operator refuses what its state does not fit.
    """
    submission = _any_job(world)
    if submission and submission.max_width == 2 and has_begun(world, submission):
        submit(world, replace(submission, stages=3 - submission.stages))


def edit_region(world: World) -> None:
    """Change what the Job says of its region; the width is that which new regions begin with."""
    if submission := _any_job(world):
        strategy = world.chance.choice(["handover", "savepoint"])
        width = world.chance.randint(1, submission.max_width)
        submit(world, replace(submission, strategy=strategy, width=width))


def has_begun(world: World, submission: Submission) -> bool:
    """Return whether a job needs no savepoint, or none any more."""
    status = (world.get(JOB, submission.job) or {}).get("status") or {}
    return "savepoint" not in submission.extra or bool(status.get("restored"))


def _any_job(world: World) -> Submission | None:
    submissions = (
        submission
        for submission in world.jobs.values()
        if "deletionTimestamp" not in (world.get(JOB, submission.job) or _GONE)["metadata"]
    )
    found = list(submissions)
    return world.chance.choice(found) if found else None


def cancel_job(world: World) -> None:
    """Delete a Job."""
    if world.jobs:
        delete_job(world, world.chance.choice(list(world.jobs)))


def delete_job(world: World, job: str) -> None:
    """Delete a Job, in the background or waiting for its dependents, then its bundle."""
    policy = world.chance.choice(["Background", "Background", "Foreground"])
    world.note(f"user: deletes job {job}, {policy}")
    del world.jobs[job]
    world.request("DELETE", JOB, job, {"propagationPolicy": policy})


def submit_again(world: World) -> None:
    """Submit a job of a name that is free."""
    free = [job for job in ("job", "other") if not world.get(JOB, job)]
    if free and len(world.jobs) < 2:
        submit(world, any_submission(world, world.chance.choice(free)))


def resize(world: World) -> None:
    """Set the width of a region as an autoscaler does."""
    if regions := world.objects(PARALLEL_REGION):
        region = world.chance.choice(regions)
        least = (region["spec"].get("autoscaling") or {}).get("minWidth", 1)
        width = world.chance.randint(1, region["spec"]["maxWidth"]) - (1 - least)
        world.note(f"user: {region['metadata']['name']} to width {width}")
        world.request(
            "PATCH", PARALLEL_REGION, region["metadata"]["name"], {"spec": {"width": width}}
        )


def delete(kind: Kind) -> Fault:
    """Return the fault that a user deletes some object of a kind that belongs to a job."""

    def fault(world: World) -> None:
        if found := _of_jobs(world, kind):
            if kind is CONFIG_MAP and world.refused:
                return
            name = world.chance.choice(found)["metadata"]["name"]
            world.note(f"user: deletes {kind.kind} {name}")
            world.request("DELETE", kind, name, {"propagationPolicy": "Background"})

    return fault


def delete_by_label(world: World) -> None:
    """A user deletes everything of a kind at once."""
    kind = world.chance.choice([POD, PROCESSING_ELEMENT, SERVICE, CONFIG_MAP])
    if kind is CONFIG_MAP and world.refused:
        return
    for item in _of_jobs(world, kind):
        world.request("DELETE", kind, item["metadata"]["name"], {})
    world.note(f"user: deletes all {kind.plural}")


def lose_bundle(world: World) -> None:
    """A user deletes a bundle and uploads it again after a while."""
    if not world.jobs:
        return
    submission = world.chance.choice(list(world.jobs.values()))
    manifest = submission.bundle_map()
    name = manifest["metadata"]["name"]
    world.note(f"user: deletes bundle {name}")
    world.request("DELETE", CONFIG_MAP, name, {})

    def upload() -> None:
        if world.get(CONFIG_MAP, name) is None:
            newest = world.jobs.get(submission.job, submission)
            place = place_of(CONFIG_MAP.path(NAMESPACE))
            world.server.create(place, newest.bundle_map())

    world.loop.later(world.chance.random() * 20, upload)


def _make_host_pool(world: World) -> None:
    world.note("user: creates the host pool")
    world.request("POST", HOST_POOL, "", host_pool())


def lose_host_pool(world: World) -> None:
    """A user deletes the host pool and creates it again after a while."""
    world.note("user: deletes the host pool")
    world.request("DELETE", HOST_POOL, POOL, {})
    world.loop.later(world.chance.random() * 20, _make_host_pool, world)


def retag_node(world: World) -> None:
    """Take the tag of the host pool's nodes from a node, or give it back; one keeps it."""
    tag = world.chance.choice(["", None])
    world.note("a node gets the tag" if tag == "" else "a node loses the tag")
    patch = {"metadata": {"labels": {f"{names.LABEL_TAG}/{TAG}": tag}}}
    world.server.request("PATCH", "/api/v1/nodes/node-1", patch, {}, "merge-patch")


def edit_content(world: World) -> None:
    """A user changes what the operator wrote into an object."""
    kind = world.chance.choice([PROCESSING_ELEMENT, PARALLEL_REGION, CONFIG_MAP])
    if found := _of_jobs(world, kind):
        name = world.chance.choice(found)["metadata"]["name"]
        world.note(f"user: edits {kind.kind} {name}")
        patch = {"metadata": {"annotations": {names.ANNOTATION_CONTENT: "edited"}}}
        world.request("PATCH", kind, name, patch)


def _of_jobs(world: World, kind: Kind) -> list[Object]:
    return [
        item
        for item in world.objects(kind)
        if names.LABEL_JOB in item["metadata"].get("labels", {})
    ]


# Processes.


def crash_operator(world: World) -> None:
    """Kill a replica at any of its next steps, with whatever it is doing."""
    one = world.chance.choice(world.operators.replicas)
    steps = world.chance.choice([0, 5, 50, 500])
    steps = world.chance.randint(0, steps)
    world.note(f"{one.process.name} crashes after {steps} steps")
    world.operators.crash(one, steps)


def freeze_operator(world: World) -> None:
    """Stop a replica for a time in which others may take over; then it goes on."""
    one = world.chance.choice(world.operators.replicas)
    steps, seconds = world.chance.randint(0, 300), world.chance.random() * 40
    world.note(f"{one.process.name} freezes after {steps} steps for {seconds:.1f} s")
    world.invariants.patience = math.inf
    world.operators.freeze(one, steps, seconds)


def roll_operator(world: World) -> None:
    """Send SIGTERM to a replica."""
    one = world.chance.choice(world.operators.replicas)
    world.note(f"{one.process.name} has to leave")
    world.operators.leave(one)


def cut_operator(world: World) -> None:
    """Take a replica's way to the API server away for a while."""
    one = world.chance.choice(world.operators.replicas)
    seconds = world.chance.random() * 30
    world.note(f"{one.process.name} is cut off for {seconds:.1f} s")
    world.invariants.patience = math.inf
    one.network.cut = True
    world.loop.later(seconds, setattr, one.network, "cut", False)


def crash_pod(world: World) -> None:
    """Let a container end by itself."""
    if uids := sorted(world.nodes.containers):
        uid = world.chance.choice(uids)
        name = world.nodes.containers[uid].pe.pod["metadata"]["name"]
        world.note(f"pod {name} crashes")
        world.nodes.crash(uid)


def sicken_pod(world: World) -> None:
    """Let no shard that a PE starts come to its first batch for a while."""
    if uids := sorted(world.nodes.containers):
        container = world.nodes.containers[world.chance.choice(uids)]
        seconds = world.chance.random() * 60
        world.note(f"pod {container.process.name} is sick for {seconds:.1f} s")
        container.pe.sick = True
        world.loop.later(seconds, setattr, container.pe, "sick", False)


def cut_pod(world: World) -> None:
    """Make a zombie: a PE that works on without hearing of its spec or saying anything."""
    if uids := sorted(world.nodes.containers):
        container = world.nodes.containers[world.chance.choice(uids)]
        seconds = world.chance.random() * 60
        world.note(f"pod {container.process.name} is cut off for {seconds:.1f} s")
        container.network.cut = True
        world.loop.later(seconds, setattr, container.network, "cut", False)


def lose_node(world: World) -> None:
    """Let a kubelet, and perhaps its network, fail; a user then deletes its pod by force.

    If the node never comes back, the cluster evicts the pod instead, which nobody carries out.

    The process works on meanwhile, perhaps for ever, beside the pod that comes in its place.
    """
    if uids := sorted(world.nodes.containers):
        uid = world.chance.choice(uids)
        container = world.nodes.containers[uid]
        seconds = world.chance.choice([world.chance.random() * 60, math.inf])
        name = container.pe.pod["metadata"]["name"]
        world.note(f"the node of pod {name} is lost for {seconds:.1f} s")
        world.nodes.lose(uid, seconds)
        if world.chance.random() < 0.5:
            container.network.cut = True
            world.loop.later(seconds, setattr, container.network, "cut", False)

        def delete() -> None:
            options: dict[str, Any] = {"preconditions": {"uid": uid}}
            if seconds < math.inf:
                options["gracePeriodSeconds"] = 0
            world.note(f"pod {name} is deleted: {options}")
            world.request("DELETE", POD, name, options)

        world.loop.later(world.chance.random() * min(seconds, 60), delete)


def freeze_pod(world: World) -> None:
    """Stop a PE in the middle of whatever it does, as a long garbage collection would."""
    if uids := sorted(world.nodes.containers):
        process = world.nodes.containers[world.chance.choice(uids)].process
        seconds = world.chance.random() * 20
        world.note(f"pod {process.name} freezes for {seconds:.1f} s")
        process.steps_left = world.chance.randint(0, 20)
        world.loop.later(seconds, world.loop.thaw, process)


# Surroundings.


def compact(world: World) -> None:
    """Let the API server forget its history: watches that are behind get 410."""
    world.note("the API server forgets its history")
    world.server.storage.compact()


def kafka_fails(world: World) -> None:
    """Let the brokers refuse some or all calls for a while."""
    world.brokers.unreliable = world.chance.choice([0.3, 1.0])
    seconds = world.chance.random() * 30
    world.note(f"the brokers fail for {seconds:.1f} s")
    world.loop.later(seconds, setattr, world.brokers, "unreliable", 0.0)
