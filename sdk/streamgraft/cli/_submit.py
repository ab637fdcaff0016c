"""`streamgraft submit`: build, upload, apply, and wait."""

import asyncio
import base64
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgraft._builder import check_size
from streamgraft.cli import _output as output
from streamgraft.cli._building import built
from streamgraft.cli._cluster import MANAGER, Cluster, connected, not_installed, until
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft.cli._refusal import (
    check_stays,
    check_submission,
    parameters_of,
    refuse_deleted,
)
from streamgraft.cli._restored import outlived
from streamgraft.cli._resubmitted import submitted, warnings
from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.bundle import read_bundle
from streamgraft_common.conditions import WITHOUT_BUNDLE, find
from streamgraft_common.kube import NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, JobStatus
from streamgraft_common.resources.base import Condition
from streamgraft_common.state_plans import foreign_values
from streamgraft_common.timestamps import to_rfc3339

EXIT_SOURCES_MISSING = 3
"""Exit code: the job waits for source topics that nobody has created."""
_UNCHANGED_SECONDS = 10.0
"""For how long a status that was there before may still be about the last submission."""


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    application: Path
    name: str | None = None
    parameters: tuple[str, ...] = ()
    """KEY=VALUE each."""
    widths: tuple[str, ...] = ()
    """KEY=VALUE each."""
    include: tuple[Path, ...] = ()
    create_topics: bool = False
    drop_state: tuple[str, ...] = ()
    """Operators whose state an edit may drop."""
    changed_streams: tuple[str, ...] = ()
    """Streams whose columns an edit may change."""
    image: str | None = None
    """Of the job's pods; None: the operator's."""


def run(target: Target, request: Request, wait_seconds: float | None) -> None:
    """Submit; with `wait_seconds` wait until the job is healthy."""
    data, adl = read_request(request)
    check_size(data)
    job = job_name(request, adl)
    spec = requested_spec(request, adl, job)
    if request.create_topics:
        spec["createTopics"] = True
    asyncio.run(_submit(target, request, job, data, spec, wait_seconds))


def requested_spec(request: Request, adl: Adl, job: str) -> dict[str, Any]:
    """Return the spec of the Job, as far as it decides what becomes of what runs."""
    spec = job_spec(adl, job, request.parameters, request.widths, request.image)
    allowed = {"dropState": request.drop_state, "changedStreams": request.changed_streams}
    return spec | {name: list(found) for name, found in allowed.items() if found}


def job_spec(
    adl: Adl,
    job: str,
    parameters: Iterable[str],
    widths: Iterable[str],
    image: str | None = None,
) -> dict[str, Any]:
    """Return the spec of the Job: nothing but what was asked for.

    Raises CommandError for a parameter or region that the application doesn't have.
    """
    spec: dict[str, Any] = {"bundle": {"configMap": {"name": names.bundle_config_map(job)}}}
    values = dict(pairs("--param", parameters))
    if unknown := sorted(set(values) - set(adl.parameters)):
        raise CommandError(
            f"{adl.name} has no parameter {', '.join(unknown)}:"
            f" it has {', '.join(adl.parameters) or 'none'}"
        )
    if values:
        spec["parameters"] = values
    chosen = {name: _width(adl, name, text) for name, text in pairs("--width", widths)}
    if chosen:
        spec["regions"] = {name: {"width": width} for name, width in chosen.items()}
    if image:
        spec["image"] = image
    return spec


def read_request(request: Request) -> tuple[bytes, Adl]:
    """Return the bundle that is meant, built for its parameters if need be, and its description."""
    if not request.application.exists():
        raise CommandError(f"{request.application}: there is no such file")
    if not request.application.is_file():
        raise CommandError(
            f"{request.application}: name the Python file that holds the application, or its bundle"
        )
    if request.application.suffix == ".py":
        values = dict(pairs("--param", request.parameters))
        bundle = built(request.application, request.include, values)
        for notice in bundle.notices:
            output.warn(notice)
        return bundle.data, bundle.adl
    data = request.application.read_bytes()
    return data, read_bundle(data).adl


def built_again(request: Request, adl: Adl, values: Mapping[str, str]) -> bytes | None:
    """Return the bundle for a job of these values; None if the one that there is will do, or is
    not ours to build. Others than the request may set parameters, in the Job or in a savepoint."""
    if request.application.suffix != ".py" or not foreign_values(adl, values):
        return None
    known = {name: value for name, value in values.items() if name in adl.parameters}
    return built(request.application, request.include, known).data


def job_name(request: Request, adl: Adl) -> str:
    """Return the name of the job. Raises CommandError if it can't be one."""
    name = request.name or adl.name
    if len(name) > names.MAX_JOB_NAME or not re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name):
        raise CommandError(
            f"{name!r} is no job name: use at most {names.MAX_JOB_NAME} lower-case letters,"
            " digits and hyphens, beginning with a letter"
        )
    return name


def pairs(option: str, items: Iterable[str]) -> list[tuple[str, str]]:
    """Return names and values. Raises CommandError for an item that is not written like this."""
    return [_pair(option, item) for item in items]


def _pair(option: str, item: str) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    if not name or not equals:
        raise CommandError(f"{option} {item}: write it as NAME=VALUE")
    return name, value


def _width(adl: Adl, name: str, text: str) -> int:
    regions = {region.name: region for region in adl.regions}
    if name not in regions:
        raise CommandError(
            f"--width {name}={text}: {adl.name} has no such region:"
            f" it has {', '.join(regions) or 'none'}"
        )
    largest = regions[name].max_width
    if not text.isdecimal() or not 1 <= int(text) <= largest:
        raise CommandError(f"--width {name}={text}: use a number from 1 to {largest}")
    return int(text)


async def _submit(
    target: Target,
    request: Request,
    job: str,
    data: bytes,
    spec: dict[str, Any],
    wait_seconds: float | None,
) -> None:
    async with connected(target) as cluster:
        await refuse_deleted(cluster, job)
        values = await parameters_of(cluster, job, spec, read_bundle(data).adl)
        data = built_again(request, read_bundle(data).adl, values) or data
        bundle = read_bundle(data)
        # Nothing is stored, and no bundle replaced, of a Job that the API server would not take.
        tried = await apply(cluster, job, spec, bundle.digest, dryRun="All")
        before = await check_submission(cluster, tried, bundle)
        for warning in warnings(job, before, bundle.adl, values):
            output.warn(warning)
        await upload(cluster, job, data)
        applied = await apply(cluster, job, spec, bundle.digest)
        applied = await _let_go(cluster, applied, bundle.adl)
        output.say(submitted(job, cluster.place, before, bundle.adl))
        if wait_seconds is not None:
            await wait_healthy(cluster, applied, bundle.digest, wait_seconds)
            output.say(f"Job {job} is healthy")
        output.result(await cluster.client.get(JOB.path(cluster.namespace, job)))


async def _let_go(cluster: Cluster, job: Object, adl: Adl) -> Object:
    """Return a Job without the regions of its savepoint that the application lacks.

    Behind the bundle, as without their widths the application before would be planned anew.
    """
    if not (gone := outlived(job, adl)):
        return job
    output.say(f"Settings of regions that the application lacks go: {', '.join(gone)}")
    path = JOB.path(cluster.namespace, job["metadata"]["name"])
    return await cluster.client.patch(path, {"spec": {"regions": dict.fromkeys(gone)}})


async def upload(
    cluster: Cluster,
    job: str,
    data: bytes,
    suite: Mapping[str, Any] | None = None,
    **query: str,
) -> None:
    """Put a bundle where the operator finds that of the job; it goes with it, or with a suite."""
    name = names.bundle_config_map(job)
    metadata: dict[str, Any] = {"name": name, "labels": {names.LABEL_JOB: job}}
    if suite:
        own = suite["metadata"]
        metadata["labels"] = {names.LABEL_TEST_SUITE: own["name"]}
        owner = {key: suite[key] for key in ("apiVersion", "kind")}
        metadata["ownerReferences"] = [owner | {key: own[key] for key in ("name", "uid")}]
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "binaryData": {names.BUNDLE_KEY: base64.b64encode(data).decode()},
    }
    await cluster.client.apply(cluster.core("configmaps", name), body, MANAGER, **query)


def manifest(cluster: Cluster, job: str, spec: dict[str, Any], digest: str) -> Object:
    """Return a Job that runs the bundle with this sha256, as submitted now."""
    pinned = {**spec, "bundle": {**spec["bundle"], "digest": digest}}
    submitted = {names.ANNOTATION_SUBMITTED: to_rfc3339(time.time())}
    return JOB.manifest(job, cluster.namespace, pinned, annotations=submitted)


async def apply(
    cluster: Cluster, job: str, spec: dict[str, Any], digest: str, **query: str
) -> Object:
    """Apply a Job that runs the bundle with this sha256. Raises CommandError for one that goes: it
    takes what is applied, and goes all the same."""
    body = manifest(cluster, job, spec, digest)
    try:
        path = JOB.path(cluster.namespace, job)
        applied = await cluster.client.apply(path, body, MANAGER, **query)
    except NotFound as error:
        if not_installed(error):
            raise CommandError(
                "this cluster doesn't know Streamgraft's resources: install the operator first"
            ) from error
        raise
    check_stays(applied)
    return applied


async def wait_healthy(cluster: Cluster, applied: Object, digest: str, wait_seconds: float) -> None:
    """Wait until a Job that was applied is healthy with this bundle. Raises CommandError."""
    path = JOB.path(cluster.namespace, applied["metadata"]["name"])
    begun = time.monotonic()
    told, problem = output.Told(), "the job was submitted, but is not healthy"
    generation = applied["metadata"]["generation"]
    submission = applied["metadata"]["annotations"][names.ANNOTATION_SUBMITTED]
    missing = held = False

    async def healthy() -> bool:
        nonlocal missing, held
        job = await cluster.client.get(path)
        status = JobStatus.model_validate(job.get("status") or {})
        current = status.observed_generation >= generation
        unchanged = job.get("status") == applied.get("status")
        soon = time.monotonic() < begun + _UNCHANGED_SECONDS
        old = unchanged and soon
        ours = current and not old
        accepted = find(status.conditions, "Accepted")
        about = (accepted.observed_generation or 0) if accepted else generation
        taken_up = about >= generation and (accepted is None or accepted.status == "True")
        refusal = accepted.message if accepted and _is_refusal(accepted) else None
        refused = ours and about >= generation and refusal is not None
        held = ours and not taken_up and not refused
        missing = ours and taken_up and _sources_missing(status)
        if status.phase == "Failed" and ours:
            raise CommandError(f"the job failed: {status.message}")
        if refused:
            raise CommandError(f"refused, and what ran before goes on: {refusal}")
        told.say(f"{status.phase}: {status.message}")
        # An older operator does not tell, nor one that was asked by somebody else meanwhile.
        seen = status.image_submission == submission or not soon
        well = status.phase == "Healthy" and status.bundle_digest == digest
        return current and taken_up and seen and well

    try:
        await until(problem, healthy, wait_seconds)
    except CommandError as error:
        if not (missing or held):
            raise
        code = EXIT_SOURCES_MISSING if missing else error.exit_code
        raise CommandError(f"{error}: {told.last}", code) from error


def _is_refusal(accepted: Condition) -> bool:
    """Return whether a spec is not accepted for a reason that does not pass by itself."""
    return accepted.status == "False" and accepted.reason not in WITHOUT_BUNDLE


def _sources_missing(status: JobStatus) -> bool:
    condition = find(status.conditions, "SourcesAvailable")
    return condition is not None and condition.status == "False"
