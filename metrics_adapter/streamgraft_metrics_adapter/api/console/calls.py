"""What the console asks the API server for, with the token of who is signed in, and nothing else.

So the API server authorizes, admits and audits each call as that user's.
"""

import json
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from streamgraft_common import names
from streamgraft_common.kinds import CONFIG_MAP, POD
from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.kube.store import key_of
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import JOB, PARALLEL_REGION, PROCESSING_ELEMENT, SAVEPOINT
from streamgraft_metrics_adapter.access.authentication import bearer
from streamgraft_metrics_adapter.api.console.graph import (
    View,
    content_of,
    first_of_stages,
    job_line,
    job_view,
    made_of,
)
from streamgraft_metrics_adapter.status import ForbiddenError, UnavailableError

_GRAPHS = 200
"""Graphs that are remembered: they change with an edit only."""
_LOG_BYTES = 2 * 2**20
"""Most of a log that is shown: its lines may have any length."""
_NEWEST_KNOWN = {"resourceVersion": "0"}
"""Lists come from the API server's memory: a thousand PEs cost etcd nothing."""

Graph = dict[str, PeMetadata]


def token_of(authorization: str) -> str:
    """Return the token of a header Authorization. Raises ForbiddenError without one."""
    if (token := bearer(authorization)) is None:
        raise ForbiddenError(
            "the console needs a bearer token: a client certificate can't be passed on"
        )
    return token


class Calls:
    """Reads and writes of users."""

    def __init__(self, cluster: KubeConfig) -> None:
        self._cluster = cluster
        self._graphs: OrderedDict[tuple[Any, ...], Graph] = OrderedDict()

    @asynccontextmanager
    async def as_caller(self, authorization: str) -> AsyncIterator[KubeClient]:
        """Connect with the token of a header Authorization. Raises ForbiddenError without one."""
        token = token_of(authorization)
        try:
            async with KubeClient(self._cluster.of_bearer(token)) as client:
                yield client
        except Unreachable as error:
            raise UnavailableError(str(error)) from error

    async def jobs(self, client: KubeClient, namespace: str) -> list[View]:
        """Return the jobs of a namespace, or ('') of all."""
        listed = await client.get(JOB.path(namespace and quote(namespace)), **_NEWEST_KNOWN)
        return [job_line(item) for item in listed["items"]]

    async def job(self, client: KubeClient, namespace: str, name: str) -> View:
        """Return a job with its stages, PEs and regions."""
        job = await client.get(JOB.path(namespace, name))
        mine = {"labelSelector": f"{names.LABEL_JOB}={name}", **_NEWEST_KNOWN}
        elements = (await client.get(PROCESSING_ELEMENT.path(namespace), **mine))["items"]
        regions = (await client.get(PARALLEL_REGION.path(namespace), **mine))["items"]
        return job_view(job, regions, elements, await self._graph(client, job, elements))

    async def _graph(self, client: KubeClient, job: Object, elements: list[Object]) -> Graph:
        """Return the metadata of a PE of each stage; without the right to read it, of none."""
        firsts = first_of_stages(elements)
        # Whoever may not read it must not get it from the memory of whoever may.
        key = client.config.token, job["metadata"]["uid"], *made_of(firsts)
        if (known := self._graphs.get(key)) is not None:
            return known
        found: Graph = {}
        lasting = True
        for stage, element in firsts.items():
            try:
                item = await client.get(CONFIG_MAP.of(key_of(element)))
                text = item["data"][names.PE_METADATA_KEY]
                metadata = PeMetadata.model_validate(json.loads(text))
            except (ApiError, LookupError, ValueError):
                continue  # a job that is just being submitted, or a right that is missing
            if metadata.stage_name == stage:  # else an edit has just made another stage of this PE
                found[stage] = metadata
            # An edit writes the ConfigMap before the PE: in between the key names the former one.
            lasting = lasting and content_of(item) == content_of(element) != ""
        if lasting and len(found) == len(firsts):
            self._graphs[key] = found
            while len(self._graphs) > _GRAPHS:
                self._graphs.popitem(last=False)
        return found

    async def cancel(self, client: KubeClient, namespace: str, name: str) -> None:
        """Delete a job."""
        await client.delete(JOB.path(namespace, name))

    async def savepoint(self, client: KubeClient, namespace: str, job: str, name: str) -> None:
        """Ask for a savepoint of a job."""
        body = SAVEPOINT.manifest(name, namespace, {"job": job})
        await client.create(SAVEPOINT.path(namespace), body)

    async def log(self, client: KubeClient, namespace: str, pod: str, tail: int) -> str:
        """Return the last lines of a pod's log, as far as they are among its newest 2 MiB."""
        path = f"{POD.path(namespace, pod)}/log"
        newest = bytearray()
        # Not limitBytes: a kubelet counts them from the first of the lines, and omits the newest.
        async for block in client.blocks(path, container=names.PE_CONTAINER, tailLines=str(tail)):
            newest += block
            del newest[:-_LOG_BYTES]
        return newest.decode(errors="replace").removesuffix("\n")
