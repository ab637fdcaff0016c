"""`streamgraft plan`: what a submission would make and restart, compared with what runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from streamgraft._builder import _zip
from streamgraft.cli import _plan_view as view
from streamgraft.cli._app import app
from streamgraft.cli._plan_compare import Outlook, outlook
from streamgraft.cli._plan_cpu import CpuUse, cpu_use
from streamgraft.cli._plan_state import RunningJob, RunningPe
from streamgraft_common.adl import Adl, KafkaEndpoint, Operator, Region, Stream
from streamgraft_common.bundle import ADL_FILE, Bundle
from streamgraft_common.content import Change
from streamgraft_common.resources import JobSpec, ParallelRegionSpec
from streamgraft_common.shared_streams.declarations import ImportDeclaration
from streamgraft_operator.graph import GraphError, Submission

_SCHEMA = {"type": "struct", "fields": []}


def application(**region: Any) -> Adl:
    """Return an application of three PEs: a source, a region, a sink."""
    return Adl(
        name="flights",
        built_by="0",
        module="app",
        application="app",
        operators=[
            Operator(
                name="read",
                kind="kafka-source",
                outputs=["raw"],
                kafka=KafkaEndpoint(topic="in"),
            ),
            Operator(name="clean", kind="function", inputs=["raw"], outputs=["rows"]),
            Operator(
                name="work", kind="function", inputs=["rows"], outputs=["done"], region="work"
            ),
            Operator(name="show", kind="sink", inputs=["done"]),
        ],
        streams=[
            Stream(name="raw", producer="read", schema=_SCHEMA),
            Stream(name="rows", producer="clean", schema=_SCHEMA),
            Stream(name="done", producer="work", schema=_SCHEMA),
        ],
        regions=[Region(**{"name": "work", "key": ["k"], "width": 2, "max_width": 4, **region})],
        parameters={"speed": "1"},
    )


def submission(adl: Adl | None = None, digest: str = "a", **spec: Any) -> Submission:
    """Return a submission of an application."""
    return Submission(
        namespace="default",
        job="flights",
        uid="u",
        spec=JobSpec.model_validate({"bundle": {"configMap": {"name": "b"}}, **spec}),
        bundle=Bundle(adl or application(), digest),
        bootstrap_servers="kafka:9092",
    )


def running(submitted: Submission, width: int = 2) -> RunningJob:
    """Return the job that a submission has led to, its region `width` wide by now."""
    topology = submitted.topology(submitted.widths({"work": width}))
    settings = submitted.resolved(topology).processing_element.for_pods()
    regions = {
        region.region.name: ParallelRegionSpec(
            job="flights",
            region=region.region.name,
            width=width,
            max_width=region.region.max_width,
            key=region.region.key,
        )
        for region in topology.regions
    }
    pes = {pe.pe_id: RunningPe(pe.metadata, settings) for pe in topology.pes}
    return RunningJob(submitted.uid, submitted.spec, pes, regions)


def changes(plan: Outlook) -> dict[int, Change]:
    """Return what happens to each PE."""
    return {pe.metadata.pe_id: pe.change for pe in plan.pes}


def text(plan: Outlook) -> str:
    """Return what people see."""
    console = Console(width=200)
    with console.capture() as capture:
        console.print(view.pes(plan))
    return capture.get() + "\n".join(view.notes(plan))


def test_new_job_adds_all_and_restarts_nothing() -> None:
    plan = outlook(submission(), None)
    assert changes(plan) == dict.fromkeys(range(4), Change.ADDED)
    assert not plan.restarts
    assert "it would be new" in text(plan)
    assert "Nothing that runs" not in text(plan)


def test_the_same_again_changes_nothing_and_keeps_the_width() -> None:
    plan = outlook(submission(), running(submission(), width=3))
    assert changes(plan) == dict.fromkeys(range(5), Change.IDENTICAL)
    assert plan.regions[0].width == 3
    assert "Nothing that runs would be restarted." in text(plan)


@pytest.mark.parametrize(("image", "restarts"), [("i:1", False), ("i:2", True)])
def test_an_edit_behind_an_upgrade_takes_the_operators_new_image(
    image: str, restarts: bool
) -> None:
    """A job that names none keeps the image that it began with until then."""
    job = running(submission(image="i:1"))
    plan = outlook(submission(), replace(job, spec=submission().spec, image=image))
    assert plan.restarts is restarts
    assert ("restart: image" in text(plan)) is restarts


def test_it_says_whether_the_shards_of_a_channel_share_a_query() -> None:
    assert "Stage work: one query per channel" in text(outlook(submission(), None))
    adl = application()
    operators = [
        item.model_copy(update={"stateful": item.name == "work"}) for item in adl.operators
    ]
    stateful = adl.model_copy(update={"operators": operators})
    found = text(outlook(submission(stateful), None))
    assert "Stage work: a query per shard (state in work that goes by time" in found
    operators = [item.model_copy(update={"joint_state": item.stateful}) for item in operators]
    found = text(outlook(submission(adl.model_copy(update={"operators": operators})), None))
    assert "whatever the number of its shards; a batch takes about 5 ms more" in found
    assert "Triggers: at most 1 s apart" in found
    operators = [item.model_copy(update={"real_time": True}) for item in operators]
    for width, queries in ((2, 2), (1, 4)):
        quick = application(width=width).model_copy(update={"operators": operators})
        assert (
            f"Stage work: a query per shard (real-time mode); {queries} in the fullest channel,"
            " each of which polls Kafka all the time; eight and the PE before took 0.62 cores\n"
        ) in text(outlook(submission(quick), None))


def by_time(**region: Any) -> Outlook:
    """Return the plan of an application whose region has state that goes by time."""
    adl = application(**region)
    operators = [
        item.model_copy(update={"stateful": item.name == "work"}) for item in adl.operators
    ]
    return outlook(submission(adl.model_copy(update={"operators": operators})), None)


@pytest.mark.parametrize(
    ("width", "slots", "queries", "apart"),
    [(1, 1, 8, 3.2), (2, 1, 4, 1.6), (3, 1, 3, 1.2), (4, 1, 2, 1.0), (1, 2, 8, 1.6)],
)
def test_stages_with_many_queries_have_triggers_farther_apart(
    width: int, slots: int, queries: int, apart: float
) -> None:
    """As their PEs do it: by what batches with state cost, at the width of the plan."""
    plan = by_time(width=width, max_width=8)
    pes = [replace(pe, metadata=pe.metadata.model_copy(update={"slots": slots})) for pe in plan.pes]
    plan = replace(plan, pes=tuple(pes))
    document = view.document(plan, True)
    (found,) = [item for item in document["queries"] if item["stage"] == "work"]
    assert found["mode"] == "one per shard"
    assert found["why"] == "state in work that goes by time, or is of two streams"
    assert found["queries"] == queries
    assert found["longestTriggerSeconds"] == pytest.approx(apart)
    (way,) = document["ways"]
    others = len(way["stages"]) - 1
    assert way["longestSeconds"] == pytest.approx(others * (1.0 + 0.15) + apart + 0.15)
    assert f"{way['longestSeconds']:.2g} s at most" in text(plan)
    if apart == 1.0:
        assert "Triggers: at most 1 s apart" in text(plan)
    else:
        assert f"Triggers of work: at most {apart:g} s apart" in text(plan)
        assert "Triggers of read, show: at most 1 s apart" in text(plan)


def test_programs_are_told_which_stages_share_a_query() -> None:
    queries = view.document(outlook(submission(), None), True)["queries"]
    assert {item["stage"]: (item["mode"], item["why"], item["queries"]) for item in queries} == {
        "read": ("one", None, 1),
        "work": ("one per channel", None, 1),
        "show": ("one", None, 1),
    }


def test_it_says_how_far_it_is_to_each_end() -> None:
    """In micro-batches a stage costs half of what its triggers become, and a batch; in real time
    next to nothing."""
    (way,) = view.document(outlook(submission(), None), True)["ways"]
    triggers = {pe.metadata.trigger_seconds for pe in outlook(submission(), None).pes}
    (trigger,) = triggers
    count = len(way["stages"])
    assert way["typicalSeconds"] == pytest.approx(count * (0.3 / 2 + 0.15))
    assert way["longestSeconds"] == pytest.approx(count * (trigger + 0.15))
    assert "Way read > work > show: 2 hops, about 0.9 s" in text(outlook(submission(), None))
    assert f"Triggers: at most {trigger:g} s apart" in text(outlook(submission(), None))
    adl = application()
    operators = [item.model_copy(update={"real_time": True}) for item in adl.operators]
    quick = outlook(submission(adl.model_copy(update={"operators": operators})), None)
    assert "Triggers:" not in text(quick)
    (way,) = view.document(quick, True)["ways"]
    assert way["longestSeconds"] == pytest.approx(len(way["stages"]) * 0.03)
    said = "Stage read: 1 slot, as many as partitions are read in real time; those of in are"
    assert said in text(quick)
    counted = replace(quick.submission, source_partitions={"in": 6})
    assert "Stage read: 6 slots, as many as partitions are read in real time\n" in text(
        outlook(counted, None)
    )


def test_it_says_that_an_import_is_not_read_in_real_time() -> None:
    """What the user asked to be quick waits for the triggers of the PE before."""
    adl = application()
    read, clean, *others = adl.operators
    quick = clean.model_copy(update={"real_time": True})
    said = "Stage clean: raw comes by a hop and with triggers, since imports are not read in real"
    shared = ImportDeclaration(name="clicks")
    imported = Operator(name="read", kind="import", outputs=["raw"], imported=shared)
    for first, second, expected in (
        (imported, quick, True),
        (imported, clean, False),
        (read, quick, False),
    ):
        # As the build does it: an import is in no group with an operator in real time.
        alone = second.model_copy(update={"fusion_group": 1})
        operators = [first.model_copy(update={"fusion_group": 0}), alone, *others]
        found = text(outlook(submission(adl.model_copy(update={"operators": operators})), None))
        assert (said in found) == expected


def test_new_code_is_taken_up_in_place_where_it_is_used() -> None:
    """A function whose code the bundle does not tell goes with the bundle."""
    adl = application()
    told = [
        item if item.name == "work" else item.model_copy(update={"code": "c"})
        for item in adl.operators
    ]
    adl = adl.model_copy(update={"operators": told})
    plan = outlook(submission(adl, digest="b"), running(submission(adl)))
    changed = {pe.metadata.stage_name: pe.differing for pe in plan.pes if pe.differing}
    assert changed == {"work": ("code",)}
    assert set(changes(plan).values()) == {Change.IN_PLACE, Change.IDENTICAL}
    assert not plan.restarts
    assert "in place: code" in text(plan)
    assert "Code of work: swapped in running drivers, each shard after a batch" in text(plan)


def test_code_that_a_process_can_not_load_restarts() -> None:
    adl = application().model_copy(update={"fixed_code": ["fast.so"]})
    plan = outlook(submission(adl, digest="b"), running(submission(adl)))
    assert set(changes(plan).values()) == {Change.RESTART}
    assert "restart: code" in text(plan)
    assert "by a restart, since no process can load another fast.so" in text(plan)


def test_parameters_are_applied_in_place() -> None:
    plan = outlook(submission(parameters={"speed": "2"}), running(submission()))
    assert set(changes(plan).values()) == {Change.IN_PLACE}
    assert {pe.differing for pe in plan.pes} == {("parameters",)}
    assert not plan.restarts


@pytest.mark.parametrize(
    ("spec", "differing"),
    [
        ({"processingElement": {"heapMb": 900}}, "heapMb"),
        ({"image": "other"}, "image"),
        ({"resources": {"requests": {"cpu": "2"}}}, "resources"),
        ({"bundle": {"file": "/b.zip"}}, "bundle"),
    ],
)
def test_what_pods_are_made_from_restarts_all(spec: dict[str, Any], differing: str) -> None:
    plan = outlook(submission(**spec), running(submission()))
    assert set(changes(plan).values()) == {Change.RESTART}
    assert {pe.differing for pe in plan.pes} == {(differing,)}


def test_trace_levels_need_no_restart() -> None:
    new = submission(processingElement={"appTraceLevel": "DEBUG"})
    assert not outlook(new, running(submission())).restarts


def test_pes_that_are_no_longer_planned_are_shown_as_removed() -> None:
    job = running(submission())
    metadata = job.pes[0].metadata.model_copy(update={"pe_id": 9, "stage_name": "gone"})
    before = replace(job, pes={**job.pes, 9: replace(job.pes[0], metadata=metadata)})
    plan = outlook(submission(), before)
    assert changes(plan)[9] is Change.REMOVED
    assert "1 removed" in text(plan)


def test_what_the_operator_would_refuse_is_refused_here() -> None:
    with pytest.raises(GraphError, match="cancel the job and submit it anew"):
        outlook(submission(application(max_width=8)), running(submission()))


@pytest.mark.parametrize(
    ("name", "value"), [("maxOffsetPerTrigger", "9"), ("maxOffsetsPerTrigger", "9k")]
)
def test_settings_of_ours_in_a_job_are_known_and_numbers(name: str, value: str) -> None:
    """Others would be dropped silently, or found wrong in the pods."""
    settings = {"sparkConf": {f"spark.streamgraft.{name}": value}}
    with pytest.raises(GraphError, match=f"sparkConf has spark.streamgraft.{name}={value}: "):
        outlook(submission(processingElement=settings), None)


def test_settings_of_spark_in_a_job_that_do_nothing_are_refused() -> None:
    """The same ones as in an application."""
    settings = {"sparkConf": {"spark.driver.memory": "2g"}}
    with pytest.raises(GraphError, match=r"sparkConf has spark.driver.memory=2g: use heapMb"):
        outlook(submission(processingElement=settings), None)


def test_channels_to_which_the_same_happens_share_a_line() -> None:
    plan = outlook(submission(application(width=4)), None)
    lines = [line.split() for line in text(plan).splitlines() if "4: 0 to 3" in line]
    assert lines == [["+", "2,", "…,", "5", "work", "4:", "0", "to", "3", "work", "1", "added"]]


def test_delivery_is_shown() -> None:
    adl = application()
    assert "at least once to functions of sinks: show" in text(outlook(submission(adl), None))
    sinks = [
        Operator(
            name=f"{delivery[:2]}-sink",
            kind="kafka-sink",
            inputs=["done"],
            kafka=KafkaEndpoint.model_validate({"topic": delivery, "delivery": delivery}),
        )
        for delivery in ("exactly_once", "at_least_once")
    ]
    loose = adl.model_copy(update={"operators": [*adl.operators, *sinks]})
    assert "at least once into sinks: at-sink\n" in text(outlook(submission(loose), None))


def test_it_says_who_drops_repeats_of_a_real_time_hop() -> None:
    """Nobody need, if the hop waits for transactions."""
    quick = {"real_time": True, "delivery": "at_least_once"}
    for changed, said in (
        (quick, "real-time mode: read; repeats are dropped by PEs of this job"),
        ({"real_time": True}, "Real time, commits every 10 ms: read"),
    ):
        adl = application()
        changes = {"clean": changed, "work": {"stateful": True}}
        operators = [item.model_copy(update=changes.get(item.name, {})) for item in adl.operators]
        found = text(outlook(submission(adl.model_copy(update={"operators": operators})), None))
        assert said in found
        assert ("repeats are dropped" in found) == ("delivery" in changed)


def test_what_an_operator_once_did_is_no_change() -> None:
    """The operator remembers what sent records again."""
    once = frozenset(operator.name for operator in application().operators)
    again = submission()
    job = running(replace(again, repeating=once))
    known = replace(job, repeating=once)
    assert set(changes(outlook(known.placed(again), known)).values()) == {Change.IDENTICAL}
    assert set(changes(outlook(job.placed(again), job)).values()) != {Change.IDENTICAL}


def test_command_works_without_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGRAFT_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    file = tmp_path / "flights.zip"
    file.write_bytes(_zip({ADL_FILE: application().model_dump_json(by_alias=True).encode()}))

    shown = CliRunner().invoke(app, ["plan", str(file)])
    assert shown.exit_code == 0
    assert "Not compared with a cluster: no kubeconfig" in shown.output

    arguments = ["plan", str(file), "--width", "work=3", "--output", "json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert (document["compared"], document["restart"]) == (False, False)
    assert document["counts"]["added"] == len(document["pes"]) == 5
    assert document["regions"] == [{"name": "work", "width": 3, "maxWidth": 4, "stages": 1}]

    refused = CliRunner().invoke(app, ["--kubeconfig", str(tmp_path / "none"), "plan", str(file)])
    assert refused.exit_code == 1


def test_free_cpus_are_those_of_nodes_that_take_pods() -> None:
    def node(name: str, cpu: str, **spec: bool) -> dict[str, Any]:
        return {
            "metadata": {"name": name},
            "spec": spec,
            "status": {"allocatable": {"cpu": cpu}, "capacity": {"cpu": "4"}},
        }

    def used(name: str, cpu: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "usage": {"cpu": cpu}}

    nodes = [node("a", "4"), node("full", "1"), node("drained", "8", unschedulable=True)]
    nodes.append(node("silent", "8"))
    usage = [used("a", "1500m"), used("full", "1200000000n"), used("drained", "1")]
    pods = [{"containers": [{"usage": {"cpu": "250m"}}, {"usage": {"cpu": "500m"}}]}]
    assert cpu_use(nodes, usage, pods) == CpuUse(5.0, 2.5, 0.75)
    assert cpu_use(nodes, usage, []) == CpuUse(5.0, 2.5, None)
    assert cpu_use(nodes, [], []) is None


def test_free_cpus_are_told_beside_the_sizing() -> None:
    new = replace(outlook(submission(), None), cpu=CpuUse(4.0, 0.5, None))
    assert "Measured: 0.5 of the nodes' 4 CPUs are free, fewer than" in "\n".join(view.notes(new))
    assert view.document(new, True)["cpu"] == {"nodes": 4.0, "free": 0.5, "job": None}
    runs = replace(new, cpu=CpuUse(4.0, 0.5, 1.25))
    assert "CPUs are free; the job uses 1.2" in "\n".join(view.notes(runs))
