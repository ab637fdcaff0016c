"""Subscriptions, filters and schemas of streams between jobs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_common.shared_streams import (
    Expression,
    ExpressionError,
    check_properties,
    meets,
    misfit,
    parse,
    to_sql,
)

PROPERTIES: dict[str, Any] = {"kind": "click", "level": 3, "share": 0.5, "tags": ["a", "b"]}
SCHEMA = {
    "fields": [
        {"name": "kind", "type": "string"},
        {"name": "level", "type": "long"},
        {"name": "share", "type": "double"},
        {"name": "tags", "type": {"type": "array", "elementType": "string"}},
    ]
}


@pytest.mark.parametrize(
    ("subscription", "met"),
    [
        ('kind == "click"', True),
        ('kind != "click"', False),
        ("level > 2 && level <= 3", True),
        ("level == 3.0", True),
        ("level % 2 == 1", True),
        ("share < 0.25 || share >= 0.5", True),
        ('"b" in tags', True),
        ('"c" in tags', False),
        ('tags[1] == "b"', True),
        ('tags[2] == "b"', False),
        ('tags == ["a", "b"]', True),
        ('!(kind == "click" && level == 4)', True),
        ("absent == 1", False),
        ("absent != 1", False),
        ("!(absent == 1)", True),
        ('level != "3"', False),
        ("level == 1 && level == 2 || level == 3", True),
        ("level == 3 || level == 1 && level == 2", True),
    ],
)
def test_subscriptions(subscription: str, met: bool) -> None:
    """The paper's operators on integers, floats, texts and lists."""
    assert meets(PROPERTIES, parse(subscription)) is met


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 1),
        ("level =", 7),
        ("level == ", 10),
        ("level = 3", 7),
        ("3 == level", 3),
        ("(level == 3", 12),
        ("level in tags", 7),
        ("level == 99999999999999999999", 10),
        ("level % 0 == 1", 9),
        ('tags < ["a"]', 6),
        ("level == 3 level == 4", 12),
        ("(" * 65 + "level == 1" + ")" * 65, 1),
    ],
)
def test_errors_have_a_position(text: str, column: int) -> None:
    """What is wrong is named by its place in the text."""
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert caught.value.column == column
    assert str(caught.value).startswith(f"column {column}: ")


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("level == 3 && lvl == 4", 15, "there is no column lvl"),
        ('level == "3"', 1, "level is a number"),
        ("kind % 2 == 1", 1, "kind is a string"),
        ("share % 2 == 1", 1, "share is no integer"),
        ('"x" in kind', 8, "kind is no list"),
    ],
)
def test_filters_are_checked_by_the_schema(text: str, column: int, problem: str) -> None:
    """Columns and types that are wrong are told with their place."""
    with pytest.raises(ExpressionError, match=problem) as caught:
        to_sql(parse(text), SCHEMA)
    assert caught.value.column == column


def test_filters_become_spark_expressions() -> None:
    """Texts are escaped, and a test of null is false."""
    sql = to_sql(parse(r'kind == "it\u0027s \\" && !(level % 3 == -1)'), SCHEMA)
    assert sql == (
        r"(coalesce(`kind` = 'it\'s \\', false) and"
        " (not coalesce((`level` % 3) = cast('-1' as bigint), false)))"
    )


_scalars = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats(-1e6, 1e6).map(lambda value: f"{value:.3f}"),
    st.text(max_size=5).map(json.dumps),
)
_names = st.sampled_from(["kind", "level", "share", "tags", "index", "inner"])
_tests = st.one_of(
    st.tuples(_names, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), _scalars).map(" ".join),
    st.tuples(_scalars, st.just("in"), _names).map(" ".join),
)
_expressions = st.recursive(
    _tests,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(" ".join),
        inner.map(lambda text: f"!({text})"),
        inner.map(lambda text: f"({text})"),
    ),
    max_leaves=8,
)


@given(_expressions)
def test_valid_expressions_are_taken(text: str) -> None:
    """Whatever they say, they are true or false, and their negation is the other."""
    expression: Expression = parse(text)
    assert meets(PROPERTIES, parse(f"!({text})")) is not meets(PROPERTIES, expression)


@given(st.text(alphabet='ab1 .%!=<>&|()[]"\\,in-', max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Nothing but ExpressionError is raised, with a place within the text or right behind it."""
    columns = [1]
    try:
        meets(PROPERTIES, parse(text))
    except ExpressionError as error:
        columns.append(error.column)
    assert all(1 <= column <= len(text) + 1 for column in columns)


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        (PROPERTIES, ""),
        ({"a-b": 1}, "no name of a property"),
        ({"a": True}, "use a number"),
        ({"a": [1, "b"]}, "all numbers or all texts"),
        ({"a": []}, "has items"),
        ({"a": {"b": 1}}, "use a number"),
    ],
)
def test_properties_are_checked(properties: dict[str, Any], problem: str) -> None:
    """Wrong ones are named."""
    assert problem in check_properties(properties)
    assert bool(problem) == bool(check_properties(properties))


def _schema(**columns: Any) -> dict[str, Any]:
    return {"fields": [{"name": name, "type": kind} for name, kind in columns.items()]}


def test_schemas_fit_by_name_and_type() -> None:
    """An import may leave columns out and read wider numbers, nothing else."""
    exported = _schema(a="integer", b="string", c={"type": "array", "elementType": "short"})
    assert misfit(_schema(b="string"), exported) == ""
    assert misfit(_schema(a="long", c={"type": "array", "elementType": "long"}), exported) == ""
    assert misfit(_schema(a="short"), exported) == "its column a is integer, not short"
    assert misfit(_schema(d="string"), exported) == "it has no column d (it has a, b, c)"
    assert "its column c is" in misfit(_schema(c="string"), exported)
    listed = exported["fields"][2]["type"]
    assert "its column a is integer, not {" in misfit(_schema(a=listed), exported)
