"""`streamgraft savepoint create|list|delete`: the operator and the PEs do the work."""

import asyncio
import re
from datetime import UTC, datetime

from rich.console import Console

from streamgraft.cli import _output as output
from streamgraft.cli._cluster import Cluster, connected, not_installed, refuse_unknown, until
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft.cli._tables import table
from streamgraft_common import names
from streamgraft_common.kube import ApiError, Conflict
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, SAVEPOINT, SavepointSpec, SavepointStatus


def create(target: Target, job: str, name: str | None, timeout_seconds: int) -> None:
    """Take a savepoint of a job, and wait until it is complete."""
    if name and re.search(names.OF_CUTS, name):
        raise CommandError(
            f"savepoint {name}: such names are for cuts and rollbacks of consistent regions, choose"
            " another one"
        )
    asyncio.run(_create(target, job, name or _name(job), timeout_seconds))


def show(target: Target, job: str | None, form: str) -> None:
    """Print the savepoints of a namespace, or those of a job."""
    asyncio.run(_show(target, job, form))


def delete(target: Target, name: str, timeout_seconds: float) -> None:
    """Delete a savepoint, and wait until its files are gone."""
    asyncio.run(_delete(target, name, timeout_seconds))


async def find(cluster: Cluster, name: str) -> Object:
    """Return a savepoint. Raises CommandError if there is none of this name."""
    item = await cluster.client.find(SAVEPOINT.path(cluster.namespace, name))
    if item is None:
        known = [item["metadata"]["name"] for item in await _items(cluster)]
        raise CommandError(
            f"there is no savepoint {name} in {cluster.place}"
            + (f": it has {', '.join(known)}" if known else "")
        )
    return item


def status_of(item: Object) -> SavepointStatus:
    """Return the status of a savepoint."""
    return SavepointStatus.model_validate(item.get("status") or {})


def repeats(status: SavepointStatus) -> str:
    """Return what a restore does twice; '' if nothing."""
    if not status.unclean_shards:
        return ""
    return (
        f"In {status.unclean_shards} of the shards a pod died within a batch: a restore runs it"
        " again, and what it had written already is written, and counted behind it, twice"
    )


def _name(job: str) -> str:
    return f"{job}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


async def _create(target: Target, job: str, name: str, timeout_seconds: int) -> None:
    async with connected(target) as cluster:
        await refuse_unknown(cluster, job)
        spec = SavepointSpec(job=job, timeout_seconds=timeout_seconds)
        body = SAVEPOINT.manifest(name, cluster.namespace, spec)
        try:
            await cluster.client.create(SAVEPOINT.path(cluster.namespace), body)
        except Conflict as error:
            raise CommandError(
                f"there is a savepoint {name} already: choose another name, or delete it"
            ) from error
        output.say(f"Savepoint {name} of job {job} begun")
        status = await _complete(cluster, name, timeout_seconds)
        output.say(
            f"Savepoint {name} is complete: {status.shards} shards, {status.size_bytes:,} bytes;"
            f" the sources stood still for {status.duration_seconds:.1f} s"
        )
        if note := repeats(status):
            output.say(note)
        output.result(await find(cluster, name))


async def _complete(cluster: Cluster, name: str, timeout_seconds: int) -> SavepointStatus:
    last = SavepointStatus()

    async def over() -> bool:
        nonlocal last
        before, last = last, status_of(await find(cluster, name))
        if last.message and last.message != before.message:
            output.say(f"{last.phase}: {last.message}")
        return last.phase in ("Completed", "Failed")

    await until(f"savepoint {name} is not complete", over, timeout_seconds + 30)
    if last.phase == "Failed":
        raise CommandError(f"there is no savepoint: {last.message}; the job goes on")
    return last


async def _items(cluster: Cluster) -> list[Object]:
    try:
        items: list[Object] = (await cluster.client.get(SAVEPOINT.path(cluster.namespace)))["items"]
    except ApiError as error:
        if not_installed(error):
            raise CommandError("this cluster doesn't know Streamgraft's resources") from error
        raise
    return items


async def _show(target: Target, job: str | None, form: str) -> None:
    async with connected(target) as cluster:
        items = [item for item in await _items(cluster) if job in (None, item["spec"]["job"])]
        if job and not items:  # they outlive their job
            await refuse_unknown(cluster, job)
    if form != "text":
        output.document(items, form)
        return
    headings = ["Savepoint", "Job", "Region", "Phase", "Shards", "Bytes", "Seconds", "Created"]
    told = any(status_of(item).message for item in items)
    rows = table("Savepoints", *headings, *(["Message"] if told else []))
    for item in items:
        spec = SavepointSpec.model_validate(item["spec"])
        status = status_of(item)
        metadata = item["metadata"]
        seconds = status.duration_seconds
        rows.add_row(
            metadata["name"],
            spec.job,
            spec.region or "",
            "Deleting" if "deletionTimestamp" in metadata else status.phase,
            str(status.shards),
            f"{status.size_bytes:,}",
            "" if seconds is None else f"{seconds:.1f}",
            metadata["creationTimestamp"],
            *([status.message] if told else []),
        )
    Console().print(rows)


def _refuse_cut(item: Object) -> None:
    """Raise CommandError for a cut of a consistent region, which may have to go back to it."""
    if region := item["spec"].get("consistentRegion"):
        name = item["metadata"]["name"]
        raise CommandError(
            f"savepoint {name} is a cut of consistent region {region}, which keeps as many as its"
            " retainedCuts and deletes the others by itself. Without its newest cut a rollback goes"
            " back further, and sinks that commit make what came between final once more. To delete"
            f" it all the same: kubectl delete savepoint {name}"
        )


async def _refuse_needed(cluster: Cluster, name: str) -> None:
    """Raise CommandError if a job has yet to take what is in a savepoint."""
    for item in (await cluster.client.get(JOB.path(cluster.namespace)))["items"]:
        job, origin = item["metadata"]["name"], item["spec"].get("savepoint") or {}
        begun = (item.get("status") or {}).get("restored", False)
        if origin.get("name") == name and not begun and "deletionTimestamp" not in item["metadata"]:
            raise CommandError(
                f"job {job} starts from savepoint {name}, and not all of its shards have begun:"
                f" wait until the job is healthy, or cancel it (streamgraft cancel {job})"
            )


async def _delete(target: Target, name: str, timeout_seconds: float) -> None:
    async with connected(target) as cluster:
        _refuse_cut(await find(cluster, name))
        await _refuse_needed(cluster, name)
        path = SAVEPOINT.path(cluster.namespace, name)
        await cluster.client.delete(path)
        output.say(f"Savepoint {name} goes: its copies are deleted first")

        async def gone() -> bool:
            return await cluster.client.find(path) is None

        await until(f"savepoint {name} is deleted, but not gone", gone, timeout_seconds)
        output.say(f"Savepoint {name} is gone")
        output.result({"savepoint": name, "namespace": cluster.namespace})
