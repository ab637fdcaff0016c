"""Bundles are built with the submission-time values that the job runs with."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.test_cli_plan import application
from tests.sdk.test_cli_refusal import OneJob
from typer.testing import CliRunner

import streamgraft as sg
from streamgraft._builder import BuiltBundle, _zip, build_bundle
from streamgraft._streams import values_read
from streamgraft.cli import _plan, _submit
from streamgraft.cli._app import app as cli
from streamgraft.cli._cluster import Cluster
from streamgraft.cli._refusal import parameters_of
from streamgraft_common.adl import Adl
from streamgraft_common.bundle import ADL_FILE, Bundle
from streamgraft_common.edits import EditRefused, check
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JobSpec, SavedStage
from streamgraft_common.worker_values import VARIABLE, encoded
from streamgraft_operator.graph import Submission
from streamgraft_operator.graph.stages import saved_stages

TOTALS = """
import streamgraft as sg
from pyspark.sql import functions as F, types as T

app = sg.Application("totals")
by = app.parameter("by", default="user")
least = app.parameter("least", default="1")
late = app.parameter("late", default="x")
imported = app.parameter("imported", default="user")
FIRST = imported.value
rows = app.kafka_source("rows", topic="rows", schema="user string, page string, millis bigint")

@F.udf(T.StringType())
def marked(text):
    return text + late.value

@app.operator(inputs=rows)
def clean(rows):
    assert FIRST == "user"
    return rows.where(F.col("millis") >= int(least.value)).withColumn("mark", marked("page"))

@app.operator(inputs=clean, output_mode="update")
def totals(rows):
    return rows.groupBy(by.value).agg(F.sum("millis").alias("millis"))

app.kafka_sink("out", input=totals, topic="out")
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The application's file."""
    file = tmp_path_factory.mktemp("application") / "app.py"
    file.write_text(TOTALS)
    return file


def stages(built: BuiltBundle, **parameters: str) -> list[SavedStage]:
    """Return what is noted of a job with a bundle, and what its spec gives parameters."""
    spec = JobSpec.model_validate({"bundle": {"file": "/b"}, "parameters": parameters})
    bundle = Bundle(built.adl, hashlib.sha256(built.data).hexdigest())
    submission = Submission("ns", "job", "u", spec, bundle, "kafka:9092")
    return saved_stages(submission.topology({}), built.adl)


@pytest.mark.integration
def test_another_grouping_by_a_parameter_is_refused_and_a_threshold_keeps_state(
    module: Path,
) -> None:
    first = build_bundle(module)
    told = {item.name: item.parameters for item in first.adl.operators}
    assert told["clean"] == {"least": "1"}
    assert told["totals"] == {"by": "user"}
    assert first.adl.parameters == dict.fromkeys(("by", "imported"), "user") | {
        "least": "1",
        "late": "x",
    }
    (notice,) = first.notices
    assert "parameter 'imported' is read while the module is imported" in notice
    runs = stages(first)

    other = build_bundle(module, parameters={"by": "page"})
    assert other.adl.parameters == first.adl.parameters  # the defaults
    with pytest.raises(EditRefused, match=r"kept by \(user string\), and would be by \(page str"):
        check(runs, stages(other, by="page"), drop=())
    with pytest.raises(EditRefused, match="with by=page, and the bundle was built with by=user"):
        check(runs, stages(first, by="page"), drop=())
    check(stages(first, by="page"), stages(other, by="page"), drop=())

    least = build_bundle(module, parameters={"least": "5", "late": "y", "imported": "page"})
    check(runs, stages(least, least="5", late="y", imported="page"), drop=())
    check(runs, stages(first, late="y", imported="page"), drop=())  # no plan follows from these


@pytest.mark.integration
def test_values_that_no_plan_follows_from_leave_the_bundle_as_it_is(module: Path) -> None:
    given = {"late": "y", "imported": "page"}
    assert sg.build(module, parameters=given) == sg.build(module)


def test_workers_have_the_values_before_a_function_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark has them import the module of a function; nobody binds an application there."""
    monkeypatch.setenv(VARIABLE, encoded("totals", {"by": "page"}))
    here, other = sg.Application("totals"), sg.Application("other")
    assert here.parameter("by", default="user").value == "page"
    assert here.parameter("least", default="1").value == "1"
    assert other.parameter("by", default="user").value == "user"


def test_a_parameter_that_does_not_exist_is_an_error_of_the_build(module: Path) -> None:
    with pytest.raises(sg.UnknownParameter, match="has no parameter buy: it has by, imported, lat"):
        sg.build(module, parameters={"buy": "page"})


def test_values_that_are_read_are_told_each_time() -> None:
    app = sg.Application("app")
    here, there = (app.parameter(name, default=name) for name in ("here", "there"))
    app.bind({"there": "elsewhere"})
    assert here.value == "here"
    with values_read(app.parameters.values()) as found:
        assert repr(here) == "<Parameter here='here'>"  # which is no look at it
        assert there.value == "elsewhere"
    assert found == {"there": "elsewhere"}
    there.value = "back"
    assert there.value == "back"


class Shared(OneJob):
    """An API server with a Job in which others have set parameters, too."""

    async def apply(self, path: str, body: Object, manager: str, **query: str) -> Object:
        """Return the Job with what others have set."""
        spec = body["spec"]
        others = {"speed": "3"}
        return {**body, "spec": {**spec, "parameters": {**others, **spec.get("parameters", {})}}}


async def test_what_others_have_set_in_the_job_counts() -> None:
    spec: dict[str, Any] = {"bundle": {"configMap": {"name": "b"}}}
    cluster = Cluster(Shared(), "default")
    found = await parameters_of(cluster, "flights", spec, application())
    assert found == {"speed": "3"}
    asked = spec | {"parameters": {"speed": "2"}}
    assert (await parameters_of(cluster, "flights", asked, application()))["speed"] == "2"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The values of parameters that applications were built with; nothing really is."""
    done: list[object] = []

    def build(path: Path, include: object, parameters: dict[str, str]) -> BuiltBundle:
        done.append(parameters)
        adl = reading(parameters)
        return BuiltBundle(
            _zip({ADL_FILE: adl.model_dump_json(by_alias=True).encode()}), adl, [], []
        )

    monkeypatch.setattr(_submit, "built", build)
    return done


def reading(given: dict[str, str]) -> Adl:
    """Return an application whose operator `work` reads `speed`."""
    adl, built = application(), {"speed": given.get("speed", "1")}
    operators = [
        item.model_copy(update={"parameters": built if item.name == "work" else {}})
        for item in adl.operators
    ]
    return adl.model_copy(update={"operators": operators})


def test_an_application_is_built_again_for_values_that_it_reads(builds: list[object]) -> None:
    request = _submit.Request(Path("app.py"))
    for adl, values in ((reading({}), {"other": "1"}), (reading({"speed": "3"}), {"speed": "3"})):
        assert _submit.built_again(request, adl, values) is None
    assert _submit.built_again(_submit.Request(Path("a.zip")), reading({}), {"speed": "3"}) is None
    assert builds == []
    assert _submit.built_again(request, reading({}), {"speed": "3", "of-another": "1"})
    assert builds == [{"speed": "3"}]


@pytest.mark.parametrize("command", ["plan", "submit"])
@pytest.mark.parametrize(
    ("options", "built"),
    [((), [{}, {"speed": "3"}]), (("--param", "speed=a=b"), [{"speed": "a=b"}])],
    ids=["others' values", "own values"],
)
def test_what_is_submitted_is_built_for_the_values_of_the_job(
    command: str,
    options: tuple[str, ...],
    built: list[dict[str, str]],
    builds: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @asynccontextmanager
    async def connected(_: object) -> AsyncIterator[Cluster]:
        yield Cluster(Shared(), "default")

    monkeypatch.setattr(_plan, "connected", connected)
    monkeypatch.setattr(_submit, "connected", connected)
    file = tmp_path / "app.py"
    file.touch()
    CliRunner().invoke(cli, [command, str(file), *options])
    assert builds == built
