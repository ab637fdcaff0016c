"""Jobs on the real API server whose processing elements only say that they run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.metrics_adapter.conftest import JOB as NAME
from tests.metrics_adapter.conftest import REGION

from streamgraft_common import names
from streamgraft_common.kube import KubeClient
from streamgraft_common.pe_metadata import InputPort, OutputPort, PeMetadata
from streamgraft_common.resources import JOB, PROCESSING_ELEMENT


@dataclass(frozen=True)
class Pe:
    """A processing element; those with a channel are the region's."""

    number: int
    stage: str
    reads: tuple[str, ...]
    writes: str
    channel: int | None = None
    busy: float = 0.4
    lag: int = 12

    @property
    def region(self) -> str | None:
        """The region it belongs to."""
        return None if self.channel is None else REGION


TWO = (
    Pe(1, "read", ("flights",), "inner"),
    Pe(0, "enrich", ("inner",), "results", channel=0),
)
"""One that reads, and the region's, which the pod belongs to."""
OTHERS = (
    Pe(1, "read", ("flights",), "departures", busy=0.31, lag=40),
    Pe(2, "weather", ("observations",), "hours", busy=0.06, lag=0),
    Pe(3, "totals", ("enriched",), "delays", busy=0.22, lag=15),
)
CHANNELS = tuple(
    Pe(number, "enrich", ("departures", "hours"), "enriched", channel, busy, lag=0)
    for number, channel, busy in ((0, 0, 0.66), (4, 1, 0.61), (5, 2, 0.71))
)
"""The region's amid `OTHERS`, which read and write what lies around it."""


def _port(topic: str, operator: str, external: bool) -> dict[str, Any]:
    """Return what input and output ports have in common."""
    place = {"stream": "s", "topic": topic, "partitions": None, "bootstrap_servers": "b:1"}
    return {"port": 0, **place, "external": external, "operator": operator}


def _metadata(namespace: str, pe: Pe, job: Sequence[Pe]) -> PeMetadata:
    written = {other.writes for other in job}
    read = {topic for other in job for topic in other.reads}
    return PeMetadata(
        namespace=namespace,
        job=NAME,
        pe_id=pe.number,
        stage_name=pe.stage,
        region=pe.region,
        channel=pe.channel,
        shard_count=4 if pe.region else 1,
        operators=[pe.stage],
        inputs=[InputPort(**_port(topic, pe.stage, topic not in written)) for topic in pe.reads],
        outputs=[OutputPort(**_port(pe.writes, pe.stage, pe.writes not in read))],
        checkpoint_path="p",
        trigger_seconds=1.0,
        bundle_digest="d",
    )


async def play_job(kube: KubeClient, namespace: str, job: Sequence[Pe] = TWO) -> None:
    """Create a job."""
    spec = {"bundle": {"configMap": {"name": "b"}}}
    await kube.create(JOB.path(namespace), JOB.manifest(NAME, namespace, spec))
    await play_elements(kube, namespace, job, job)


async def play_elements(
    kube: KubeClient, namespace: str, fresh: Sequence[Pe], job: Sequence[Pe]
) -> None:
    """Create processing elements of a job, which has these from then on."""
    for pe in fresh:
        name = names.pe_name(NAME, pe.number)
        wanted = {"job": NAME, "peId": pe.number, "stageName": pe.stage}
        wanted |= {"region": pe.region, "channel": pe.channel}
        labels = {names.LABEL_JOB: NAME}
        body = PROCESSING_ELEMENT.manifest(name, namespace, wanted, labels=labels)
        await kube.create(PROCESSING_ELEMENT.path(namespace), body)
        shard = {"state": "Running", "epoch": 1, "busy": pe.busy, "lag": pe.lag}
        status: dict[str, Any] = {"phase": "Running", "launchCount": 1, "pod": f"{name}-1"}
        status["runtime"] = {"shards": {"0": shard}}
        await kube.patch(f"{PROCESSING_ELEMENT.path(namespace, name)}/status", {"status": status})
        text = _metadata(namespace, pe, job).model_dump_json(by_alias=True)
        config_map = {"metadata": {"name": name}, "data": {names.PE_METADATA_KEY: text}}
        await kube.create(f"/api/v1/namespaces/{namespace}/configmaps", config_map)
    counts = {"phase": "Healthy", "peCount": len(job), "readyPeCount": len(job)}
    await kube.patch(f"{JOB.path(namespace, NAME)}/status", {"status": counts})
