"""The cluster that a command talks to."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from streamgraft.cli._embedded import running_kubeconfig
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft_common import names
from streamgraft_common.kube import ApiError, KubeClient, load_config
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB

MANAGER = "streamgraft-cli"
"""Field manager of everything that the command line applies."""

_POLL_SECONDS = 0.3


@dataclass(frozen=True)
class Cluster:
    """An open client and the namespace that is meant."""

    client: KubeClient
    namespace: str
    name: str = ""
    """Which cluster it is, for people; empty: nothing is said of it."""

    @property
    def place(self) -> str:
        """The namespace and the cluster, as they are told."""
        return f"namespace {self.namespace}" + (f" of {self.name}" if self.name else "")

    def core(self, plural: str, name: str | None = None) -> str:
        """Return the URL path of a collection of core objects, or of one object."""
        return f"/api/v1/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    async def of_job(self, path: str, job: str) -> list[Object]:
        """Return the objects of a collection that belong to a job."""
        listing = await self.client.get(path, labelSelector=f"{names.LABEL_JOB}={job}")
        items: list[Object] = listing["items"]
        return items


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator[Cluster]:
    """Connect to the target: what was said, else the embedded environment, else kubectl's rules."""
    path = target.kubeconfig
    if target.may_be_embedded:
        path = running_kubeconfig()
    config = load_config(path, target.context)
    name = f"context {config.context}" if config.context else "this pod's cluster"
    if target.may_be_embedded and path:
        name = "the embedded environment"
    async with KubeClient(config, environment_proxies=True) as client:
        yield Cluster(client, target.namespace or config.namespace, name)


async def until(problem: str, done: Callable[[], Awaitable[bool]], timeout_seconds: float) -> None:
    """Ask again and again until the answer is true. Raises CommandError `problem` in the end."""
    deadline = time.monotonic() + timeout_seconds
    while not await done():
        if time.monotonic() > deadline:
            raise CommandError(f"{problem} after {timeout_seconds:.0f} s")
        await asyncio.sleep(_POLL_SECONDS)


async def refuse_unknown(cluster: Cluster, job: str) -> None:
    """Raise CommandError if there is no job of this name."""
    if await cluster.client.find(JOB.path(cluster.namespace, job)) is None:
        raise CommandError(f"there is no job {job} in {cluster.place}")


def not_installed(error: ApiError) -> bool:
    """Return whether an answer means that the cluster doesn't know our kinds at all."""
    return error.code == 404 and "could not find the requested resource" in error.message
