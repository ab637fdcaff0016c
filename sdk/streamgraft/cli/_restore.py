"""`streamgraft savepoint restore`: a job that starts from a savepoint.

It is always a new job, with topics and checkpoints of its own: a fork, or one that takes the place
of the job that has the name. Whatever can be refused is refused before anything is stopped.
"""

import asyncio
import base64
import hashlib
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from streamgraft._builder import MAX_CONFIG_MAP_BYTES, check_size
from streamgraft.cli import _output as output
from streamgraft.cli._cancel import cancel
from streamgraft.cli._cluster import Cluster, connected
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft.cli._restored import MANAGER
from streamgraft.cli._savepoint import find, repeats, status_of
from streamgraft.cli._submit import (
    Request,
    apply,
    built_again,
    job_name,
    job_spec,
    manifest,
    read_request,
    upload,
    wait_healthy,
)
from streamgraft_common.bundle import Bundle, read_bundle
from streamgraft_common.kube import ApiError, NotFound, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, InitialState, JobSpec, SavepointStatus
from streamgraft_common.restore import (
    NotRestorable,
    Redistribution,
    check,
    check_complete,
    check_stays,
    check_whole,
    redistributions,
)
from streamgraft_operator.graph import GraphError, Submission
from streamgraft_operator.graph.sizes import check_sizes
from streamgraft_operator.graph.stages import saved_stages

_SUBMITTED = ("bundle", "parameters")
"""Of a Job's spec, what any `submit` names or takes away."""
_OF_ONE_EDIT = ("dropState", "changedStreams")
"""What was allowed for the last edit before the savepoint, and is for no other."""
_CANCEL_SECONDS = 480.0
"""At least so long the job that is replaced is waited for. The operator waits up to 300 s for its
pods and 120 s for Kafka; who gives up before it does has stopped one job and started none."""


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
    yes: bool = False
    """Whether to go on without asking, whatever it takes."""


def run(target: Target, restore: Restore, timeout_seconds: float, *, wait: bool) -> None:
    """Restore; with `wait` until the job is healthy, or the time is over."""
    if restore.job and restore.fork:
        raise CommandError("--job replaces a job, --as makes a further one: give one of them")
    asyncio.run(_restore(target, restore, timeout_seconds, wait))


async def _restore(target: Target, restore: Restore, seconds: float, wait: bool) -> None:
    async with connected(target) as cluster:
        saved = await find(cluster, restore.savepoint)
        status = status_of(saved)
        _check_savepoint(restore.savepoint, saved, status)
        origin = saved["spec"]["job"]
        job = restore.fork or restore.job or origin
        application = restore.application or Path()
        request = Request(application, job, restore.parameters, restore.widths, restore.include)
        data = await _bundle(cluster, request, status, origin)
        bundle = read_bundle(data)
        name = job_name(request, bundle.adl)
        spec = restored_spec(status, restore, name, bundle)
        data = built_again(request, bundle.adl, spec.get("parameters", {})) or data
        bundle = read_bundle(data)
        file = bundle_file(status, bundle) if len(data) > MAX_CONFIG_MAP_BYTES else None
        if file is None:
            check_size(data)
        else:
            spec["bundle"] = {"file": file}
        work = _checked(cluster.namespace, name, restore, status, spec, bundle)
        exists = await cluster.client.find(JOB.path(cluster.namespace, name)) is not None
        if exists and restore.fork:
            raise CommandError(f"there is a job {name} already: choose another name, or cancel it")
        if exists:
            await _tried(cluster, name, spec, data if file is None else None, bundle.digest)
        else:
            await apply(cluster, name, spec, bundle.digest, dryRun="All")
        replaced = f"{name} in {cluster.place}" if exists else None
        _announce(notes(status, work, spec), replaced, yes=restore.yes)
        with _replacing(name, restore, data) if exists else nullcontext():
            if exists:
                output.say(f"Cancelling job {name}")
                await cancel(cluster, name, max(seconds, _CANCEL_SECONDS))
            if file is None:
                await upload(cluster, name, data)
            applied = await apply(cluster, name, spec, bundle.digest)
        await _keep(cluster, name, spec)
        output.say(f"Job {name} in {cluster.place} starts from savepoint {restore.savepoint}")
        if wait:
            await wait_healthy(cluster, applied, bundle.digest, seconds)
            output.say(f"Job {name} is healthy")
        output.result(await cluster.client.get(JOB.path(cluster.namespace, name)))


def _check_savepoint(name: str, saved: Object, status: SavepointStatus) -> None:
    """Raise CommandError if no job can start from a savepoint."""
    try:
        check_whole(name, saved["spec"])
        check_stays(name, saved["metadata"])
        check_complete(name, status)
    except NotRestorable as error:
        raise CommandError(str(error)) from error


def restored_spec(
    status: SavepointStatus, restore: Restore, job: str, bundle: Bundle
) -> dict[str, Any]:
    """Return the spec of the new Job: that of the savepoint, as far as the application still has
    what it is about, but for what was asked for now.

    Raises CommandError for parameters and regions that the application doesn't have.
    """
    asked = job_spec(bundle.adl, job, restore.parameters, restore.widths)
    known = {region.name for region in bundle.adl.regions}
    regions = {
        name: dict(settings)
        for name, settings in (status.job_spec.get("regions") or {}).items()
        if name in known
    }
    widths = {name: {"width": width} for name, width in status.widths.items() if name in known}
    for name, settings in (*widths.items(), *asked.get("regions", {}).items()):
        regions[name] = {**regions.get(name, {}), **settings}
    saved = (status.job_spec.get("parameters") or {}).items()
    parameters = {name: value for name, value in saved if name in bundle.adl.parameters}
    parameters |= asked.get("parameters", {})
    state = InitialState(name=restore.savepoint, allow_dropped_state=restore.allow_dropped_state)
    spec = {**status.job_spec, "bundle": asked["bundle"], "savepoint": state.to_wire()}
    for name in ("regions", "parameters", *_OF_ONE_EDIT):
        spec.pop(name, None)
    return {
        **spec,
        **({"regions": regions} if regions else {}),
        **({"parameters": parameters} if parameters else {}),
    }


def bundle_file(status: SavepointStatus, bundle: Bundle) -> str | None:
    """Return the path from which the job of the savepoint ran this very bundle, None if it ran
    another one, or from elsewhere. What is at the path by now is not known here."""
    if bundle.digest != status.bundle_digest:
        return None
    return JobSpec.model_validate(status.job_spec).bundle.file


async def _keep(cluster: Cluster, job: str, spec: dict[str, Any]) -> None:
    """Hold on to what the savepoint alone says of a Job that was applied as `submit` does: the next
    `submit` would take it away."""
    kept = {name: value for name, value in spec.items() if name not in _SUBMITTED}
    body = JOB.manifest(job, cluster.namespace, kept)
    await cluster.client.apply(JOB.path(cluster.namespace, job), body, MANAGER)


def _checked(
    namespace: str,
    job: str,
    restore: Restore,
    status: SavepointStatus,
    spec: dict[str, Any],
    bundle: Bundle,
) -> list[Redistribution]:
    """Return whose state is dealt out anew.

    Raises CommandError if the operator would refuse the job.
    """
    submission = Submission(namespace, job, "", JobSpec.model_validate(spec), bundle, "")
    try:
        topology = submission.topology(submission.widths({}))
        stages = saved_stages(topology, bundle.adl)
        check_sizes(topology, stages)
        check(restore.savepoint, status, stages, drop=restore.allow_dropped_state)
        return redistributions(status.stages, stages)
    except (GraphError, NotRestorable) as error:
        raise CommandError(str(error)) from error


def announced(work: Redistribution, channels: int) -> str:
    """Return what is said of a redistribution before it begins."""
    seconds = work.seconds(channels)
    return (
        f"Stage {work.stage}: the state of {work.old_groups} key groups"
        f" ({work.size_bytes:,} bytes) is dealt out to {work.new_groups};"
        f" {work.read_bytes:,} bytes are read for it by {channels} channels,"
        f" which takes about {max(1, round(seconds)):,} s. Records wait so long"
    )


def notes(status: SavepointStatus, work: list[Redistribution], spec: dict[str, Any]) -> list[str]:
    """Return what the user has to know before anything is stopped."""
    regions = spec.get("regions", {})
    found = [announced(item, regions.get(item.region, {}).get("width", 1)) for item in work]
    return [note for note in (repeats(status), _place(spec, status), *found) if note]


def _place(spec: dict[str, Any], status: SavepointStatus) -> str:
    """Return what has to be true of a bundle that is not uploaded; '' of one that is."""
    if (file := spec["bundle"].get("file")) is None:
        return ""
    return (
        f"The bundle is too large to be uploaded. The job reads it from {file}, as that of the"
        f" savepoint did, and starts only if that file still has the sha256 {status.bundle_digest}"
    )


def is_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty()


def _announce(notes: list[str], replaced: str | None, *, yes: bool) -> None:
    """Say what the user has to know, and ask whether to go on; `replaced`: the job that goes.

    Without a terminal nobody can be asked: raises CommandError then if a job would go unasked.
    """
    for note in notes:
        output.say(note)
    if yes or not (notes or replaced):
        return
    if is_terminal():
        goes = (
            f"Job {replaced} is cancelled and started anew from the savepoint. " if replaced else ""
        )
        typer.confirm(f"{goes}Go on?", abort=True, err=True)
    elif replaced:
        raise CommandError(
            f"job {replaced} would be cancelled and started anew from the savepoint, and without a"
            " terminal nobody can be asked: say --yes, or --as NAME for a further job"
        )


async def _tried(
    cluster: Cluster, job: str, spec: dict[str, Any], data: bytes | None, digest: str
) -> None:
    """Raise CommandError if the API server would not take the new Job, or the bundle `data`.

    The Job is tried under another name: for the one that is there it would be an edit, and no edit
    sets a savepoint.
    """
    body = manifest(cluster, job, spec, digest)
    body["metadata"]["generateName"] = f"{body['metadata'].pop('name')}-"
    try:
        if data is not None:
            await upload(cluster, job, data, dryRun="All")
        await cluster.client.create(JOB.path(cluster.namespace), body, dryRun="All")
    except ApiError as error:
        # The job that is replaced leaves its place in a quota to the new one.
        if "exceeded quota" not in error.message:
            raise CommandError(
                f"the cluster would not take the job that replaces {job}: {error}"
            ) from error


@contextmanager
def _replacing(job: str, restore: Restore, data: bytes) -> Iterator[None]:
    """From the end of the old job until the start of the new one: whatever ends it early, say how
    to go on.

    The job's bundle goes with it. One that nobody has named is kept in a file meanwhile.
    """
    again, kept = "run this command again", None
    if restore.application is None:
        handle, path = tempfile.mkstemp(prefix=f"{job}-", suffix=".zip")
        with open(handle, "wb") as file:
            file.write(data)
        kept = Path(path)
        again += f" with {kept}, which is the job's bundle, behind the savepoint"
    try:
        yield
    except (CommandError, ApiError, Unreachable) as error:
        raise CommandError(f"{error}, so a new job may not have started: {again}") from error
    except BaseException:  # somebody does not want to wait any longer
        output.warn(f"job {job} goes, and a new job may not have started: {again}")
        raise
    if kept:
        kept.unlink()


async def _bundle(
    cluster: Cluster, request: Request, status: SavepointStatus, origin: str
) -> bytes:
    """Return the bundle that was given, else that of the job of the savepoint."""
    if request.application.name:
        return read_request(request)[0]
    place = JobSpec.model_validate(status.job_spec).bundle.mounted(origin)
    if place is None:
        raise CommandError(
            "the job's bundle was a file: name it, or a copy of it, after the savepoint"
        )
    try:
        item = await cluster.client.get(cluster.core("configmaps", place.name))
        data = base64.b64decode(item["binaryData"][place.key])
    except (NotFound, KeyError) as error:
        raise CommandError(
            f"the bundle of job {origin} is gone: name the application after the savepoint"
        ) from error
    # A later submission has overwritten it, also one that the operator refused.
    if (digest := hashlib.sha256(data).hexdigest()) != status.bundle_digest:
        raise CommandError(
            f"the bundle of job {origin} is another one by now (sha256 {digest}) than the"
            f" savepoint's ({status.bundle_digest}): name the application that you want after the"
            " savepoint"
        )
    return data
