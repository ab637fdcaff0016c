"""What must hold once faults have stopped: the declared state, without the operator's code."""

from collections.abc import Iterator
from typing import Any

from tests.simulation.applications import (
    FOREIGN_TOPIC,
    NAMESPACE,
    POOL,
    SINK_TOPIC,
    SOURCE_TOPIC,
    TAG,
    Submission,
    adl_of,
    service_port,
)
from tests.simulation.fake_checkpoints import metadata_of
from tests.simulation.fake_nodes import launch_of
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.code import code_of_pe
from streamgraft_common.kinds import CONFIG_MAP, NODE, POD, SERVICE
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    HOST_POOL,
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    SAVEPOINT,
)

KINDS = (
    JOB,
    PROCESSING_ELEMENT,
    PARALLEL_REGION,
    CONSISTENT_REGION,
    SAVEPOINT,
    POD,
    CONFIG_MAP,
    SERVICE,
)


def missing(world: World) -> Iterator[str]:
    """Tell everything that is not as it was declared."""
    for submission in world.jobs.values():
        yield from _job(world, submission)
    for item in world.objects(SAVEPOINT):
        if (status := item.get("status") or {}).get("phase") not in ("Completed", "Failed"):
            said = status.get("phase"), status.get("message")
            yield f"savepoint {item['metadata']['name']} is {said}"
        elif status.get("parked"):
            yield f"savepoint {item['metadata']['name']} keeps {status['parked']} from running"
    yield from _leftovers(world)


def _job(world: World, wanted: Submission) -> Iterator[str]:
    job = world.get(JOB, wanted.job)
    region = world.get(PARALLEL_REGION, names.region_name(wanted.job, "r"))
    if job is None or region is None:
        yield f"job {wanted.job} or its region does not exist"
        return
    status = job.get("status") or {}
    if status.get("phase") != "Healthy":
        yield f"job {wanted.job} is {status.get('phase')}: {status.get('message')}"
    if status.get("observedGeneration") != job["metadata"]["generation"]:
        yield f"job {wanted.job} has another generation than the one observed"
    width = region["spec"]["width"]
    yield from _region(region)
    if wanted.consistent:
        yield from _consistent_region(world, wanted)
    expected = {names.pe_name(wanted.job, pe_id) for pe_id in wanted.pe_ids(width)}
    for kind, extra in (
        (PROCESSING_ELEMENT, set()),
        (SERVICE, {names.service(wanted.job, "api")} if wanted.serves else set()),
        (CONFIG_MAP, {names.job_config_map(wanted.job), names.accepted_config_map(wanted.job)}),
    ):
        if (have := _named(world, kind, wanted.job)) != expected | extra:
            yield f"{kind.plural} are {sorted(have)}, not {sorted(expected | extra)}"
            return
    if wanted.serves:
        service = world.get(SERVICE, names.service(wanted.job, "api"))
        if service and service["spec"]["ports"][0]["port"] != service_port(wanted.version):
            yield f"the Service of job {wanted.job} has ports {service['spec']['ports']}"
    for name in sorted(expected):
        yield from _pe(world, wanted, region, name)
    yield from _warm_pool(world, wanted)
    if wanted.pooled:
        yield from _placement(world, wanted)


def _region(region: Object) -> Iterator[str]:
    name, spec, status = region["metadata"]["name"], region["spec"], region.get("status") or {}
    conditions = {item["type"]: item["status"] for item in status.get("conditions", [])}
    if conditions.pop("Asleep", "False") != str(spec["width"] == 0):
        yield f"region {name} of width {spec['width']} tells otherwise in its condition Asleep"
    if conditions != {"Ready": "True", "Resizing": "False"}:
        yield f"region {name} has conditions {conditions}"
    if status.get("width") != spec["width"]:
        yield f"region {name} serves at width {status.get('width')}, not {spec['width']}"
    owned = list((status.get("assignment") or {}).values())
    loads = [owned.count(channel) for channel in range(spec["width"])]
    if not (loads or owned):
        return
    if len(owned) != spec["maxWidth"] or max(loads) - min(loads) > 1 or sum(loads) != len(owned):
        yield f"region {name} assigns {status.get('assignment')}"


def _consistent_region(world: World, wanted: Submission) -> Iterator[str]:
    item = world.get(CONSISTENT_REGION, names.region_name(wanted.job, "c"))
    if item is None:
        yield f"the consistent region of job {wanted.job} does not exist"
        return
    status = item.get("status") or {}
    if status.get("state") not in ("Running", "Starting"):
        yield f"the consistent region of job {wanted.job} is {status.get('state')}"
    cuts = [cut["savepoint"] for cut in status.get("cuts", [])]
    there = [
        item["metadata"]["name"]
        for item in world.objects(SAVEPOINT)
        if item["spec"]["job"] == wanted.job and item["spec"].get("consistentRegion")
    ]
    if sorted(cuts) != sorted(there) or len(cuts) > 2:
        yield f"the consistent region of job {wanted.job} has cuts {cuts}, there are {there}"


def _pe(world: World, wanted: Submission, region: Object, name: str) -> Iterator[str]:
    pe = world.get(PROCESSING_ELEMENT, name)
    assert pe is not None
    pods = [
        pod for pod in world.objects(POD) if pod["metadata"]["labels"].get(names.LABEL_PE) == name
    ]
    if len(pods) != 1 or launch_of(pods[0]) != pe["status"]["launchCount"]:
        yield f"PE {name} at launch {pe['status']['launchCount']} has pods {_names(pods)}"
        return
    if "saving" in pe["spec"]:
        yield f"PE {name} is still to copy for {pe['spec']['saving']}"
    container = world.nodes.containers.get(pods[0]["metadata"]["uid"])
    if container is None or not container.process.alive:
        yield f"pod {pods[0]['metadata']['name']} does not run"
        return
    if not container.pe.metadata:
        yield f"PE {name} has no content"
        return
    metadata = metadata_of(container.pe.metadata)
    code = code_of_pe(adl_of(wanted.digest), wanted.digest, metadata)
    have = metadata.code, container.pe.code, metadata.parameters["speed"]
    if have != (code, code, str(wanted.speed)):
        yield f"PE {name} runs outdated content"
    shards = _shards(pe, region)
    if not all(world.invariants.alone(container.pe, shard) for shard in shards):
        yield f"PE {name} is not the only one that writes for its shards"
    if set(container.pe.shards) != shards or set(pe["spec"]["shards"]) != shards:
        yield f"PE {name} runs shards {sorted(container.pe.shards)}, not {sorted(shards)}"
    said = (pe["status"].get("runtime") or {}).get("shards", {})
    if {int(shard) for shard, entry in said.items() if entry["state"] == "Running"} != shards:
        yield f"PE {name} says of its shards {said}"


def _placement(world: World, wanted: Submission) -> Iterator[str]:
    pool = world.get(HOST_POOL, POOL)
    tag = f"{names.LABEL_TAG}/{TAG}"
    all_nodes = [item["metadata"] for item in world.objects(NODE)]
    tagged = [metadata["name"] for metadata in all_nodes if tag in metadata["labels"]]
    nodes = ((pool or {}).get("status") or {}).get("nodes", [])
    if len(nodes) != 1 or nodes[0] not in tagged:
        yield f"the host pool has the nodes {nodes} of {tagged}"
    for pod in world.objects(POD):
        labels = pod["metadata"]["labels"]
        of_region = labels.get(names.LABEL_JOB) == wanted.job and names.LABEL_REGION in labels
        if of_region and "nodeAffinity" not in pod["spec"].get("affinity", {}):
            yield f"pod {pod['metadata']['name']} may run outside of the host pool"


def _warm_pool(world: World, wanted: Submission) -> Iterator[str]:
    pool = [
        pod
        for pod in world.objects(POD)
        if (labels := pod["metadata"]["labels"]).get(names.LABEL_JOB) == wanted.job
        and names.LABEL_PE not in labels
    ]
    if len(pool) != wanted.warm_pool:
        yield f"the warm pool of job {wanted.job} is {_names(pool)}, not {wanted.warm_pool} pods"
    for pod in pool:
        container = world.nodes.containers.get(pod["metadata"]["uid"])
        if container is None or not container.process.alive or not container.pe.warm:
            yield f"pod {pod['metadata']['name']} of the warm pool is not warm"


def _shards(pe: Object, region: Object) -> set[int]:
    if (channel := pe["spec"].get("channel")) is None:
        return {0}
    assignment: dict[str, Any] = region["status"].get("assignment", {})
    return {int(shard) for shard, owner in assignment.items() if owner == channel}


def _leftovers(world: World) -> Iterator[str]:
    for kind in KINDS:
        for item in world.objects(kind):
            metadata = item["metadata"]
            label = metadata.get("labels", {}).get(names.LABEL_JOB)
            job = metadata["name"] if kind is JOB else label
            if job is not None and job not in world.jobs:
                yield f"{kind.kind} {metadata['name']} of a deleted job is left"
    kept = tuple(f"{NAMESPACE}.{job}." for job in world.jobs)
    for topic in world.brokers.topics:
        if topic not in (SOURCE_TOPIC, SINK_TOPIC, FOREIGN_TOPIC) and not topic.startswith(kept):
            yield f"topic {topic} of a deleted job is left"
    if FOREIGN_TOPIC not in world.brokers.topics:
        yield f"topic {FOREIGN_TOPIC}, which no job made, is gone"


def _named(world: World, kind: Any, job: str) -> set[str]:
    return {
        item["metadata"]["name"]
        for item in world.objects(kind)
        if item["metadata"].get("labels", {}).get(names.LABEL_JOB) == job
    }


def _names(items: list[Object]) -> list[str]:
    return [item["metadata"]["name"] for item in items]
