"""What the operator tells Prometheus of the objects that it looks after, from their caches."""

import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from tests.fuzz.adapter_world import NOWHERE
from tests.repositories.servers import free_port

from streamgraft_common.adl import Autoscaling
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    SAVEPOINT,
    JobStatus,
)
from streamgraft_common.resources.base import Condition, CustomKind
from streamgraft_operator.assembly import collectors_of
from streamgraft_operator.job.step import Phase
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.pe.metrics import FailureCounters

ROOT = Path(__file__).parents[2]
JOB_LABELS = {"namespace": "shop", "streams_job": "orders"}
REGION_LABELS = {**JOB_LABELS, "region": "enrich"}
PE_LABELS = {**JOB_LABELS, "pe": "orders-1"}
GOING: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def made(
    kind: CustomKind,
    name: str,
    spec: dict[str, Any],
    status: dict[str, Any] | None = None,
    **metadata: Any,
) -> Object:
    """Return an object of the namespace shop."""
    labels = {"streamgraft.io/job": "orders"}
    item = kind.manifest(name, "shop", spec, resourceVersion="1", labels=labels, **metadata)
    return item | {"status": status or {}}


def job(status: dict[str, Any] | None = None, **metadata: Any) -> Object:
    return made(JOB, "orders", {"bundle": {"file": "/b"}}, status, **metadata)


def element(status: dict[str, Any], **metadata: Any) -> Object:
    spec = {"job": "orders", "peId": 1, "stageName": "s"}
    return made(PROCESSING_ELEMENT, "orders-1", spec, status, **metadata)


def region(status: dict[str, Any], **autoscaling: Any) -> Object:
    spec: dict[str, Any] = {"job": "orders", "region": "enrich", "width": 2, "maxWidth": 8}
    if autoscaling:
        spec["autoscaling"] = Autoscaling(**autoscaling).model_dump(by_alias=True)
    return made(PARALLEL_REGION, "orders-enrich", spec | {"key": ["k"]}, status)


def savepoint(name: str, phase: str, at: str, **spec: Any) -> Object:
    return made(SAVEPOINT, name, {"job": "orders", **spec}, {"phase": phase, "completedAt": at})


def told(*items: Object) -> CollectorRegistry:
    """Return what is told of objects."""
    caches = Caches(NOWHERE, ())
    collections = {
        JOB.kind: caches.jobs,
        PROCESSING_ELEMENT.kind: caches.processing_elements,
        PARALLEL_REGION.kind: caches.regions,
        SAVEPOINT.kind: caches.savepoints,
        CONSISTENT_REGION.kind: caches.consistent_regions,
    }
    for item in items:
        collections[item["kind"]].observe(item)
    registry = CollectorRegistry()
    for collector in collectors_of(caches):
        registry.register(collector)
    return registry


def samples(registry: CollectorRegistry) -> list[Any]:
    """Return all series."""
    return [sample for family in registry.collect() for sample in family.samples]


@pytest.mark.parametrize("phase", ["Pending", "Submitting", "Submitted", "Healthy", "Failed"])
def test_a_job_is_in_one_phase(phase: Phase) -> None:
    found = told(job(JobStatus(phase=phase).to_wire()))
    series = {
        sample.labels["phase"]: sample.value
        for sample in samples(found)
        if sample.name == "streamgraft_job_phase"
    }
    assert series[phase] == 1
    assert sum(series.values()) == 1
    assert len(series) == 5


def test_a_job_of_which_nothing_is_known_yet_is_pending() -> None:
    pending = {**JOB_LABELS, "phase": "Pending"}
    assert told(job()).get_sample_value("streamgraft_job_phase", pending) == 1


def test_a_job_tells_its_conditions_and_how_many_pes_are_ready() -> None:
    conditions = [
        Condition(type="Accepted", status="True", reason="Planned"),
        Condition(type="KafkaAvailable", status="False", reason="Away"),
        Condition(type="SourcesAvailable", status="Unknown", reason="Away"),
    ]
    found = told(job(JobStatus(pe_count=3, ready_pe_count=2, conditions=conditions).to_wire()))
    values = {
        kind: found.get_sample_value("streamgraft_job_condition", {**JOB_LABELS, "type": kind})
        for kind in ("Accepted", "KafkaAvailable", "SourcesAvailable", "Ready")
    }
    assert values == {"Accepted": 1, "KafkaAvailable": 0, "SourcesAvailable": 0, "Ready": None}
    for kind, number in (("wanted", 3), ("ready", 2)):
        labels = {**JOB_LABELS, "kind": kind}
        assert found.get_sample_value("streamgraft_job_pes", labels) == number


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({"phase": "Running"}, 1),
        ({"phase": "Pending"}, 0),
        ({"phase": "Starting"}, 0),
        ({"phase": "Failed", "stopped": {"reason": "PodFailed"}}, 0),
        ({"phase": "Stopped", "stopped": {"reason": "PodDeleted"}}, 0),
        ({"phase": "Stopped", "stopped": {"reason": "PodCompleted"}}, None),
    ],
)
def test_a_pe_is_ready_or_not_unless_it_ended_itself_for_good(
    status: dict[str, Any], ready: int | None
) -> None:
    found = told(job(), element(status))
    assert found.get_sample_value("streamgraft_operator_pe_ready", PE_LABELS) == ready


def test_nothing_is_told_of_what_goes() -> None:
    assert samples(told(job(**GOING), element({}))) == []
    assert samples(told(element({}))) == []
    names = {sample.name for sample in samples(told(job(), element({}, **GOING)))}
    assert "streamgraft_operator_pe_ready" not in names


def test_a_region_tells_its_largest_width_and_its_objective() -> None:
    found = told(region({"width": 1}, max_width=4, latency_seconds=30))
    for kind, channels in (("wanted", 2), ("serving", 1), ("largest", 4)):
        labels = {**REGION_LABELS, "kind": kind}
        assert found.get_sample_value("streamgraft_region_width", labels) == channels
    objective = "streamgraft_region_latency_objective_seconds"
    assert found.get_sample_value(objective, REGION_LABELS) == 30
    plain = told(region({"width": 1}))
    largest = {**REGION_LABELS, "kind": "largest"}
    assert plain.get_sample_value("streamgraft_region_width", largest) == 8
    assert plain.get_sample_value(objective, REGION_LABELS) is None


@pytest.mark.parametrize(
    ("said", "width", "expected"), [("True", 2, 1), ("False", 2, 0), ("True", 0, 0), (None, 2, 0)]
)
def test_a_region_is_skewed_while_it_is_awake(said: Any, width: int, expected: int) -> None:
    """Behind one that fell asleep the condition stays as it was."""
    conditions = [{"type": "Skewed", "status": said, "reason": "R"}] if said else []
    found = told(region({"width": width, "epoch": 3, "conditions": conditions}))
    assert found.get_sample_value("streamgraft_region_skewed", REGION_LABELS) == expected


def test_of_savepoints_the_last_of_each_result_counts() -> None:
    found = told(
        job(creationTimestamp="1970-01-01T00:01:00Z"),
        savepoint("a", "Completed", "1970-01-01T00:02:00Z"),
        savepoint("b", "Completed", "1970-01-01T00:03:00Z"),
        savepoint("c", "Failed", "1970-01-01T00:01:30Z"),
        savepoint("of-an-earlier-job", "Failed", "1970-01-01T00:00:30Z"),
        savepoint("of-a-width-change", "Failed", "1970-01-01T00:04:00Z", region="enrich"),
        savepoint("of-a-cut", "Failed", "1970-01-01T00:04:00Z", consistentRegion="whole"),
        savepoint("under-way", "Saving", "1970-01-01T00:05:00Z"),
    )
    times = {
        sample.labels["result"]: sample.value
        for sample in samples(found)
        if sample.name == "streamgraft_job_savepoint_timestamp_seconds"
    }
    assert times == {"completed": 180, "failed": 90}


def test_a_savepoint_that_is_deleted_is_forgotten() -> None:
    failed = savepoint("a", "Failed", "1970-01-01T00:02:00Z")
    failed["metadata"] |= GOING
    names = {sample.name for sample in samples(told(job(), failed))}
    assert "streamgraft_job_savepoint_timestamp_seconds" not in names


def test_a_consistent_region_tells_the_cuts_that_failed() -> None:
    spec = {"job": "orders", "region": "whole"}
    found = told(made(CONSISTENT_REGION, "orders-whole", spec, {"failedCuts": 2}))
    labels = {**JOB_LABELS, "consistent_region": "whole"}
    assert found.get_sample_value("streamgraft_consistent_region_failed_cuts", labels) == 2


def test_failures_are_counted_from_0_on_until_the_pe_is_gone() -> None:
    name, labels = "streamgraft_operator_pe_failures_total", PE_LABELS
    counters, item = FailureCounters(), element({})
    counters.show(item)
    assert metrics.REGISTRY.get_sample_value(name, labels) == 0
    counters.count(item)
    counters.show(item)
    assert metrics.REGISTRY.get_sample_value(name, labels) == 1
    counters.forget(("shop", "orders-1"))
    assert metrics.REGISTRY.get_sample_value(name, labels) is None
    counters.forget(("shop", "orders-1"))


def test_the_contract_has_what_is_told_of_objects() -> None:
    """All names that tell of a job; what the operator says of itself is not for others."""
    of_objects = {family.name for family in told().collect()}
    counted = {
        f"{family.name}_total"
        for family in metrics.REGISTRY.collect()
        if family.name.removeprefix("streamgraft_operator_")
        in ("pe_failures", "width_changes", "rollbacks")
    }
    text = (ROOT / "docs/develop/contracts.md").read_text()
    section = text.partition("## Metrics of the operator\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| streamgraft_")]
    written = {name for row in rows for name in row.split("|")[1].replace(",", " ").split()}
    assert written == of_objects | counted


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
async def test_an_empty_address_is_all_of_them(address: str) -> None:
    """A kubelet probes the pod's address of IPv4 or of IPv6."""
    if not _has(address):
        pytest.skip("no IPv6 here")
    port = free_port()
    async with metrics.served("", port), aiohttp.ClientSession() as session:
        answer = await session.get(f"http://{address}:{port}/healthz")
        assert await answer.text() == "ok"


def _has(address: str) -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return "." in address
    return True
