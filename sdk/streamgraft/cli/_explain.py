"""`streamgraft explain region`: every input, the decision, and what would change it."""

import asyncio
from collections.abc import Iterator
from typing import Any

from streamgraft.cli import _output as output
from streamgraft.cli._cluster import Cluster, connected
from streamgraft.cli._installation import signal_path
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError
from streamgraft_common import names
from streamgraft_common.adl import Autoscaling
from streamgraft_common.conditions import find, is_ready
from streamgraft_common.content import Content
from streamgraft_common.kube import NotFound
from streamgraft_common.resources import (
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    JobSpec,
    JobStatus,
    ParallelRegionSpec,
    PoolHeld,
    PoolReason,
    ProcessingElementStatus,
)
from streamgraft_operator.manifests.pod_settings import pool_memory

Facts = dict[str, Any]
_REPLAYED: Facts = {
    "exclude_defaults": True,
    "exclude": {"mode", "periods", "utilization_weights"},
}
"""Settings of a region that a replay has to be told."""
_WHY: dict[PoolReason, str] = {
    "Asked": "the job asks for them",
    "Expected": "the policy expects to need them within half an hour",
    "LargestStep": "the largest step of the last day took so many",
    "NewRegion": "a region is new, and all counts that it may grow",
    "OneChannel": "enough for one more channel, the least",
    "Widest": "no region may grow any further",
    "NoneFits": "new channels ask for pods of their own, which no pool has",
}
"""How large a pool should be, by the reason in the Job's status."""
_HELD: dict[PoolHeld, str] = {
    "NotCalm": "a width changes, or processing elements do not run yet",
    "Behind": "processing elements are behind, for which the pool waits three minutes at most",
    "NoRoom": "a processing element finds no node with room, which is not to be taken from it",
    "DriverFailed": "one that was to wait has failed within the last minute",
    "Refused": "the API server refuses their pods, as with a quota; the operator's log says why",
}


def run(target: Target, name: str, form: str) -> None:
    """Print the explanation of a region; for programs what the adapter says, and the HPAs."""
    facts = asyncio.run(_read(target, name))
    if form == "text":
        output.say("\n".join(explanation(facts)))
    else:
        output.document(facts, form)


async def _read(target: Target, name: str) -> Facts:
    async with connected(target) as cluster:
        region = await _region(cluster, name)
        autoscalers = await cluster.client.get(
            f"/apis/autoscaling/v2/namespaces/{cluster.namespace}/horizontalpodautoscalers"
        )
        elements = await _of_region(cluster, region, PROCESSING_ELEMENT.path(cluster.namespace))
        pods = await _of_region(cluster, region, cluster.core("pods"))
        ours = f"{names.LABEL_JOB}={region['job']}"
        path = PARALLEL_REGION.path(cluster.namespace)
        regions = (await cluster.client.get(path, labelSelector=ours))["items"]
        pool = await _pool(cluster, region["job"], regions, elements, pods)
        apart = _apart(elements)
    specs: list[Facts] = [item["spec"] for item in regions if item["metadata"]["name"] == name]
    mine = [
        item
        for item in autoscalers["items"]
        if item["spec"]["scaleTargetRef"]["name"] == name
        and item["spec"]["scaleTargetRef"]["kind"] == "ParallelRegion"
    ]
    return {
        "region": region,
        "autoscaling": specs[0].get("autoscaling") if specs else None,
        "autoscalers": mine,
        "warmPool": pool,
        "queryPerShard": apart,
    }


async def _of_region(cluster: Cluster, region: Facts, path: str) -> list[Facts]:
    selector = f"{names.LABEL_JOB}={region['job']},{names.LABEL_REGION}={region['region']}"
    items: list[Facts] = (await cluster.client.get(path, labelSelector=selector))["items"]
    return items


def _apart(items: list[Facts]) -> dict[str, str]:
    """Return what PEs say, by stage, that run a query per shard though one for all was planned."""
    found = {}
    for item in items:
        status = ProcessingElementStatus.model_validate(item.get("status") or {})
        said = find(status.conditions, "QueryShared")
        if said and said.status == "False":
            found[item["spec"]["stageName"]] = said.message
    return found


async def _region(cluster: Cluster, name: str) -> Facts:
    # The API server passes it on: who sees signals needs no way to the adapter's own port.
    path = signal_path(cluster.namespace, name, names.EXPLANATION)
    try:
        return await cluster.client.get(path)
    except NotFound as error:
        if f"{cluster.namespace}/{name}" in error.message:
            raise CommandError(f"no region {name} in {cluster.place}") from error
        raise CommandError(
            "the cluster has no metrics adapter of this release, which alone can explain it:"
            " `streamgraft doctor` says who serves the metrics"
        ) from error


async def _pool(
    cluster: Cluster, job: str, regions: list[Facts], elements: list[Facts], pods: list[Facts]
) -> Facts:
    """Return the size of a job's warm pool as it was asked for, what the operator says of it, how
    many regions it goes by, how many of it wait ready, and what the region's PEs and pods would
    have wait: how many kinds of drivers, and their memory."""
    item = await cluster.client.find(JOB.path(cluster.namespace, job))
    spec = JobSpec.model_validate(item["spec"]) if item else None
    told = JobStatus.model_validate((item or {}).get("status") or {}).warm_pool
    selector = f"{names.LABEL_JOB}={job},{names.LABEL_POOL}={names.POOL_WARM}"
    waiting = (await cluster.client.get(cluster.core("pods"), labelSelector=selector))["items"]
    ready = [pod for pod in waiting if is_ready(pod)]
    contents = (item["metadata"]["annotations"][names.ANNOTATION_CONTENT] for item in elements)
    return {
        "size": spec.warm_pool if spec and spec.warm_pool is not None else "auto",
        "told": told.to_wire() if told else None,
        "regions": sum(
            scales_itself(ParallelRegionSpec.model_validate(item["spec"])) for item in regions
        ),
        "memory": spec.warm_pool_memory if spec else None,
        "drivers": len(waiting),
        "ready": len(ready),
        "kinds": len({Content.parse(content).driver for content in contents}),
        "driverBytes": min(map(pool_memory, pods), default=None),
    }


def scales_itself(region: ParallelRegionSpec) -> bool:
    """Return whether a pool that finds its own size goes by a region: awake, with an autoscaling
    that does more than advise."""
    asked = region.autoscaling
    return region.width > 0 and asked is not None and asked.mode == "scale"


def explanation(facts: Facts) -> Iterator[str]:
    """Yield the lines: the region as the adapter's REST tells it, what it asks of an autoscaler,
    the HPAs that scale it, the warm pool of its job, and what stages say that run more queries than
    planned."""
    region, autoscalers, pool = facts["region"], facts["autoscalers"], facts["warmPool"]
    yield (
        f"Region {region['name']}: width {region['width']} wanted, {region['serving']} serving,"
        f" {region['maxWidth']} at most" + (", changing" if region["resizing"] else "")
    )
    if region["asleep"]:
        yield from _asleep(region["signals"]["demand"], autoscalers)
    yield ""
    yield "Signals"
    for name, signal in region["signals"].items():
        if signal.get("value") is None:
            yield f"  {name:<32} none: {signal['reason']}: {signal['message']}"
        else:
            yield f"  {name:<32} {signal['value']:.4g}"
    yield ""
    deciding = [name for item in autoscalers for name in _metrics(item)]
    yield from _demand(region["signals"]["demand"], decides=not deciding or "demand" in deciding)
    yield ""
    for item in autoscalers:
        yield from _autoscaler(item)
    if not autoscalers:
        yield "No HorizontalPodAutoscaler scales it: give the region an autoscaling, or make one"
    yield from _waiting(pool)
    apart = sorted(facts["queryPerShard"].items())
    yield from (f"Stage {stage}: {message}" for stage, message in apart)
    yield from _trial(region, Autoscaling.model_validate(facts["autoscaling"] or {}))


def _waiting(pool: Facts) -> Iterator[str]:
    """Yield what waits for the next step up, how much should, and what keeps the rest from it."""
    has = f"Warm pool of the job: {pool['ready']} of {pool['drivers']} drivers wait ready;"
    told = pool["told"]
    if pool["size"] != "auto":
        yield f"{has} the job asks for {pool['size']}"
    elif not pool["regions"]:
        yield (
            f"{has} none is asked for, since no region of the job is awake and has an autoscaling"
            " with mode scale: give warmPool a number"
        )
    elif told is None:
        yield f"{has} the operator has not said yet how many should"
    elif told["size"] < told["needed"]:
        takes = pool["driverBytes"]
        one = f" (one takes {takes / 2**20:.0f}Mi)" if takes else ""
        yield (
            f"{has} {told['needed']} should ({_WHY[told['reason']]}), but warmPoolMemory, which is"
            f" {pool['memory']}, has room for {told['size']}{one}"
        )
    else:
        yield f"{has} {told['size']} should: {_WHY[told['reason']]}"
    if told and told["held"]:
        yield f"  none is started now: {_HELD[told['held']]}"
    if pool["kinds"] > 1:
        kinds = f"of the {pool['kinds']} kinds of drivers of a channel"
        yield f"  {kinds} it has one: the others start cold"


def _asleep(demand: Facts, autoscalers: list[Facts]) -> Iterator[str]:
    yield "It sleeps: it has no pods, and records wait in Kafka"
    waking = [item["metadata"]["name"] for item in autoscalers if _wakes(item)]
    if not waking:
        yield "Only a width that somebody sets wakes it (streamgraft scale): an autoscaler takes 0"
        yield "for one that a user set, unless it was the one that put the region to sleep"
    elif demand.get("value") is None:
        yield f"HorizontalPodAutoscaler {waking[0]} can't wake it while the demand has no value"
    else:
        yield f"HorizontalPodAutoscaler {waking[0]} wakes it as soon as a record waits or arrives"


def _wakes(autoscaler: Facts) -> bool:
    """Return whether it put the region to sleep: otherwise it takes 0 for one that a user set."""
    conditions = (autoscaler.get("status") or {}).get("conditions") or []
    return any(item["type"] == "ScaledToZero" and item["status"] == "True" for item in conditions)


def _demand(signal: Facts, *, decides: bool) -> Iterator[str]:
    if signal.get("value") is None:
        yield "The demand has no value" + (", so the width is held" if decides else "")
        return
    inputs = signal["inputs"]
    policy, around = inputs["policy"], inputs["surroundings"]
    for index, stage in inputs["stages"].items():
        yield f"Stage {index}" + (", which decides" if index == inputs["stage"] else "")
        yield from _stage(stage, around)
    yield (
        f"Asked for: {policy['min_width']} to {policy['max_width']} channels,"
        f" {policy['target_utilization']:.0%} busy, {policy['headroom']:.0%} headroom, backlog gone"
        f" in {policy['catch_up_seconds']:g} s; a width change pauses a shard for"
        f" {policy['pause']['seconds']:.2g} s ({policy['pause']['changes']} measured)"
    )
    yield _price(policy["price"])
    if forecast := around["forecast"]:
        yield (
            f"Forecast: up to {max(forecast['rates'][:4]):,.0f} records/s in the next hour and"
            f" {max(forecast['rates']):,.0f} in the next day (error lately {forecast['error']:.0%},"
            " for which channels keep room)"
        )
    yield f"The load needs {inputs['needed']} channels, headroom included"
    name = "Decision" if decides else "The demand, by which nothing is decided here"
    yield f"{name}: width {signal['value']:g}"
    yield from (f"  because {reason}" for reason in inputs["held"])


def _price(price: Facts) -> str:
    seconds = price["per_channel_of_peak"]
    worth = f"{price['channel_seconds']:.0f} s of a channel" if seconds is None else "what was"
    return f"A width change has to save {worth} ({price['reason']})"


def load_query(namespace: str, job: str, region: str) -> str:
    """Return the PromQL of the records/s that arrive at a region.

    Not every offset has a record (transactions end in markers): their share is told by the PEs,
    but not by those of former releases.
    """
    labels = {"namespace": namespace, "streams_job": job, "region": region, "stage": "0"}
    chosen = ",".join(f'{name}="{value}"' for name, value in labels.items())
    ends = f"max by (topic, partition) (streamgraft_pe_input_end_offset{{{chosen}}})"
    offsets = f"clamp_min(sum(deriv(({ends})[1m:15s])), 0)"
    rows, gaps = (
        f"sum(increase(streamgraft_pe_input_{name}_total{{{chosen}}}[5m]))"
        for name in ("rows", "gaps")
    )
    share = f"clamp_min(1 / (1 + {gaps} / {rows}), 0.5)"
    return f"{offsets} * ({share} >= 0) or {offsets}"


def _trial(region: Facts, asked: Autoscaling) -> Iterator[str]:
    """Yield how to try settings on the region's own load, once its capacity is known: those that it
    has come first, as what others are to be compared with."""
    model = region.get("model")
    if model is None:
        return
    query = load_query(region["namespace"], region["job"], region["region"])
    options = {
        "true-rate": model["trueRate"],
        "shards": region["maxWidth"],
        "loss-per-channel": model["lossPerChannel"],
        "largest-shard": model["largestShard"],
        "median-shard": model["medianShard"],
        "batch": model["batchSeconds"],
        "batch-cost": model["batchCostSeconds"],
        "launch": model["launchSeconds"],
        "pause": model["pauseSeconds"],
        "objective": min(asked.catch_up_seconds, asked.latency_seconds or asked.catch_up_seconds),
    }
    words = [f"--{name} {value:.6g}" for name, value in options.items()]
    words += [f"--set {key}={value}" for key, value in asked.model_dump(**_REPLAYED).items()]
    yield ""
    yield "To try other settings on its recorded load, add --set KEY=VALUE to"
    yield f"  streamgraft replay PROMETHEUS_URL {' '.join(words)} --query '{query}'"
    if asked.periods:
        yield "  (which knows nothing of its periods)"


def _stage(stage: Facts, around: Facts) -> Iterator[str]:
    load, capacity, fit = stage["load"], stage["load"]["capacity"], stage["fit"]
    yield (
        f"  {load['input_rate']:,.1f} records/s arrive, {load['lag']:,.0f} are not committed,"
        f" {stage['backlog']:,.0f} of them wait; the fullest shard gets {load['largest_shard']:.0%}"
        + (f", half of them {median:.1%} at most" if (median := load["median_shard"]) < 1 else "")
    )
    if capacity is None or fit is None:
        yield "  there is no work, or nothing is known yet of what a channel can do"
        return
    yield (
        f"  a busy channel does {capacity['true_rate']:,.1f} records/s (seen at width"
        f" {capacity['width']}, {capacity['busy_share']:.0%} load or more);"
        f" {stage['work']:,.1f} records/s are to be done: {stage['channels']:.2f} channels' worth"
    )
    if around["width"] == 0:
        yield "  it has no channel: with any work it wakes up"
        return
    busy, grows, narrower = (stage[it] for it in ("busy_share", "grows_above", "narrower_below"))
    above = f"grows above {grows:,.0f} records/s of work" if grows else "does not grow any further"
    below = f" and fewer channels do below {narrower:,.0f} records/s" if narrower else ""
    yield (
        f"  at width {around['width']} its fullest channel is {busy:.0%} busy; the width"
        f" {above}{below}"
    )


def _metrics(autoscaler: Facts) -> Iterator[str]:
    """Yield the names of what an HPA goes by."""
    for metric in autoscaler["spec"].get("metrics") or []:
        kind = metric["type"]
        source = metric[kind[0].lower() + kind[1:]]
        yield source["name"] if "metric" not in source else source["metric"]["name"]


def _autoscaler(item: Facts) -> Iterator[str]:
    spec, status = item["spec"], item.get("status") or {}
    yield (
        f"HorizontalPodAutoscaler {item['metadata']['name']}: {spec.get('minReplicas', 1)} to"
        f" {spec['maxReplicas']}; it sees {status.get('currentReplicas')}, wants"
        f" {status.get('desiredReplicas')}; it goes by {' and '.join(_metrics(item))}"
    )
    for condition in status.get("conditions") or []:
        yield f"  {condition['type']} {condition['status']}: {condition['message']}"
    for direction, word in (("scaleUp", "grow"), ("scaleDown", "shrink")):
        rules = (spec.get("behavior") or {}).get(direction) or {}
        if rules.get("selectPolicy") == "Disabled":
            yield f"  it only advises: it does not {word} the region"
        elif seconds := rules.get("stabilizationWindowSeconds"):
            yield f"  to {word}, the need must last for {seconds} s"
