"""`streamgraft logs`."""

import asyncio
from contextlib import suppress

from streamgraft.cli import _output as output
from streamgraft.cli._cluster import Cluster, connected
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft_common import names


def run(target: Target, job: str, pe: int | None, follow: bool, tail: int) -> None:
    """Print the last `tail` lines of each pod, prefixed by its name if there are several."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_logs(target, job, pe, follow, tail))


async def _logs(target: Target, job: str, pe: int | None, follow: bool, tail: int) -> None:
    async with connected(target) as cluster:
        pods = [
            item["metadata"]["name"] for item in await cluster.of_job(cluster.core("pods"), job)
        ]
        if pe is not None:
            pods = [pod for pod in pods if pod.startswith(f"{names.pe_name(job, pe)}-")]
        if not pods:
            what = f"job {job}" if pe is None else f"processing element {pe} of job {job}"
            raise CommandError(f"{what} has no pods in namespace {cluster.namespace}")
        query = {"tailLines": str(tail), **({"follow": "true"} if follow else {})}
        prefixes = {pod: f"{pod}: " if len(pods) > 1 else "" for pod in sorted(pods)}
        copies = [_copy(cluster, pod, prefix, query) for pod, prefix in prefixes.items()]
        if follow:
            await asyncio.gather(*copies)
        else:
            for copy in copies:
                await copy


async def _copy(cluster: Cluster, pod: str, prefix: str, query: dict[str, str]) -> None:
    async for line in cluster.client.lines(f"{cluster.core('pods', pod)}/log", **query):
        output.say(prefix + line)
