"""Which sinks share a transaction, and under which names their batches are noted."""

import json
from pathlib import Path
from typing import Any

from streamgraft_common import names
from streamgraft_common.adl import KafkaEndpoint, Operator
from streamgraft_common.pe_metadata import OutputPort, OwnTopic, PeMetadata
from streamgraft_pe_runtime.targets import MAIN, Targets, options

OWN = "own:9092"


def sink(name: str, **endpoint: Any) -> Operator:
    """Return a Kafka sink."""
    kafka = KafkaEndpoint.model_validate({"topic": name, **endpoint})
    return Operator(name=name, kind="kafka-sink", inputs=["s"], kafka=kafka)


SINKS = [
    sink("plain"),
    sink("tuned", options={"kafka.acks": "all"}),
    sink("elsewhere", bootstrap_servers="other:9092"),
    sink("loose", delivery="at_least_once"),
]


def port(operator: Operator | None, topic: str) -> OutputPort:
    """Return an output port: of a sink, or of a stream between PEs."""
    servers = operator.kafka.bootstrap_servers if operator and operator.kafka else None
    return OutputPort(
        port=0,
        stream="s",
        topic=topic,
        partitions=None,
        bootstrap_servers=servers or OWN,
        external=operator is not None,
        operator=operator.name if operator else "work",
    )


METADATA = PeMetadata(
    namespace="n",
    job="j",
    pe_id=0,
    stage_name="r",
    region="r",
    shard_count=8,
    operators=[],
    inputs=[],
    outputs=[],
    rehearsal=OwnTopic(topic="n.j.REHEARSAL", bootstrap_servers=OWN),
    checkpoint_path="c",
    trigger_seconds=1.0,
    bundle_digest="",
)


def targets(*sinks: Operator, shard: int = 5) -> Targets:
    """Return the targets of a PE with one stream to another PE and some sinks."""
    operators = {item.name: item for item in [*sinks, Operator(name="work", kind="function")]}
    found = Targets(METADATA, operators, shard)
    for item in (None, *sinks):
        found.index(port(item, item.name if item else "n.j.s"))
    return found


def test_sinks_without_options_share_the_transaction_of_the_streams() -> None:
    found = targets(*SINKS)
    assert [item.name for item in found.all] == [MAIN, "tuned", "elsewhere", "loose"]
    assert [item.transactional_id for item in found.all] == [
        "n.j.r.5",
        "n.j.r.5.tuned",
        "n.j.r.5.elsewhere",
        None,
    ]


def test_names_do_not_depend_on_other_sinks() -> None:
    """A sink that comes or goes makes nobody's ledger another's."""
    few = {item.name: item for item in targets(SINKS[2]).all}
    many = {item.name: item for item in targets(*SINKS).all}
    assert few == {name: many[name] for name in few}


def test_the_shared_target_is_there_though_no_sink_uses_it() -> None:
    """Unless nothing is exact, or all is at other brokers."""
    alone = Targets(METADATA, {item.name: item for item in SINKS}, 5)
    for item in SINKS[1:3]:
        alone.index(port(item, item.name))
    *own, main = alone.every
    assert own == alone.all
    assert main == targets().all[0]
    assert targets(*SINKS).every == targets(*SINKS).all
    loose = Targets(METADATA, {"loose": SINKS[3]}, 5)
    loose.index(port(SINKS[3], "loose"))
    assert loose.every == loose.all
    away = Targets(METADATA.model_copy(update={"rehearsal": None}), {"elsewhere": SINKS[2]}, 5)
    away.index(port(SINKS[2], "elsewhere"))
    assert away.every == away.all


def test_in_real_time_mode_all_sinks_have_one_ledger() -> None:
    """Whichever is first, or goes: at their brokers, in a topic of the job's if those have it."""
    metadata = METADATA.model_copy(update={"real_time": True})
    for place, topic in (({}, "n.j.REHEARSAL"), ({"bootstrap_servers": "other:9092"}, "a")):
        sinks = [sink(name, options={"kafka.acks": "all"}, **place) for name in "ab"]
        found = Targets(metadata, {item.name: item for item in sinks}, 5)
        for item in sinks:
            found.index(port(item, item.name))
        assert found.alike
        one = found.one
        assert (one.name, one.transactional_id, one.ledger_topic) == (MAIN, "n.j.r.5", topic)
        assert one.options["kafka.acks"] == "all"


def test_shards_have_names_of_their_own() -> None:
    ids = {item.transactional_id for shard in (0, 1) for item in targets(shard=shard).all}
    assert ids == {names.transactional_id("n", "j", "r", shard) for shard in (0, 1)}


def test_options_of_the_sink() -> None:
    """The ledger is at a topic that lives as long as the job, or as the sink."""
    given = options(targets(*SINKS).all, Path("/c"), "uid/work")
    assert given["checkpointLocation"] == "/c"
    main, tuned, elsewhere, loose = json.loads(given["targets"])
    assert main["ledgerTopic"] == "n.j.REHEARSAL"
    assert main["ledgerGroup"] == "n.j.r.5.LEDGER"
    assert tuned["kafka.acks"] == "all"
    assert (elsewhere["kafka.bootstrap.servers"], elsewhere["ledgerTopic"]) == (
        "other:9092",
        "elsewhere",
    )
    assert loose.keys() & {"transactionalId", "ledgerGroup"} == set()
