"""A job as the console draws it: stages, the streams between them, and regions. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streamgraft_common import names
from streamgraft_common.conditions import is_true
from streamgraft_common.kube.client import Object
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import (
    JobStatus,
    ParallelRegionSpec,
    ParallelRegionStatus,
    ProcessingElementSpec,
    ProcessingElementStatus,
)

View = dict[str, Any]


def job_line(item: Object) -> View:
    """Return a job as lists show it."""
    status = JobStatus.model_validate(item.get("status") or {})
    return {
        "namespace": item["metadata"]["namespace"],
        "name": item["metadata"]["name"],
        "created": item["metadata"]["creationTimestamp"],
        "phase": status.phase,
        "pes": status.pe_count,
        "ready": status.ready_pe_count,
        "message": status.message,
        "deleting": "deletionTimestamp" in item["metadata"],
    }


def job_view(
    job: Object,
    regions: Iterable[Object],
    elements: Sequence[Object],
    metadata: Mapping[str, PeMetadata],
) -> View:
    """Return a job with all of its parts; `metadata` by stage, as far as it is known."""
    status = JobStatus.model_validate(job.get("status") or {})
    stages: dict[str, View] = {}
    for item in sorted(elements, key=lambda each: int(each["spec"]["peId"])):
        spec = ProcessingElementSpec.model_validate(item["spec"])
        known = metadata.get(spec.stage_name)
        stage = stages.setdefault(
            spec.stage_name,
            {
                "name": spec.stage_name,
                "region": spec.region,
                "operators": known.operators if known else [],
                "realTime": bool(known and known.real_time),
                "pes": [],
            },
        )
        stage["pes"].append(_element(spec, item))
    return {
        **job_line(job),
        "conditions": [condition.to_wire() for condition in status.conditions],
        "stages": list(stages.values()),
        "streams": streams(metadata.values()),
        "regions": [_region(item) for item in regions],
    }


def streams(stages: Iterable[PeMetadata]) -> list[View]:
    """Return what flows: from a stage or from outside (null), to a stage or out (null)."""
    known = list(stages)
    makers: dict[str, list[str]] = {}
    for pe in known:
        for port in pe.outputs:
            makers.setdefault(port.topic, []).append(pe.stage_name)
    inner = [
        {"from": maker, "to": pe.stage_name, "topic": port.topic}
        for pe in known
        for port in pe.inputs
        for maker in (makers.get(port.topic, [None]) if not port.external else [None])
    ]
    outer = [
        {"from": pe.stage_name, "to": None, "topic": port.topic}
        for pe in known
        for port in pe.outputs
        if port.external
    ]
    return inner + outer


def first_of_stages(elements: Iterable[Object]) -> dict[str, Object]:
    """Return one PE of each stage, by the stage's name: that with the lowest id."""
    found: dict[str, Object] = {}
    for item in sorted(elements, key=lambda each: int(each["spec"]["peId"])):
        found.setdefault(item["spec"]["stageName"], item)
    return found


def content_of(item: Object) -> str:
    """Return the content id that a PE or its ConfigMap carries, '' for none."""
    return str((item["metadata"].get("annotations") or {}).get(names.ANNOTATION_CONTENT, ""))


def made_of(stages: Mapping[str, Object]) -> tuple[tuple[str, str, str], ...]:
    """Return what differs between graphs: stages, the PE of each, and what that is made of."""
    return tuple((name, pe["metadata"]["name"], content_of(pe)) for name, pe in stages.items())


def _element(spec: ProcessingElementSpec, item: Object) -> View:
    status = ProcessingElementStatus.model_validate(item.get("status") or {})
    shards = status.runtime.shards if status.runtime else {}
    busy = [shard.busy for shard in shards.values() if shard.busy is not None]
    lag = [shard.lag for shard in shards.values() if shard.lag is not None]
    return {
        "id": spec.pe_id,
        "name": names.pe_name(spec.job, spec.pe_id),
        "channel": spec.channel,
        "phase": status.phase,
        "pod": status.pod,
        "launches": status.launch_count,
        "shards": sorted(map(int, shards)),
        "busy": max(busy, default=None),
        "lag": sum(lag) if lag else None,
        "message": status.message,
    }


def _region(item: Object) -> View:
    spec = ParallelRegionSpec.model_validate(item["spec"])
    status = ParallelRegionStatus.model_validate(item.get("status") or {})
    return {
        "name": item["metadata"]["name"],
        "region": spec.region,
        "width": spec.width,
        "serving": status.width,
        "maxWidth": spec.max_width,
        "maySleep": spec.may_sleep,
        "resizing": is_true(status.conditions, "Resizing"),
        "changes": [change.to_wire() for change in status.changes],
    }
