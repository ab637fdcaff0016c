"""From the application description to PEs, topics and port labels."""

from typing import Any

import pytest

from streamgraft_common.adl import Adl, KafkaEndpoint, Operator, Region, SplitOutput, Stream
from streamgraft_common.resources import Fusion
from streamgraft_common.shared_streams.declarations import ExportDeclaration
from streamgraft_common.transactions import transactional_ids
from streamgraft_operator.graph import (
    Change,
    Content,
    GraphError,
    JobContext,
    Topology,
    diff,
    topology_of,
)
from streamgraft_operator.graph.stages import saved_stages

SOURCE = Operator(name="src", kind="kafka-source", outputs=["raw"], kafka=KafkaEndpoint(topic="in"))


def function(
    name: str, *inputs: str, region: str | None = None, stateful: bool = False
) -> Operator:
    return Operator(
        name=name,
        kind="function",
        inputs=list(inputs),
        outputs=[f"{name}-rows"],
        region=region,
        stateful=stateful,
    )


def kafka_sink(name: str, stream: str, topic: str = "out") -> Operator:
    endpoint = KafkaEndpoint(topic=topic, partitions=3)
    return Operator(name=name, kind="kafka-sink", inputs=[stream], kafka=endpoint)


def sink(name: str, stream: str) -> Operator:
    return Operator(name=name, kind="sink", inputs=[stream])


def application(*operators: Operator, regions: tuple[str, ...] = ()) -> Adl:
    return Adl(
        name="app",
        built_by="0",
        module="app",
        application="app",
        operators=list(operators),
        streams=[
            Stream(name=stream, producer=operator.name, schema={"type": "struct"})
            for operator in operators
            for stream in operator.outputs
        ],
        regions=[Region(name=name, key=["id"], width=2, max_width=4) for name in regions],
    )


def with_schema(schema: dict[str, Any]) -> Adl:
    """Return an application whose only stream has this schema."""
    stream = Stream(name="raw", producer="src", schema=schema)
    return application(SOURCE, sink("s", "raw")).model_copy(update={"streams": [stream]})


def nested(levels: int) -> dict[str, Any]:
    """Return a schema that is so deep."""
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"type": schema}
    return schema


def planned(
    adl: Adl, fusion: str = "automatic", widths: dict[str, int] | None = None, **job: Any
) -> Topology:
    """Return the plan of a job with this fusion type, these widths and further settings."""
    kind = Fusion.model_validate({"type": fusion})
    context = JobContext("ns", "job", "uid", "digest", "b:1", **{"fusion": kind, **job})
    return topology_of(adl, context, widths or {})


def fused(topology: Topology) -> list[list[str]]:
    return [pe.metadata.operators for pe in topology.pes if not pe.channel]


REGION = application(
    SOURCE,
    function("clean", "raw"),
    function("work", "clean-rows", region="r"),
    function("count", "work-rows", region="r", stateful=True),
    kafka_sink("out", "count-rows"),
    regions=("r",),
)


def test_a_stage_remembers_which_brokers_its_source_names() -> None:
    """However they are written; the job's own are those of all that name none."""
    mirror = KafkaEndpoint(topic="in", bootstrap_servers="b:1, A:2,b:1")
    elsewhere = SOURCE.model_copy(update={"kafka": mirror})
    for source, brokers in ((SOURCE, []), (elsewhere, ["a:2", "b:1"])):
        adl = REGION.model_copy(update={"operators": [source, *REGION.operators[1:]]})
        stages = {item.name: item for item in saved_stages(planned(adl), adl)}
        assert [item.brokers for item in stages["src"].inputs] == [brokers]
        assert [item.brokers for item in stages["count"].inputs] == [[]]


def test_a_stage_remembers_what_it_exports() -> None:
    """With the columns that others read."""
    declared = ExportDeclaration(name="visits", partitions=1)
    export = Operator(name="raw-export", kind="export", inputs=["raw"], exported=declared)
    adl = application(SOURCE, export)
    schema = {"fields": [{"name": "n", "type": "long"}]}
    adl = adl.model_copy(update={"streams": [Stream(name="raw", producer="src", schema=schema)]})
    ((exported,),) = (item.exports for item in saved_stages(planned(adl), adl))
    assert (exported.stream, exported.columns) == ("raw", {"n": "long"})
    assert exported.topic.startswith("ns.job.raw-export.EXPORT-")


def test_a_region_and_its_neighbours() -> None:
    topology = planned(REGION)
    assert [(pe.pe_id, pe.stage_name, pe.channel) for pe in topology.pes] == [
        (0, "src", None),
        (1, "out", None),
        (2, "count", 0),
        (3, "count", 1),
    ]
    assert fused(topology) == [["src", "clean"], ["out"], ["work", "count"]]
    first, last, channel = (topology.pes[i].metadata for i in (0, 1, 2))
    (into,) = first.outputs
    assert (into.topic, into.partitions, into.key) == ("ns.job.clean-rows.r", 4, ["id"])
    (out,) = channel.outputs
    assert (out.topic, out.partitions, out.keep_partition) == ("ns.job.count-rows", 4, True)
    assert [port.topic for port in last.inputs] == ["ns.job.count-rows"]
    assert channel.checkpoint_path == "ns/job-uid/count"
    again = planned(REGION, dropped_stages={"count": 1}).pes[2].metadata
    assert again.checkpoint_path == "ns/job-uid/count.2"
    assert channel.shard_count == 4
    assert topology.port_labels["work[1].0"].to_wire() == {
        "pe": 3,
        "port": 0,
        "topic": "ns.job.clean-rows.r",
    }
    assert [(t.name, t.partitions, t.external, t.awaited) for t in topology.topics] == [
        ("in", 1, True, True),
        ("ns.job.DEAD-LETTERS", 1, False, False),
        ("ns.job.REHEARSAL", 2, False, False),
        ("ns.job.clean-rows.r", 4, False, False),
        ("ns.job.count-rows", 4, False, False),
        ("out", 3, True, False),
    ]
    rehearsals = {pe.metadata.rehearsal for pe in topology.pes}
    assert [(t.topic, t.bootstrap_servers) for t in rehearsals if t] == [
        ("ns.job.REHEARSAL", "b:1")
    ]


def test_no_rehearsal_where_no_port_is() -> None:
    """A job that needs none of its own brokers need not have any."""
    topology = planned(application(SOURCE, sink("out", "raw")))
    (pe,) = topology.pes
    assert pe.metadata.rehearsal
    endpoint = KafkaEndpoint(topic="in", bootstrap_servers="other:1")
    source = SOURCE.model_copy(update={"kafka": endpoint})
    topology = planned(application(source, sink("out", "raw")))
    (pe,) = topology.pes
    assert pe.metadata.rehearsal is None
    assert [(topic.name, topic.bootstrap_servers, topic.external) for topic in topology.topics] == [
        ("in", "other:1", True),
        ("ns.job.DEAD-LETTERS", "other:1", True),
    ]


SSL = {"kafka.security.protocol": "SSL"}


def test_topics_at_brokers_that_only_a_pe_can_talk_to_are_nobody_elses_matter() -> None:
    """The operator has no credentials for them: it would wait for an answer for ever."""
    there = KafkaEndpoint(topic="in", bootstrap_servers="other:1", options=SSL)
    source = SOURCE.model_copy(update={"kafka": there})
    elsewhere = there.model_copy(update={"topic": "o"})
    out = kafka_sink("out", "raw").model_copy(update={"kafka": elsewhere})
    topology = planned(application(source, out))
    assert topology.topics == ()
    (pe,) = topology.pes
    assert [port.topic for port in pe.metadata.inputs] == ["in"]
    assert [port.topic for port in pe.metadata.outputs] == ["o"]


@pytest.mark.parametrize(
    ("how", "ids"),
    [
        ({}, {("b:1", False): ["ns.job.src.0"]}),
        ({"options": SSL}, {("b:1", False): ["ns.job.src.0.out"]}),
        ({"bootstrap_servers": "other:1"}, {("other:1", False): ["ns.job.src.0.out"]}),
        ({"bootstrap_servers": "other:1", "options": SSL}, {}),
    ],
)
def test_transactions_are_aborted_where_the_operator_can_talk_to(
    how: dict[str, Any], ids: dict[tuple[str, bool], list[str]]
) -> None:
    """Options alone are for the job's own brokers, whose credentials it has."""
    endpoint = KafkaEndpoint(topic="o", **how)
    adl = application(SOURCE, kafka_sink("out", "raw").model_copy(update={"kafka": endpoint}))
    (pe,) = planned(adl).pes
    assert transactional_ids(pe.metadata, adl.operators, [0]) == ids


@pytest.mark.parametrize(
    ("how", "there"),
    [
        ({}, ["in", "ns.job.DEAD-LETTERS", "ns.job.REHEARSAL"]),
        ({"bootstrap_servers": "b:1"}, ["in", "ns.job.DEAD-LETTERS", "ns.job.REHEARSAL"]),
        ({"malformed": "skip"}, ["in", "ns.job.REHEARSAL"]),
        ({"malformed": "fail"}, ["in", "ns.job.REHEARSAL"]),
        ({"format": "raw"}, ["in", "ns.job.REHEARSAL"]),
    ],
)
def test_a_topic_for_dead_letters_if_there_may_be_some(how: Any, there: list[str]) -> None:
    source = SOURCE.model_copy(update={"kafka": KafkaEndpoint(topic="in", **how)})
    topology = planned(application(source, sink("in", "raw")))
    assert [topic.name for topic in topology.topics] == there
    (port,) = topology.pes[0].metadata.inputs
    assert (port.dead_letters is not None) == (there[1] == "ns.job.DEAD-LETTERS")


@pytest.mark.parametrize("fusion", ["automatic", "legacy"])
def test_a_width_change_only_adds_or_removes(fusion: str) -> None:
    narrow, wide = planned(REGION, fusion, {"r": 1}), planned(REGION, fusion, {"r": 4})
    old, new = contents(narrow), contents(wide)
    there = diff(old, new)
    assert all(there[pe] is Change.IDENTICAL for pe in old)
    added = [pe for pe, change in there.items() if change is Change.ADDED]
    assert len(added) == 3 * wide.regions[0].stages
    back = diff(new, old)
    assert [pe for pe, change in back.items() if change is Change.REMOVED] == added
    assert all(back[pe] is Change.IDENTICAL for pe in old)


def contents(topology: Topology) -> dict[int, Content]:
    return {pe.pe_id: pe.content for pe in topology.pes}


def test_legacy_fusion_links_the_stages_of_a_channel() -> None:
    topology = planned(REGION, "legacy")
    assert fused(topology) == [["src", "clean"], ["out"], ["work"], ["count"]]
    assert [(pe.pe_id, pe.stage_name) for pe in topology.pes[2:]] == [
        (2, "work"),
        (3, "count"),
        (4, "work"),
        (5, "count"),
    ]
    (port,) = topology.pes[2].metadata.outputs
    assert (port.topic, port.partitions, port.keep_partition) == ("ns.job.work-rows", 4, True)


def test_fusion_never_makes_a_pe_wait_for_itself() -> None:
    adl = application(
        SOURCE,
        function("work", "raw", region="r"),
        function("join", "raw", "work-rows"),
        kafka_sink("out", "join-rows"),
        regions=("r",),
    )
    assert fused(planned(adl)) == [["src"], ["join", "out"], ["work"]]


def test_a_stateful_operator_is_planned_once() -> None:
    adl = application(
        SOURCE,
        function("count", "raw", stateful=True),
        function("left", "count-rows"),
        function("right", "count-rows"),
        kafka_sink("one", "left-rows"),
        kafka_sink("two", "right-rows", "other"),
    )
    assert fused(planned(adl)) == [["src", "count"], ["left", "one"], ["right", "two"]]


def split(stream: str) -> Operator:
    conditions = {"good": "ok", "bad": "not ok"}
    return Operator(
        name="split",
        kind="split",
        inputs=[stream],
        outputs=list(conditions),
        split=[SplitOutput(stream=name, condition=text) for name, text in conditions.items()],
    )


@pytest.mark.parametrize("behind", [False, True])
def test_parts_of_a_stateful_stream_are_written_in_one_pass(behind: bool) -> None:
    """Only a function behind the split would need the stateful operator a second time."""
    count = function("count", "raw", stateful=True)
    good = [function("work", "good")] if behind else []
    adl = application(
        SOURCE,
        count,
        split("count-rows"),
        *good,
        kafka_sink("one", "work-rows" if behind else "good"),
        kafka_sink("two", "bad", "other"),
        kafka_sink("three", "count-rows", "third"),
    )
    whole = ["src", "count", "split", "one", "two", "three"]
    apart = [["src", "count", "split", "two", "three"], ["work", "one"]]
    assert fused(planned(adl)) == (apart if behind else [whole])


def test_operators_that_spark_cannot_run_together_get_pes_of_their_own() -> None:
    """The build says so by their fusion groups."""
    again = function("again", "count-rows", stateful=True)
    out = kafka_sink("out", "again-rows")
    adl = application(
        SOURCE,
        function("count", "raw", stateful=True),
        again.model_copy(update={"fusion_group": 1}),
        out.model_copy(update={"fusion_group": 1}),
    )
    assert fused(planned(adl)) == [["src", "count"], ["again", "out"]]


def test_stateless_branches_share_a_pe() -> None:
    adl = application(
        SOURCE, split("raw"), kafka_sink("one", "good"), kafka_sink("two", "bad", "other")
    )
    (pe,) = planned(adl).pes
    assert [(p.port, p.topic, p.external) for p in pe.metadata.outputs] == [
        (0, "out", True),
        (1, "other", True),
    ]


def test_a_sink_function_is_the_only_output_of_its_pe() -> None:
    alone = application(SOURCE, function("clean", "raw"), sink("db", "clean-rows"))
    assert fused(planned(alone)) == [["src", "clean", "db"]]
    shared = application(
        SOURCE, function("clean", "raw"), sink("db", "clean-rows"), kafka_sink("out", "clean-rows")
    )
    assert fused(planned(shared)) == [["src", "clean", "out"], ["db"]]


def test_each_stage_of_a_region_has_joint_queries_or_not() -> None:
    """A sink's function has a query per shard, whatever is in the stages beside it."""
    lines = sink("lines", "work-rows").model_copy(update={"region": "r"})
    adl = application(
        SOURCE,
        function("work", "raw", region="r"),
        function("total", "work-rows", region="r"),
        lines,
        kafka_sink("out", "total-rows"),
        regions=("r",),
    )
    (region,) = planned(adl, "legacy").regions
    assert region.stage_names == ("work", "total", "lines")
    assert region.joint == {0, 1}


def test_a_source_feeds_two_regions() -> None:
    adl = application(
        SOURCE,
        function("one", "raw", region="a"),
        function("two", "raw", region="b"),
        kafka_sink("out-a", "one-rows"),
        kafka_sink("out-b", "two-rows", "other"),
        regions=("a", "b"),
    )
    topology = planned(adl)
    assert [p.topic for p in topology.pes[0].metadata.outputs] == ["ns.job.raw.a", "ns.job.raw.b"]
    assert [region.first_pe_id for region in topology.regions] == [3, 7]


def test_operators_that_lead_to_no_sink_are_dropped() -> None:
    adl = application(SOURCE, function("unused", "raw"), kafka_sink("out", "raw"))
    assert fused(planned(adl)) == [["src", "out"]]


@pytest.mark.parametrize(
    ("adl", "message"),
    [
        (application(SOURCE, function("f", "raw")), "no sink"),
        (application(kafka_sink("out", "ghost")), "stream ghost, which nothing makes"),
        (application(SOURCE, function("f", "raw", region="x")), "region x, which does not exist"),
        (application(SOURCE, SOURCE), "several operators named src"),
        (
            application(function("f", "g-rows"), function("g", "f-rows"), sink("s", "g-rows")),
            "cycle .* f, g",
        ),
        (
            application(
                SOURCE.model_copy(update={"region": "r"}), sink("s", "raw"), regions=("r",)
            ),
            "inside region r: move the source before",
        ),
        (application(SOURCE, sink("s", "raw"), regions=("r",)), "region r has no operator"),
        (
            application(
                SOURCE,
                function("f", "raw", region="r"),
                kafka_sink("out", "f-rows", "ns.job.raw.r"),
                regions=("r",),
            ),
            "ns.job.raw.r is one of the job's own",
        ),
        (
            application(
                SOURCE.model_copy(update={"outputs": []}), function("f"), sink("s", "f-rows")
            ),
            "src makes 0 streams, and a kafka-source makes 1",
        ),
        (
            application(SOURCE, Operator(name="p", kind="split", outputs=["a"]), sink("s", "a")),
            "p reads 0 streams, and a split reads 1",
        ),
        (with_schema(nested(300)), "schema of stream raw is more than 200 levels deep"),
        (with_schema({"fields": ["\ud800"]}), "raw has characters that can't be written"),
        (
            application(
                SOURCE,
                *(
                    function(f"f{n}", *[f"f{n - 1}-rows" if n else "raw"] * 2).model_copy(
                        update={"real_time": True}
                    )
                    for n in range(60)
                ),
                kafka_sink("out", "f59-rows"),
            ),
            "more than 100,000 task slots",
        ),
    ],
)
def test_unsound_graphs(adl: Adl, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        planned(adl)


def test_a_topic_elsewhere_may_have_the_name_of_one_of_the_jobs_own() -> None:
    """The stages have an order, though a sink seems to write what a stage above it reads."""
    endpoint = KafkaEndpoint(topic="ns.job.clean-rows.r", bootstrap_servers="other:1")
    out = Operator(name="out", kind="kafka-sink", inputs=["count-rows"], kafka=endpoint)
    adl = REGION.model_copy(update={"operators": [*REGION.operators[:-1], out]})
    assert [stage.name for stage in saved_stages(planned(adl), adl)] == ["src", "count", "out"]


@pytest.mark.parametrize(
    ("widths", "message"), [({"r": 5}, "width 5 of region r"), ({"q": 1}, "no region q")]
)
def test_impossible_widths(widths: dict[str, int], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        planned(REGION, widths=widths)
