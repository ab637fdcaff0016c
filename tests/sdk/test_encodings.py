"""Avro and Protocol Buffers in the application language."""

import json
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType
from tests.common.test_encodings import SCHEMA, descriptors

import streamgraft as sg
from streamgraft._checks import check
from streamgraft._encoded_checks import encoded_column_errors

AVRO = sg.Avro(json.dumps(SCHEMA))


def errors(app: sg.Application) -> str:
    return "\n".join(map(str, check(app.graph)))


def test_wrong_schemas_are_told_by_the_build() -> None:
    app = sg.Application("app")
    app.kafka_source("a", topic="a", schema="id bigint", format=sg.Avro("{"))
    app.kafka_source("b", topic="b", schema="id bigint", format=sg.Protobuf(b"", "shop.Order"))
    app.kafka_source("c", topic="c", format=AVRO)
    found = errors(app)
    assert "'a' has not a valid Avro schema" in found
    assert "'b' has no message shop.Order" in found
    assert "source 'c' has format avro and no schema" in found


def test_real_time_takes_no_python() -> None:
    app = sg.Application("app")
    rows = app.kafka_source("rows", topic="rows", schema="id bigint", format=AVRO)

    @app.operator(inputs=rows, real_time=True)
    def fast(frame: Any) -> Any:
        return frame

    assert "'rows' has format avro, which needs Python, and 'fast' is in real time" in errors(app)


@pytest.mark.parametrize(
    ("format", "columns", "problem"),
    [
        (AVRO, "id other", "the schema has no field other; the schema wants price, at, raw, tags"),
        (AVRO, "name", "the schema wants id, price, at, raw, tags, counts"),
        (sg.Protobuf(descriptors(), "shop.Order"), "id o", "the message has no field o"),
        (sg.Protobuf(descriptors(), "shop.Order"), "raw", "raw is of type long"),
        (sg.Protobuf(descriptors(), "shop.Order"), "id", ""),
    ],
)
def test_columns_need_fields(format: Any, columns: str, problem: str) -> None:
    """The build refuses a sink whose rows have no place in the schema, and shows the columns."""
    app = sg.Application("app")
    rows = app.kafka_source("rows", topic="rows", schema="id bigint")
    app.kafka_sink("sink", input=rows, topic="out", format=format)
    schema = StructType([StructField(name, LongType()) for name in columns.split()])
    found = list(encoded_column_errors(app.graph, {"rows": schema}))
    assert bool(found) == bool(problem)
    for error in found:
        assert isinstance(error, sg.SchemaMismatch)
        assert error.problem.startswith(f"sink 'sink' can't write stream 'rows': {problem}")
        assert error.remedy == "the stream has " + ", ".join(
            f"{name} bigint" for name in columns.split()
        )


def test_a_password_in_the_url_of_a_registry_is_refused() -> None:
    """It would be in the bundle. The error does not show it, and the schema is checked, too."""
    app = sg.Application("app")
    guarded = sg.Avro("{", registry="https://key:s3cr3t@registry")
    app.kafka_source("a", topic="a", schema="id bigint", format=guarded)
    found = errors(app)
    assert "'a' has a registry whose URL has a user or password" in found
    assert "processingElement.restrictedPropertiesSecret" in found
    assert "registry-user and registry-password, or registry-token" in found
    assert "'a' has not a valid Avro schema" in found
    assert "s3cr3t" not in found


def test_the_build_asks_no_registry() -> None:
    """So it needs no credentials."""
    app = sg.Application("app")
    avro = sg.Avro(json.dumps(SCHEMA), registry="https://registry.invalid")
    rows = app.kafka_source("rows", topic="rows", schema="id bigint", format=avro)
    app.kafka_sink("sink", input=rows, topic="out", format=avro)
    assert errors(app) == ""
    schema = StructType([StructField("id", LongType())])
    (found,) = encoded_column_errors(app.graph, {"rows": schema})
    assert "the schema wants price" in found.problem
