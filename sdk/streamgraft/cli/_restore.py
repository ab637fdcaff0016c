"""`streamgraft savepoint restore`: a job that starts from a savepoint.

It is always a new job, with topics and checkpoints of its own: a fork, or one that takes the place
of the job that has the name. Whatever can be refused is refused before anything is stopped.
"""

import asyncio
import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgraft.cli import _output as output
from streamgraft.cli._cancel import cancel
from streamgraft.cli._cluster import Cluster, connected
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft.cli._savepoint import find
from streamgraft.cli._submit import (
    Request,
    apply,
    job_name,
    job_spec,
    read_request,
    upload,
    wait_healthy,
)
from streamgraft_common.bundle import Bundle, read_bundle
from streamgraft_common.kube import NotFound
from streamgraft_common.resources import JOB, SAVEPOINT, InitialState, JobSpec, SavepointStatus
from streamgraft_common.savepoints import NotRestorable, check
from streamgraft_operator.graph import GraphError, Submission
from streamgraft_operator.graph.stages import saved_stages

MANAGER = "streamgraft-restore"
"""Field manager of restored Jobs: a later `submit` leaves alone what only a restore sets."""
_CANCEL_SECONDS = 120.0


@dataclass(frozen=True)
class Restore:
    """What the user asked for. At most one of `job` and `fork` is given."""

    savepoint: str
    application: Path | None = None
    job: str | None = None
    """Job that is replaced. Default: that of the savepoint."""
    fork: str | None = None
    """Name of a further job."""
    parameters: tuple[str, ...] = ()
    widths: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    allow_dropped_state: bool = False


def run(target: Target, restore: Restore, wait_seconds: float | None) -> None:
    """Restore; with `wait_seconds` wait until the job is healthy."""
    if restore.job and restore.fork:
        raise CommandError("--job replaces a job, --as makes a further one: give one of them")
    asyncio.run(_restore(target, restore, wait_seconds))


async def _restore(target: Target, restore: Restore, wait_seconds: float | None) -> None:
    async with connected(target) as cluster:
        status = await find(cluster, restore.savepoint)
        saved = await cluster.client.get(SAVEPOINT.path(cluster.namespace, restore.savepoint))
        if saved["spec"].get("region"):
            raise CommandError(
                f"savepoint {restore.savepoint} has one region only, for a width change: restore"
                " one of a whole job"
            )
        origin = saved["spec"]["job"]
        data = await _bundle(cluster, restore, status, origin)
        bundle = read_bundle(data)
        job = restore.fork or restore.job or origin
        request = Request(Path(), job, restore.parameters, restore.widths)
        name = job_name(request, bundle.adl)
        spec = restored_spec(status, restore, name, bundle)
        _check(cluster.namespace, name, restore, status, spec, bundle)
        exists = await cluster.client.find(JOB.path(cluster.namespace, name)) is not None
        if exists and restore.fork:
            raise CommandError(f"there is a job {name} already: choose another name, or cancel it")
        if exists:
            output.say(f"Cancelling job {name}")
            await cancel(cluster, name, _CANCEL_SECONDS)
        await upload(cluster, name, data)
        applied = await apply(cluster, name, spec, bundle.digest, MANAGER)
        output.say(f"Job {name} starts from savepoint {restore.savepoint}")
        if wait_seconds is not None:
            await wait_healthy(cluster, applied, bundle.digest, wait_seconds)
            output.say(f"Job {name} is healthy")


def restored_spec(
    status: SavepointStatus, restore: Restore, job: str, bundle: Bundle
) -> dict[str, Any]:
    """Return the spec of the new Job: that of the savepoint, but for what was asked for now.

    Raises CommandError for parameters and regions that the application doesn't have.
    """
    asked = job_spec(bundle.adl, job, restore.parameters, restore.widths)
    known = {region.name for region in bundle.adl.regions}
    regions = {
        name: dict(settings)
        for name, settings in status.job_spec.get("regions", {}).items()
        if name in known
    }
    widths = {name: {"width": width} for name, width in status.widths.items() if name in known}
    for name, settings in (*widths.items(), *asked.get("regions", {}).items()):
        regions[name] = {**regions.get(name, {}), **settings}
    parameters = {**status.job_spec.get("parameters", {}), **asked.get("parameters", {})}
    state = InitialState(name=restore.savepoint, allow_dropped_state=restore.allow_dropped_state)
    spec = {**status.job_spec, "bundle": asked["bundle"], "savepoint": state.to_wire()}
    return {
        **spec,
        **({"regions": regions} if regions else {}),
        **({"parameters": parameters} if parameters else {}),
    }


def _check(
    namespace: str,
    job: str,
    restore: Restore,
    status: SavepointStatus,
    spec: dict[str, Any],
    bundle: Bundle,
) -> None:
    """Raise CommandError if the operator would refuse the job."""
    submission = Submission(namespace, job, "", JobSpec.model_validate(spec), bundle, "")
    try:
        stages = saved_stages(submission.plan(submission.widths({})), bundle.adl)
        check(restore.savepoint, status, stages, drop=restore.allow_dropped_state)
    except (GraphError, NotRestorable) as error:
        raise CommandError(str(error)) from error


async def _bundle(
    cluster: Cluster, restore: Restore, status: SavepointStatus, origin: str
) -> bytes:
    """Return the bundle that was given, else that of the job of the savepoint."""
    if restore.application:
        return read_request(Request(restore.application, include=restore.include))[0]
    place = JobSpec.model_validate(status.job_spec).bundle.mounted(origin)
    try:
        if place is None:
            raise CommandError("the job's bundle was a file: name it after the savepoint")
        item = await cluster.client.get(cluster.core("configmaps", place.name))
        return base64.b64decode(item["binaryData"][place.key])
    except (NotFound, KeyError) as error:
        raise CommandError(
            f"the bundle of job {origin} is gone: name the application after the savepoint"
        ) from error
