"""Filters of imports on real Spark: rows pass as properties of an export would meet the same."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructType
from tests.pe_runtime.one_driver import driver

from streamgraft_common.shared_streams import meets, parse, to_sql
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

SCHEMA = (
    StructType()
    .add("kind", "string")
    .add("level", "long")
    .add("small", "integer")
    .add("share", "double")
    .add("tags", ArrayType(StringType()))
    .add("counts", ArrayType(IntegerType()))
)
TEXTS = ("", "click", "it's", "\\", 'say "so"', "`a`", "%", "ünï", "a\nb", "{}", "${x}")
NUMBERS = (-3, -1, 0, 1, 2, 7, 2**40)
FLOATS = (-2.5, 0.0, 0.5, 1.0, 1e9)
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
EXPRESSIONS = 20
"""Of one query, so that there are not as many of them."""
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Code for a dozen rows takes longer to compile than to interpret."""

texts, numbers = st.sampled_from(TEXTS), st.sampled_from(NUMBERS)
smalls = st.sampled_from([number for number in NUMBERS if number < 2**31])
rows = st.fixed_dictionaries(
    {
        "kind": st.none() | texts,
        "level": st.none() | numbers,
        "small": st.none() | smalls,
        "share": st.none() | st.sampled_from(FLOATS),
        "tags": st.none() | st.lists(texts, min_size=1, max_size=3),
        "counts": st.none() | st.lists(smalls, min_size=1, max_size=3),
    }
)
scalars = st.sampled_from([*NUMBERS, *FLOATS]).map(repr)
compared = st.sampled_from(COMPARISONS)


def _joined(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda found: " ".join(str(part) for part in found))


literals = texts.map(json.dumps)
lists: dict[str, st.SearchStrategy[list[Any]]] = {
    "tags": st.lists(literals, min_size=1, max_size=3),
    "counts": st.lists(smalls, min_size=1, max_size=3),
}
tests = st.one_of(
    _joined(st.just("kind"), compared, literals),
    _joined(st.sampled_from(["level", "small", "share"]), compared, scalars),
    _joined(
        st.sampled_from(["level", "small"]),
        st.just("%"),
        st.sampled_from([2, 3, 10]),
        compared,
        st.integers(-4, 4),
    ),
    _joined(literals, st.just("in tags")),
    _joined(smalls, st.just("in counts")),
    _joined(st.sampled_from(["tags[0]", "tags[2]"]), compared, literals),
    _joined(st.sampled_from(["counts[0]", "counts[2]"]), compared, scalars),
    *(
        _joined(
            st.just(name),
            st.sampled_from(["==", "!="]),
            items.map(lambda found: f"[{', '.join(map(str, found))}]"),
        )
        for name, items in lists.items()
    ),
)
filters = st.recursive(
    tests,
    lambda inner: st.one_of(
        _joined(inner, st.sampled_from(["&&", "||"]), inner),
        inner.map(lambda text: f"!({text})"),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """A driver with the settings of a PE."""
    with driver(cluster, INTERPRETED) as found:
        yield found


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    found=st.lists(rows, min_size=12, max_size=12),
    wanted=st.lists(filters, min_size=EXPRESSIONS, max_size=EXPRESSIONS),
)
def test_rows_pass_as_properties_would(
    session: SparkSession, found: list[dict[str, Any]], wanted: list[str]
) -> None:
    """Whatever is compared, negated, escaped, of another kind of number, or null."""
    schema = json.loads(SCHEMA.json())
    data = [tuple(row[name] for name in SCHEMA.names) for row in found]
    frame = session.createDataFrame(data, SCHEMA)
    passed = frame.select(*(F.expr(to_sql(parse(text), schema)) for text in wanted)).collect()
    for number, text in enumerate(wanted):
        for row, result in zip(found, passed, strict=True):
            known = {name: value for name, value in row.items() if value is not None}
            assert result[number] == meets(known, parse(text)), (text, row)
