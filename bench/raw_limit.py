"""What the control plane itself allows: the objects of a job, created and deleted by a bare client.

The objects are exactly those that the operator makes for the job, same content, same number; one
asynchronous process (the operator's own client) keeps CONCURRENCY requests under way. The operator
is stopped and no scheduler takes the pods, so nothing reacts and nothing else loads the machine.
Deletion is one request an object.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.bundle import Bundle
from streamgraft_common.kinds import CONFIG_MAP, POD, SERVICE, Kind
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PARALLEL_REGION, PROCESSING_ELEMENT, JobSpec
from streamgraft_operator import manifests
from streamgraft_operator.application.versions import Version, config_map
from streamgraft_operator.graph import JobContext, Topology, topology_of, with_settings
from streamgraft_operator.manifests.metadata import Owner
from streamgraft_operator.settings import Settings

CONCURRENCY = 32
NAME = "raw"

Planned = list[tuple[Kind, Object]]


@dataclass(frozen=True)
class Limit:
    """Seconds that a bare client needs."""

    objects: int
    """ConfigMaps, Services, ProcessingElements and ParallelRegions; pods come on top."""
    create_s: float
    """Without pods."""
    create_pods_s: float
    delete_s: float
    """Pods included."""


async def measure(client: KubeClient, namespace: str, adl: Adl, spec: JobSpec) -> Limit:
    """Create and delete the objects of a job."""
    body = {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": {"name": NAME}}
    job = await client.create(JOB.path(namespace), {**body, "spec": spec.to_wire()})
    owner = Owner(namespace, NAME, job["metadata"]["uid"], 1)
    topology = topology_of(adl, _context(owner, spec), {})
    settings = Settings("127.0.0.1:9092", {"hostPath": {"path": "/none"}}, "none", Path("/none"))
    resources = _resources(owner, adl, topology, spec, settings)

    async def create(item: tuple[Kind, Object]) -> Object:
        return await client.create(item[0].path(namespace), item[1])

    async def delete(item: tuple[Kind, Object]) -> Object:
        return await client.delete(item[0].path(namespace, item[1]["metadata"]["name"]))

    create_s = await _timed(create, resources)
    pods = await _pods(client, owner, spec, settings)
    create_pods_s = await _timed(create, pods)
    delete_s = await _timed(delete, [*pods, *resources])
    await client.delete(JOB.path(namespace, NAME))
    return Limit(len(resources), create_s, create_pods_s, delete_s)


async def _timed(
    call: Callable[[tuple[Kind, Object]], Awaitable[Object]],
    items: Iterable[tuple[Kind, Object]],
) -> float:
    rest = iter(items)

    async def work() -> None:
        for item in rest:
            await call(item)

    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(CONCURRENCY):
            group.create_task(work())
    return time.perf_counter() - begin


def _context(owner: Owner, spec: JobSpec) -> JobContext:
    return JobContext(
        namespace=owner.namespace,
        job=owner.name,
        job_uid=owner.uid,
        bundle_digest="0" * 64,
        bootstrap_servers="127.0.0.1:9092",
        fusion=spec.fusion,
    )


def _resources(
    owner: Owner, adl: Adl, topology: Topology, spec: JobSpec, settings: Settings
) -> Planned:
    found: Planned = [
        (PARALLEL_REGION, manifests.parallel_region(owner, spec, topology, region, "0" * 64))
        for region in topology.regions
    ]
    settings_id = manifests.settings_id(spec, settings)
    for pe in topology.pes:
        content_id = str(with_settings(pe.content, settings_id))
        shards = [pe.channel or 0]
        found += [
            (CONFIG_MAP, manifests.pe_config_map(owner, pe, content_id)),
            (SERVICE, manifests.service(owner, pe)),
            (
                PROCESSING_ELEMENT,
                manifests.processing_element(owner, spec, pe, content_id, shards, 1),
            ),
        ]
    version = Version(1, spec.to_wire(), spec, "image", Bundle(adl, "0" * 64))
    found += [
        (CONFIG_MAP, config_map(owner, version)),
        (CONFIG_MAP, manifests.job_config_map(owner, topology.port_labels, [], "0" * 64, {})),
    ]
    return found


async def _pods(client: KubeClient, owner: Owner, spec: JobSpec, settings: Settings) -> Planned:
    selector = f"{names.LABEL_JOB}={owner.name}"
    path = PROCESSING_ELEMENT.path(owner.namespace)
    pes = (await client.get(path, labelSelector=selector))["items"]
    found: Planned = []
    for pe in pes:
        pod = manifests.pod({**pe, "status": {"launchCount": 1}}, owner, spec, settings, None)
        pod["spec"] |= {"schedulerName": "none", "serviceAccountName": "default"}
        found.append((POD, pod))
    return found
