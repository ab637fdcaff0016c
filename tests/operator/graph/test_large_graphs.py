"""What the planning of large graphs takes, counted in calls: the same on every machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from tests.operator.graph.test_graph_plan import SOURCE, application, function, kafka_sink, sink

from streamgraft_common.adl import Adl, Operator
from streamgraft_common.bundle import Bundle
from streamgraft_common.edits import outcomes
from streamgraft_common.resources import JobSpec
from streamgraft_common.restore import dropped
from streamgraft_operator.graph import GraphError, Submission, Topology
from streamgraft_operator.graph.checks import LARGEST_OPERATORS
from streamgraft_operator.graph.pipeline import LARGEST_PES
from streamgraft_operator.graph.sizes import LARGEST_BYTES, check_sizes
from streamgraft_operator.graph.stages import saved_stages

MOST_CALLS = 5_000_000
"""Some seconds. Planning took up to 2.4 million when this was written, and before graphs had to be
planned in about a second a hundred times as many."""


def at_most_calls(most: int, work: Callable[[], Any]) -> Any:
    """Return what comes of work that makes no more calls, to whatever; it is cut off otherwise."""
    count = 0

    def counted(_: FrameType, what: str, __: object) -> None:
        nonlocal count
        count += what in ("call", "c_call")
        if count > most:
            raise AssertionError(f"it makes more than {most} calls")

    sys.setprofile(counted)
    try:
        return work()
    finally:
        sys.setprofile(None)


def chain(count: int) -> Adl:
    """Return a source, functions one behind the other, and a sink."""
    steps = [function("f0", "raw")]
    steps += [function(f"f{n}", f"f{n - 1}-rows") for n in range(1, count - 2)]
    return application(SOURCE, *steps, kafka_sink("out", f"f{count - 3}-rows"))


def star(count: int) -> Adl:
    """Return a source that many functions read, each with a sink."""
    arms: list[Operator] = []
    for number in range((count - 1) // 2):
        arms += [
            function(f"f{number}", "raw"),
            kafka_sink(f"out{number}", f"f{number}-rows", f"out{number}"),
        ]
    return application(SOURCE, *arms)


def late_state(count: int) -> Adl:
    """Return a chain that begins with state and ends in many sinks, none of which may join it."""
    half = count // 2
    steps = [function("f0", "raw", stateful=True)]
    steps += [function(f"f{n}", f"f{n - 1}-rows") for n in range(1, half)]
    ends = [sink(f"keep{number}", f"f{half - 1}-rows") for number in range(count - half - 1)]
    return application(SOURCE, *steps, *ends)


def submission(adl: Adl, **spec: Any) -> Submission:
    job = JobSpec.model_validate({"bundle": {"configMap": {"name": "b"}}, **spec})
    return Submission("ns", "job", "uid", job, Bundle(adl, "d" * 64), "b:1")


FUSIONS: list[dict[str, Any]] = [
    {"fusion": {"type": "automatic"}},
    {"fusion": {"type": "legacy"}},
    {"fusion": {"type": "manual"}},
    {"fusion": {"type": "manual"}, "resources": {"limits": {"cpu": "10m"}}},
    {"fusion": {"type": "manual", "peCount": 500}},
]


@pytest.mark.parametrize("spec", FUSIONS)
@pytest.mark.parametrize("shape", [chain, star, late_state])
def test_the_largest_graph_takes_about_a_second(
    shape: Callable[[int], Adl], spec: dict[str, Any]
) -> None:
    adl = shape(LARGEST_OPERATORS)
    topology: Topology = at_most_calls(MOST_CALLS, lambda: submission(adl, **spec).topology({}))
    planned = [name for pe in topology.pes for name in pe.metadata.operators]
    assert sorted(planned) == sorted(operator.name for operator in adl.operators)

    def compare() -> None:
        stages = saved_stages(topology, adl)
        check_sizes(topology, stages)
        outcomes(stages, stages)
        dropped(stages, stages)

    at_most_calls(MOST_CALLS, compare)


def test_a_larger_graph_is_refused_with_what_to_do() -> None:
    adl = chain(LARGEST_OPERATORS + 1)
    with pytest.raises(GraphError, match=r"1,001 operators.*1,000: let functions do several steps"):
        submission(adl).topology({})


def test_so_is_one_with_more_streams() -> None:
    inputs = ["raw"] * 10_000
    adl = application(SOURCE, function("f", *inputs), kafka_sink("out", "f-rows"))
    with pytest.raises(GraphError, match="10,003 inputs and outputs"):
        submission(adl).topology({})


def test_so_is_one_with_more_pes_whatever_its_widths() -> None:
    """Or a region could not become as wide as it may."""
    steps = [function("f0", "raw", region="r")]
    steps += [function(f"f{n}", f"f{n - 1}-rows", region="r") for n in range(1, 20)]
    adl = application(SOURCE, *steps, kafka_sink("out", "f19-rows"), regions=("r",))
    (region,) = adl.regions
    wide = adl.model_copy(update={"regions": [region.model_copy(update={"max_width": 1024})]})
    assert LARGEST_PES < 20 * 1024
    assert submission(wide).topology({}).pes
    with pytest.raises(GraphError, match=r"there would be 20,482 PEs, and a job can have 20,000"):
        submission(wide, fusion={"type": "legacy"}).topology({})


def test_so_is_one_whose_objects_kubernetes_would_not_take() -> None:
    columns = [{"name": f"column-{number}", "type": "string"} for number in range(60)]
    adl = chain(LARGEST_OPERATORS)
    schema = {"type": "struct", "fields": columns}
    streams = [item.model_copy(update={"stream_schema": schema}) for item in adl.streams]
    wide = adl.model_copy(update={"streams": streams})
    fused = submission(wide).topology({})
    check_sizes(fused, saved_stages(fused, wide))
    spread = submission(wide, fusion={"type": "legacy"}).topology({})
    with pytest.raises(GraphError, match=r"what is noted of the job's graph takes [\d,]+ kB"):
        check_sizes(spread, saved_stages(spread, wide))
    assert LARGEST_BYTES < 1 << 20


def test_a_long_chain_of_splits_is_no_deep_recursion() -> None:
    splits = [
        Operator(name=f"s{n}", kind="split", inputs=[f"p{n}"], outputs=[f"p{n + 1}"])
        for n in range(900)
    ]
    count = function("p0", "raw", stateful=True).model_copy(update={"outputs": ["p0"]})
    adl = application(SOURCE, count, *splits, kafka_sink("out", "p900"))
    assert len(submission(adl).topology({}).pes) == 1
