"""What a job's settings do to the plan: fusion, task slots, shares of the job's resources."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from streamgraft_common.adl import (
    Adl,
    KafkaEndpoint,
    Operator,
    Placement,
    Region,
    Stream,
)
from streamgraft_common.content import Change, classify
from streamgraft_common.declared_objects import HostPoolDeclaration
from streamgraft_common.quantities import parse
from streamgraft_common.resources import (
    Fusion,
    ProcessingElementSettings,
    Resources,
    Threading,
)
from streamgraft_operator.graph import (
    GraphError,
    JobContext,
    Topology,
    counted_topics,
    topology_of,
)
from streamgraft_operator.graph.shares import divided


def application(restartable: bool = True) -> Adl:
    """Return source → a → b → region of c → d → sink, and a function source → e → sink."""
    kinds: dict[str, dict[str, Any]] = {
        "read": {"kind": "kafka-source", "kafka": KafkaEndpoint(topic="in")},
        "a": {"kind": "function", "inputs": ["read"]},
        "b": {"kind": "function", "inputs": ["a"], "restartable": restartable},
        "c": {"kind": "function", "inputs": ["b"], "region": "r"},
        "d": {"kind": "function", "inputs": ["c"], "region": "r"},
        "write": {"kind": "kafka-sink", "inputs": ["d"], "kafka": KafkaEndpoint(topic="out")},
        "tick": {"kind": "source"},
        "e": {"kind": "function", "inputs": ["tick"]},
        "log": {"kind": "sink", "inputs": ["e"]},
    }
    sinks = ("write", "log")
    operators = [
        Operator(name=name, outputs=[] if name in sinks else [name], **parts)
        for name, parts in kinds.items()
    ]
    return Adl(
        name="app",
        built_by="0",
        module="app",
        application="app",
        operators=operators,
        streams=[
            Stream(name=name, producer=name, schema={"type": "struct"})
            for name in kinds
            if name not in sinks
        ],
        regions=[Region(name="r", key=["id"], width=2, max_width=4)],
    )


def planned(widths: dict[str, int] | None = None, restartable: bool = True, **job: Any) -> Topology:
    """Return the plan of the application with these settings of the job."""
    context = JobContext("ns", "job", "uid", "digest", "b:1", **job)
    return topology_of(application(restartable), context, widths or {})


def stages(**fusion: Any) -> list[list[str]]:
    """Return the operators of each PE outside of regions and of one channel."""
    topology = planned(fusion=Fusion(**fusion))
    return [pe.metadata.operators for pe in topology.pes if not pe.channel]


def test_automatic_fusion_joins_what_is_connected() -> None:
    fused = stages(type="automatic")
    assert fused == [["read", "a", "b"], ["write"], ["tick", "e", "log"], ["c", "d"]]


def test_legacy_fusion_gives_every_operator_a_pe() -> None:
    fused = stages(type="legacy")
    assert sorted(map(len, fused)) == [1, 1, 1, 1, 1, 1, 1, 2]
    assert ["read", "a"] in fused


@pytest.mark.parametrize("count", [4, 5, 6, 7, 8])
def test_manual_fusion_makes_as_many_pes_as_asked_for(count: int) -> None:
    fused = stages(type="manual", pe_count=count)
    assert len(fused) == count
    assert max(map(len, fused)) - min(map(len, fused)) <= 2


@pytest.mark.parametrize(("count", "advice"), [(3, "at least 4"), (9, "more than 8")])
def test_impossible_counts_are_refused(count: int, advice: str) -> None:
    with pytest.raises(GraphError, match=advice):
        stages(type="manual", pe_count=count)


def test_channel_isolation_fuses_channels_whatever_the_type() -> None:
    assert ["c", "d"] in stages(type="legacy", channels="ChannelIsolation")
    assert ["c", "d"] not in stages(type="legacy", channels="ChannelExlocation")
    assert ["b"] in stages(type="legacy", channels="ChannelIsolation")


@pytest.mark.parametrize("channels", ["ChannelExlocation", "ChannelIsolation"])
def test_channels_never_share_a_pe(channels: str) -> None:
    topology = planned({"r": 4}, fusion=Fusion.model_validate({"channels": channels}))
    assert [pe.channel for pe in topology.pes if pe.region] == [0, 1, 2, 3]


def test_channels_that_could_share_a_pe_are_refused() -> None:
    """What is not done is not taken: NoChannelInfluence would fuse across channels."""
    with pytest.raises(ValidationError, match="ChannelExlocation"):
        Fusion.model_validate({"channels": "NoChannelInfluence"})


def slots(limit: str | None, threading: dict[str, Any], own: int | None = None) -> list[int]:
    """Return the slots of the PEs: of one Kafka source, of one source function."""
    resources = Resources(limits={"cpu": limit}) if limit else None
    settings = ProcessingElementSettings(slots=own, resources=resources)
    model = Threading.model_validate(threading)
    topology = planned(threading=model, settings=settings)
    return [pe.metadata.slots for pe in topology.pes[:2]]


@pytest.mark.parametrize(
    ("limit", "threading", "own", "expected"),
    [
        (None, {}, None, 1),
        (None, {"model": "manual"}, 3, 3),
        ("8", {"model": "dedicated"}, None, 1),
        (None, {"model": "dynamic", "threadCount": 6}, None, 6),
        ("2500m", {"model": "dynamic", "threadCount": 6, "elastic": True}, None, 3),
        ("16", {"model": "dynamic", "threadCount": 6, "elastic": True}, None, 6),
        (None, {"model": "dynamic", "threadCount": 6, "elastic": True}, None, 6),
        ("2", {"model": "automatic"}, None, 1),
    ],
)
def test_threading_models_become_task_slots(
    limit: str | None, threading: dict[str, Any], own: int | None, expected: int
) -> None:
    assert slots(limit, threading, own) == [expected, expected]


def test_dedicated_threading_has_a_slot_for_each_input() -> None:
    joined = application()
    operators = [
        operator.model_copy(update={"inputs": ["a", "tick"]}) if operator.name == "e" else operator
        for operator in joined.operators
    ]
    adl = joined.model_copy(update={"operators": operators})
    for model, limit, expected in (("dedicated", "1", 2), ("automatic", "1", 1)):
        settings = ProcessingElementSettings(resources=Resources(limits={"cpu": limit}))
        context = JobContext(
            *("ns", "job", "uid", "digest", "b:1"),
            threading=Threading.model_validate({"model": model}),
            settings=settings,
        )
        both = next(pe for pe in topology_of(adl, context, {}).pes if "e" in pe.metadata.operators)
        assert both.metadata.slots == expected


JOB_WIDE = Resources(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "2"})
OWN = Resources(requests={"cpu": "300m"})


@pytest.mark.parametrize(
    ("job", "pe", "expected"),
    [
        (None, None, None),
        (None, OWN, OWN),
        (JOB_WIDE, None, divided(JOB_WIDE, 5)),
        (JOB_WIDE, OWN, divided(JOB_WIDE, 5)),
    ],
)
def test_resources_follow_the_table_of_the_design(
    job: Resources | None, pe: Resources | None, expected: Resources | None
) -> None:
    settings = ProcessingElementSettings(resources=pe)
    topology = planned(resources=job, settings=settings)
    assert len(topology.pes) == 5
    assert topology.settings.resources == expected


def test_a_width_change_leaves_the_shares_alone() -> None:
    assert planned({"r": 4}, resources=JOB_WIDE).settings == planned(resources=JOB_WIDE).settings
    wider = planned(resources=JOB_WIDE, first_widths={"r": 4})
    assert wider.settings.resources == divided(JOB_WIDE, 7)


def test_shares_are_whole() -> None:
    whole = Resources(requests={"cpu": "1", "memory": "1Gi", "gpu.example/one": "2"})
    assert divided(whole, 3).requests == {
        "cpu": "333m",
        "memory": "357913941",
        "gpu.example/one": "1",
    }


@given(st.integers(1, 10**6), st.sampled_from(["", "m", "k", "Ki", "M", "Gi", "E"]))
def test_shares_never_exceed_the_whole(amount: int, suffix: str) -> None:
    whole = parse(f"{amount}{suffix}")
    for count in (1, 2, 7):
        share = divided(Resources(limits={"cpu": f"{amount}{suffix}"}), count).limits["cpu"]
        assert parse(share) * count <= max(whole, parse(f"{count}m"))


def test_rocksdb_is_a_spark_setting() -> None:
    repository = {"stateStore": "RocksDB"}
    settings = ProcessingElementSettings.model_validate({"checkpointRepository": repository})
    conf = planned(settings=settings).pes[0].metadata.spark_conf
    assert conf["spark.sql.streaming.stateStore.providerClass"].endswith(
        "RocksDBStateStoreProvider"
    )


def test_spark_settings_and_trigger_of_the_job_win() -> None:
    settings = ProcessingElementSettings(trigger_seconds=0.5, spark_conf={"spark.a": "1"})
    metadata = planned(settings=settings).pes[0].metadata
    assert metadata.trigger_seconds == 0.5
    assert metadata.spark_conf == {"spark.a": "1"}


def test_a_pe_is_restartable_if_all_its_operators_are() -> None:
    topology = planned(restartable=False)
    assert [pe.restartable for pe in topology.pes] == [False, True, True, True, True]


def real_time(partitions: dict[str, int], **changes: list[str]) -> list[int]:
    """Return the slots of read+a, of write, and of a channel, all in real time."""
    adl = application()
    operators = [
        item.model_copy(update={"real_time": item.name not in ("tick", "e", "log"), **extra})
        for item in adl.operators
        for extra in [{"inputs": changes[item.name]} if item.name in changes else {}]
    ]
    context = JobContext("ns", "job", "uid", "digest", "b:1", source_partitions=partitions)
    topology = topology_of(adl.model_copy(update={"operators": operators}), context, {"r": 1})
    return [pe.metadata.slots for pe in topology.pes if pe.metadata.real_time]


def test_in_real_time_each_partition_has_a_slot() -> None:
    """Also those that a channel may come to hold, and of rows that go two ways."""
    assert real_time({}) == [1, 4, 4]
    assert real_time({"in": 6}) == [6, 4, 4]
    assert real_time({"in": 6}, b=["a", "a"]) == [12, 4, 4]
    assert real_time({"in": 6}, d=["c", "b"]) == [6, 4, 8]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_who_reads_what_may_come_again_is_told(delivery: str) -> None:
    """All streams of its PE, and no others."""
    adl = application()
    changes = {"a": {"real_time": True, "delivery": delivery}}
    operators = [item.model_copy(update=changes.get(item.name, {})) for item in adl.operators]
    context = JobContext("ns", "job", "uid", "digest", "b:1")
    topology = topology_of(adl.model_copy(update={"operators": operators}), context, {"r": 1})
    inputs = [port for pe in topology.pes for port in pe.metadata.inputs]
    (writer,) = [pe.metadata for pe in topology.pes if "a" in pe.metadata.operators]
    written = {port.stream for port in writer.outputs if not port.external}
    told = {port.stream for port in inputs if port.repeats}
    assert told == (written if delivery == "at_least_once" else set())
    assert {port.stream for port in inputs} - told
    # After an edit of the delivery: what was sent before may not have been read.
    context, model = replace(context, repeating=topology.repeating), application()
    again = topology_of(model, context, {"r": 1})
    assert again.repeating == topology.repeating
    inputs = [port for pe in again.pes for port in pe.metadata.inputs]
    assert {port.stream for port in inputs if port.repeats} == told


def test_a_job_that_may_lose_records_says_so_of_its_streams() -> None:
    """By default nothing is written. Sources have options of their own."""
    adl, before = application(), JobContext("ns", "job", "uid", "digest", "b:1")
    old = topology_of(adl, before, {"r": 1}).pes
    new = topology_of(adl, replace(before, fail_on_data_loss=False), {"r": 1}).pes
    for one, other in zip(old, new, strict=True):
        streams = {port.stream for port in other.metadata.inputs if not port.external}
        assert {port.stream for port in other.metadata.inputs if port.may_lose} == streams
        assert "mayLose" not in one.metadata.to_wire()
        wanted = Change.IN_PLACE if streams else Change.IDENTICAL
        assert classify(one.content, other.content) == wanted


def test_a_number_of_the_users_wins() -> None:
    adl = application()
    operators = [item.model_copy(update={"real_time": True}) for item in adl.operators]
    settings = ProcessingElementSettings(slots=3)
    context = JobContext("ns", "j", "u", "d", "b:1", settings=settings, source_partitions={"in": 6})
    topology = topology_of(adl.model_copy(update={"operators": operators}), context, {})
    assert {pe.metadata.slots for pe in topology.pes} == {3}
    assert counted_topics(pe.metadata for pe in topology.stages) == {"in"}


def test_a_host_pool_that_the_application_declares_has_the_jobs_name() -> None:
    """Others are meant as they are named."""
    adl = application()
    pools = [HostPoolDeclaration(name="fast", tags=["ssd"])]
    region = adl.regions[0].model_copy(update={"placement": Placement(host_pool="fast")})
    operators = [
        operator.model_copy(update={"placement": Placement(host_pool="shared")})
        if operator.name == "log"
        else operator
        for operator in adl.operators
    ]
    changes = {"host_pools": pools, "regions": [region], "operators": operators}
    topology = topology_of(
        adl.model_copy(update=changes), JobContext("ns", "job", "uid", "digest", "b:1"), {}
    )
    pools_of = {pe.stage_name: pe.placement.host_pool for pe in topology.pes}
    assert set(pools_of.values()) == {None, "job-fast", "shared"}
