"""`streamgraft scale`: through the scale subresource, like `kubectl scale` and the HPA."""

import asyncio

from streamgraft.cli import _output as output
from streamgraft.cli._cluster import Cluster, connected, until
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft_common import names
from streamgraft_common.conditions import find
from streamgraft_common.kube import Invalid, NotFound
from streamgraft_common.resources import PARALLEL_REGION, ParallelRegionSpec, ParallelRegionStatus


def run(target: Target, job: str, region: str, width: int, wait_seconds: float | None) -> None:
    """Set the width; with `wait_seconds` wait until it serves."""
    asyncio.run(_scale(target, job, region, width, wait_seconds))


async def _scale(
    target: Target, job: str, region: str, width: int, wait_seconds: float | None
) -> None:
    async with connected(target) as cluster:
        path = PARALLEL_REGION.path(cluster.namespace, names.region_name(job, region))
        await _check(cluster, path, job, region, width)
        try:
            await cluster.client.patch(f"{path}/scale", {"spec": {"replicas": width}})
        except Invalid as error:
            raise CommandError(f"width {width} was refused: {error.message}") from error
        output.say(f"Region {region} of job {job} in {cluster.place}: width {width} wanted")
        if wait_seconds is not None:
            told = output.Told()
            await until(
                f"width {width} is wanted, but does not serve",
                lambda: _serves(cluster, path, region, width, told),
                wait_seconds,
            )
            output.say(f"Width {width} serves")
        output.result(await cluster.client.get(path))


async def _check(cluster: Cluster, path: str, job: str, region: str, width: int) -> None:
    try:
        found = await cluster.client.get(path)
    except NotFound as error:
        items = await cluster.of_job(PARALLEL_REGION.path(cluster.namespace), job)
        known = [item["spec"]["region"] for item in items]
        raise CommandError(
            f"job {job} in {cluster.place} has no region {region}"
            + (f": it has {', '.join(known)}" if known else "")
        ) from error
    spec = ParallelRegionSpec.model_validate(found["spec"])
    least = 0 if spec.may_sleep else 1
    if not least <= width <= spec.max_width:
        why = "; 0 is for regions whose autoscaling has min_width=0" if width == 0 else ""
        raise CommandError(f"width {width}: use a number from {least} to {spec.max_width}{why}")


async def _serves(cluster: Cluster, path: str, region: str, width: int, told: output.Told) -> bool:
    """Return whether it does, and say what it waits for otherwise.

    Raises CommandError if another width is wanted by now.
    """
    item = await cluster.client.get(path)
    if (wanted := item["spec"]["width"]) != width:
        raise CommandError(
            f"width {wanted} of region {region} was set in the meantime, so {width} is no longer"
            f" awaited: if its autoscaler did it, `streamgraft explain region"
            f" {item['metadata']['name']}` tells why; it lets a width be with mode advise"
        )
    status = ParallelRegionStatus.model_validate(item.get("status") or {})
    current = status.observed_generation >= item["metadata"]["generation"]
    resizing = find(status.conditions, "Resizing")
    if resizing and resizing.status == "True":
        told.say(resizing.message)
        return False
    return current and status.width == width
