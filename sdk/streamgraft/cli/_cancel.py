"""`streamgraft cancel`."""

import asyncio

from streamgraft.cli import _output as output
from streamgraft.cli._cluster import Cluster, connected, until
from streamgraft.cli._options import Target
from streamgraft_common import names
from streamgraft_common.conditions import find
from streamgraft_common.kube import ApiError, NotFound, Unreachable
from streamgraft_common.resources import JOB, JobStatus


def run(target: Target, job: str, timeout_seconds: float) -> None:
    """Delete the job and its bundle; a job that does not exist is already cancelled."""
    asyncio.run(_cancel(target, job, timeout_seconds))


async def _cancel(target: Target, job: str, timeout_seconds: float) -> None:
    async with connected(target) as cluster:
        existed = await cancel(cluster, job, timeout_seconds)
        output.say(f"Job {job} is gone" if existed else f"There is no job {job} in {cluster.place}")
        output.result({"job": job, "namespace": cluster.namespace, "existed": existed})


async def cancel(cluster: Cluster, job: str, timeout_seconds: float) -> bool:
    """Delete a job and its bundle, wait until they are gone; return whether there was a job."""
    path = JOB.path(cluster.namespace, job)
    existed = await _delete(cluster, path)
    told = output.Told()
    if existed:
        told.say(
            f"Job {job} in {cluster.place} ends:"
            " its pods stop after their batches, then its topics go"
        )

    async def gone() -> bool:
        try:
            item = await cluster.client.find(path)
        except (ApiError, Unreachable) as error:
            if not error.passes:
                raise
            told.say(str(error))  # the job goes all the same
            return False
        status = JobStatus.model_validate((item or {}).get("status") or {})
        waits = find(status.conditions, "KafkaAvailable")
        if waits and waits.reason == "DeletionWaits":
            told.say(waits.message)
        return item is None

    await until(f"job {job} is deleted, but not gone", gone, timeout_seconds)
    # Last, since the operator reads it for as long as there is a job.
    await _delete(cluster, cluster.core("configmaps", names.bundle_config_map(job)))
    return existed


async def _delete(cluster: Cluster, path: str) -> bool:
    try:
        await cluster.client.delete(path)
    except NotFound:
        return False
    return True
