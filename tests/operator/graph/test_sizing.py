"""The default number of PEs: from threads and CPU limits."""

import pytest

from streamgraft_common.adl import Adl, KafkaEndpoint, Operator, Region, Stream
from streamgraft_common.resources import Fusion, ProcessingElementSettings
from streamgraft_common.resources.base import Resources
from streamgraft_operator.graph.fusion import fuse
from streamgraft_operator.graph.logical import logical_model
from streamgraft_operator.graph.sizing import Sizing, size, sized

MANUAL = Fusion(type="manual")

_SCHEMA = {"type": "struct", "fields": []}


def _application(sources: int, steps: int, region: bool = False) -> Adl:
    """Return an application: sources, united by a chain of functions that ends in a Kafka topic."""
    reads = [
        Operator(
            name=f"read-{number}",
            kind="kafka-source",
            outputs=[f"raw-{number}"],
            kafka=KafkaEndpoint(topic=f"in-{number}"),
        )
        for number in range(sources)
    ]
    inputs = [stream for read in reads for stream in read.outputs]
    work = []
    for number in range(steps):
        work.append(
            Operator(
                name=f"step-{number}",
                kind="function",
                inputs=inputs,
                outputs=[f"done-{number}"],
                region="r" if region else None,
            )
        )
        inputs = work[-1].outputs
    write = Operator(
        name="write", kind="kafka-sink", inputs=inputs, kafka=KafkaEndpoint(topic="out")
    )
    operators = [*reads, *work, write]
    return Adl(
        name="sized",
        built_by="0",
        module="sized",
        application="app",
        operators=operators,
        streams=[
            Stream(name=stream, producer=op.name, schema=_SCHEMA)
            for op in operators
            for stream in op.outputs
        ],
        regions=[Region(name="r", key=["k"], max_width=4)] if region else [],
    )


@pytest.mark.parametrize(
    ("sources", "steps", "cpu_limit", "pe_count"),
    [
        (1, 3, "1", 1),
        (1, 3, "500m", 2),
        (3, 3, "1", 3),
        (3, 3, "2", 2),
        (3, 3, "4", 1),
        (12, 5, "4", 3),
        (1, 1, "100m", 1),  # one step, its source and sink being but endpoints of it
    ],
)
def test_as_many_pes_as_busy_threads_need(
    sources: int, steps: int, cpu_limit: str, pe_count: int
) -> None:
    model = logical_model(_application(sources, steps))
    settings = ProcessingElementSettings(resources=Resources(limits={"cpu": cpu_limit}))
    found = size(model, MANUAL, settings)
    assert found.pe_count == pe_count
    assert len(fuse(model, sized(model, MANUAL, settings))) == pe_count


def test_without_a_limit_the_task_slots_are_it() -> None:
    model = logical_model(_application(4, 3))
    assert size(model, MANUAL, ProcessingElementSettings(slots=2)).pe_count == 2
    assert size(model, MANUAL, ProcessingElementSettings()).pe_count == 3  # at most


@pytest.mark.parametrize(
    "fusion", [Fusion(type="legacy"), Fusion(), Fusion(type="manual", pe_count=2)]
)
def test_only_a_missing_number_is_filled_in(fusion: Fusion) -> None:
    assert sized(logical_model(_application(4, 3)), fusion, ProcessingElementSettings()) == fusion


def test_a_region_counts_with_one_channel() -> None:
    """Its input comes through Kafka: a thread more, and PEs of its own."""
    settings = ProcessingElementSettings(slots=2)
    found = size(logical_model(_application(2, 3, region=True)), MANUAL, settings)
    assert found == Sizing(min_threads=4, max_threads=7, fewest=4, most=6, pe_count=4)
