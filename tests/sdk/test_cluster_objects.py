"""Services and host pools in the application language, checked and written down."""

from typing import Any

import pytest
from pyspark.sql import DataFrame

import streamgraft as sg
from streamgraft._checks import check


def application() -> tuple[sg.Application, sg.Stream]:
    """Return source → operator → sink, and the operator's stream."""
    app = sg.Application("web")
    rows = app.kafka_source("rows", topic="rows", schema="id bigint")

    @app.operator(inputs=rows)
    def latest_rows(rows: DataFrame) -> DataFrame:
        """Pass on."""
        return rows

    app.kafka_sink("out", input=latest_rows, topic="out")
    return app, latest_rows


def test_an_operator_is_named_by_stream_function_or_name() -> None:
    app, latest = application()

    @app.sink(inputs=latest)
    def keep_all(rows: DataFrame, batch: sg.Batch) -> None:
        """Do nothing."""

    app.service("api", of=latest, port=80, target_port=8080)
    app.service("stored", of=keep_all, port=81)
    app.service("again", of="out", port=82)
    assert check(app.graph) == []
    operators = [service.operator for _, service in app.graph.services]
    assert operators == ["latest-rows", "keep-all", "out"]


@pytest.mark.parametrize(
    ("asked", "problem", "remedy"),
    [
        ({"of": "nobody", "port": 80}, "operator 'nobody', which does not exist", "latest-rows"),
        ({"of": "out", "port": 0}, "port is 0", "greater than or equal to 1"),
        ({"of": "out", "port": 10000}, "ServiceDeclaration", "the runtime's own: use another"),
        ({"name": "Api", "of": "out", "port": 80}, "name is 'Api'", "pattern"),
    ],
)
def test_services_that_can_not_be(asked: dict[str, Any], problem: str, remedy: str) -> None:
    app, _ = application()
    app.service(**{"name": "api", **asked})
    (error,) = check(app.graph)
    assert problem in error.problem
    assert remedy in error.remedy


def test_a_service_is_of_an_operator_that_runs() -> None:
    """Without a sink behind it no PE has it."""
    app, latest = application()

    @app.operator(inputs=latest)
    def seen(rows: DataFrame) -> DataFrame:
        """Pass on, to nobody."""
        return rows

    app.service("lookup", of=seen, port=80)
    (error,) = check(app.graph)
    assert "'seen', which leads to no sink" in error.problem
    assert error.remedy == "add a sink behind it"
    app.kafka_sink("kept", input=seen, topic="kept")
    assert check(app.graph) == []


def test_a_consistent_region_has_operators_that_run() -> None:
    app, latest = application()

    @app.operator(inputs=latest)
    def seen(rows: DataFrame) -> DataFrame:
        """Pass on, to nobody."""
        return rows

    app.consistent_region("all", start=seen)
    (error,) = check(app.graph)
    assert "no operator of consistent region 'all' leads to a sink" in error.problem
    app.kafka_sink("kept", input=seen, topic="kept")
    assert check(app.graph) == []


def test_a_host_pool_is_named_in_placements() -> None:
    app, _ = application()
    pool = app.host_pool("fast", tags=["ssd"], size=2, exclusive=True)
    assert sg.Placement(host_pool=pool).host_pool == "fast"
    app.host_pool("fast", hosts=["node-1"])
    app.host_pool("none")
    problems = [(error.problem, error.remedy) for error in check(app.graph)]
    assert len(problems) == 2
    assert any("'fast'" in problem for problem, _ in problems)
    assert any("a host pool has either tags or hosts" in remedy for _, remedy in problems)
