"""The default number of PEs: from threads and CPU limits."""

import pytest

from streamgraft_common.adl import Adl, KafkaEndpoint, Operator, Region, Stream
from streamgraft_common.resources import Fusion, ProcessingElementSettings
from streamgraft_common.resources.base import Resources
from streamgraft_operator.graph.fusion import fuse
from streamgraft_operator.graph.logical import logical_model
from streamgraft_operator.graph.sizing import Means, Sizing, size, sized

MANUAL = Fusion(type="manual")

_SCHEMA = {"type": "struct", "fields": []}


def _application(sources: int, steps: int, region: bool = False, outside: int = 0) -> Adl:
    """Return an application: sources, united by a chain of functions that ends in a Kafka topic.

    With a region all steps are in it, but for the first that are `outside`.
    """
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
                region="r" if region and number >= outside else None,
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
    found = size(model, MANUAL, Means(settings))
    assert found.pe_count == pe_count
    assert len(fuse(model, sized(model, MANUAL, Means(settings)))) == pe_count


def test_without_a_limit_the_task_slots_are_it() -> None:
    model = logical_model(_application(4, 3))
    assert size(model, MANUAL, Means(ProcessingElementSettings(slots=2))).pe_count == 2
    assert size(model, MANUAL, Means(ProcessingElementSettings())).pe_count == 3  # at most


@pytest.mark.parametrize(
    "fusion", [Fusion(type="legacy"), Fusion(), Fusion(type="manual", pe_count=2)]
)
def test_only_a_missing_number_is_filled_in(fusion: Fusion) -> None:
    assert (
        sized(logical_model(_application(4, 3)), fusion, Means(ProcessingElementSettings()))
        == fusion
    )


def test_a_region_counts_with_one_channel() -> None:
    """Its input comes through Kafka: a thread more, and PEs of its own."""
    settings = ProcessingElementSettings(slots=2)
    found = size(logical_model(_application(2, 3, region=True)), MANUAL, Means(settings))
    assert found == Sizing(min_threads=4, max_threads=7, fewest=4, most=6, pe_count=4)


@pytest.mark.parametrize(
    ("whole", "width", "pe_count"),
    [("6", 4, 3), ("5500m", 4, 4), ("5", 4, 5), ("4", 4, 3), ("3", 1, 3), ("2", 1, 3)],
)
def test_the_resources_of_the_job_are_what_they_divide_to(
    whole: str, width: int, pe_count: int
) -> None:
    """Three threads; channels take shares, so more PEs beside them have more of the whole."""
    model = logical_model(_application(2, 4, region=True, outside=3))
    means = Means(
        ProcessingElementSettings(resources=Resources(limits={"cpu": "500m"})),
        Resources(limits={"cpu": whole}),
        {"r": width},
    )
    found = size(model, MANUAL, means)
    assert (found.min_threads, found.fewest, found.most) == (3, 3, 5)
    assert found.pe_count == pe_count


def test_each_pe_has_its_share_of_the_jobs_resources() -> None:
    """Outside of regions all shares together are the whole, whatever the number of PEs."""
    model = logical_model(_application(3, 3))
    own = ProcessingElementSettings(resources=Resources(limits={"cpu": "1"}))
    assert size(model, MANUAL, Means(own)).pe_count == 3
    assert size(model, MANUAL, Means(own, Resources(limits={"cpu": "3"}))).pe_count == 1
    assert size(model, MANUAL, Means(own, Resources(limits={"cpu": "1"}))).pe_count == 1
    requests = Resources(requests={"cpu": "3"})
    assert size(model, MANUAL, Means(own, requests)).pe_count == 3  # no limit: by slots
