"""`streamgraft logs`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from streamgraft.cli import _output as output
from streamgraft.cli._cluster import Cluster, connected
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft_common import names
from streamgraft_common.kube import ApiError, Unreachable

_LOOK_SECONDS = 2.0
"""Between two looks for new pods."""


def run(target: Target, job: str, pe: str | None, follow: bool, tail: int) -> None:
    """Print the last `tail` lines of each pod, prefixed by its name if there are several.

    `pe`: the id or the name of the processing element that is meant; None: all.
    """
    with suppress(KeyboardInterrupt):
        asyncio.run(_logs(target, job, pe, follow, tail))


async def _logs(target: Target, job: str, pe: str | None, follow: bool, tail: int) -> None:
    async with connected(target) as cluster:
        pods = await _pods(cluster, job, pe)
        if not pods:
            what = f"job {job}" if pe is None else f"processing element {pe} of job {job}"
            raise CommandError(f"{what} has no pods in {cluster.place}")
        if follow:
            await _follow(cluster, job, pe, tail)
            return
        refused: list[ApiError] = []
        for pod in pods:
            try:
                async for line in _lines(cluster, pod, len(pods) > 1, {"tailLines": str(tail)}):
                    output.say(line)
            except ApiError as error:  # one that starts has none, and the others are to be read
                refused.append(error)
                output.warn(f"{pod}: {error.message}")
        if len(refused) == len(pods):
            raise CommandError("no pod has a log yet") from refused[0]


async def _pods(cluster: Cluster, job: str, pe: str | None) -> list[str]:
    items = await cluster.of_job(cluster.core("pods"), job)
    if pe is not None:  # pods of a warm pool keep their names, so those do not tell
        wanted = names.pe_name(job, int(pe)) if pe.isdecimal() else pe
        items = [item for item in items if item["metadata"]["labels"].get(names.LABEL_PE) == wanted]
    return sorted(item["metadata"]["name"] for item in items)


async def _follow(cluster: Cluster, job: str, pe: str | None, tail: int) -> None:
    """Print new lines of all pods, also of those that come later, until the job has none."""
    copies: dict[str, asyncio.Task[None]] = {}
    query = {"tailLines": str(tail), "follow": "true"}
    try:
        while pods := await _pods(cluster, job, pe):
            for pod in pods:
                if pod not in copies:
                    named = pe is None or len(pods) > 1
                    copies[pod] = asyncio.create_task(_copy_begun(cluster, pod, named, query))
            await asyncio.sleep(_LOOK_SECONDS)
    finally:
        for copy in copies.values():
            copy.cancel()


async def _copy_begun(cluster: Cluster, pod: str, named: bool, query: dict[str, str]) -> None:
    """Print the lines of a pod until it has ended. It may still be starting: it has none before its
    container; and what is between us and it may break off."""
    told = ""
    while True:
        try:
            async for line in _lines(cluster, pod, named, query):
                output.say(line)
                query = query | {"tailLines": "0"}  # from here on
            if not await _runs(cluster, pod):
                return
        except ApiError as error:
            if error.code == 404:
                return
            if error.message != told:
                told = error.message
                output.warn(f"{pod}: {told}")
        except Unreachable as error:
            output.warn(f"{pod}: {error}; what it says until it is heard again is left out")
        await asyncio.sleep(_LOOK_SECONDS)


async def _runs(cluster: Cluster, pod: str) -> bool:
    item = await cluster.client.find(cluster.core("pods", pod))
    return item is not None and item.get("status", {}).get("phase") not in ("Succeeded", "Failed")


async def _lines(
    cluster: Cluster, pod: str, named: bool, query: dict[str, str]
) -> AsyncIterator[str]:
    prefix = f"{pod}: " if named else ""
    query = query | {"container": names.PE_CONTAINER}  # there may be sidecars
    async for line in cluster.client.lines(f"{cluster.core('pods', pod)}/log", **query):
        yield prefix + line
