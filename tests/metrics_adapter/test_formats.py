"""What goes over the wire: quantities, selectors, and what a request asks for."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_metrics_adapter import selectors
from streamgraft_metrics_adapter.access.attributes import Attributes, attributes_of
from streamgraft_metrics_adapter.api.wire import quantity
from streamgraft_metrics_adapter.status import BadRequestError

SIGNAL = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/parallelregions.streamgraft.io"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (3.0, "3"),
        (2.5, "2500m"),
        (-1.0004, "-1"),
        (-0.25, "-250m"),
        (1e15, f"{10**15}"),
    ],
)
def test_quantity(value: float, text: str) -> None:
    assert quantity(value) == text


@given(st.floats(min_value=-1e12, max_value=1e12))
def test_quantity_is_right_to_a_thousandth(value: float) -> None:
    text = quantity(value)
    assert re.fullmatch(r"-?\d+m?", text)
    number = Decimal(text[:-1]) / 1000 if text.endswith("m") else Decimal(text)
    assert abs(number - Decimal(value)) <= Decimal("0.00051") + abs(Decimal(value)) / 2**50


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_a_number_has_no_quantity(value: float) -> None:
    with pytest.raises(ValueError, match="no quantity"):
        quantity(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("a=1", True),
        ("a==1,streamgraft.io/job = flights", True),
        ("a=2", False),
        ("a!=2", True),
        ("missing!=2", True),
        ("a in (1, 2)", True),
        ("a in (1,2),b", False),
        ("a notin (1)", False),
        ("missing notin (1)", True),
        ("a", True),
        ("!a", False),
        ("!missing", True),
        ("a=", False),
        ("a in (1, 2), missing notin (1,2),!b", True),
    ],
)
def test_selector(text: str, expected: bool) -> None:
    labels = {"a": "1", "streamgraft.io/job": "flights"}
    assert selectors.parse(text).matches(labels) is expected


@pytest.mark.parametrize("text", ["a=1,", "=1", "a in 1", "a=(b)", "a b"])
def test_bad_selector(text: str) -> None:
    with pytest.raises(BadRequestError, match="unable to parse"):
        selectors.parse(text)


def test_signal_is_a_subresource_of_the_described_object() -> None:
    """As the API server's RequestInfo sees it: rules of RBAC then mean the same on both ways."""
    assert attributes_of("GET", f"{SIGNAL}/enrich/demand") == Attributes(
        group="custom.metrics.k8s.io",
        version="v1beta2",
        namespace="ns",
        resource="parallelregions.streamgraft.io",
        name="enrich",
        subresource="demand",
        verb="get",
    )


def test_rest_asks_for_the_resource_itself() -> None:
    common = {"group": "streamgraft.io", "version": "v1alpha1", "namespace": "ns"}
    regions = {**common, "resource": "parallelregions"}
    path = "/api/v1/namespaces/ns/regions"
    assert attributes_of("GET", path) == Attributes(**regions, verb="list")
    assert attributes_of("GET", f"{path}/a/history") == Attributes(**regions, name="a", verb="get")
    scale = {**regions, "name": "a", "subresource": "scale"}
    assert attributes_of("GET", f"{path}/a/scale") == Attributes(**scale, verb="get")
    assert attributes_of("PUT", f"{path}/a/scale") == Attributes(**scale, verb="update")


@pytest.mark.parametrize(
    "path", ["/metrics", "/apis", "/openapi/v2", "/apis/custom.metrics.k8s.io"]
)
def test_everything_else_is_a_path(path: str) -> None:
    assert attributes_of("GET", path) == Attributes(verb="get", path=path)


def test_wider_attributes_come_first() -> None:
    """What is allowed for all is allowed for each: reviews then do not grow with objects."""
    asked = list(attributes_of("GET", f"{SIGNAL}/enrich/demand").from_widest())
    assert [(attributes.namespace, attributes.name) for attributes in asked] == [
        ("", ""),
        ("ns", ""),
        ("ns", "enrich"),
    ]
    assert {attributes.subresource for attributes in asked} == {"demand"}
    assert len(list(attributes_of("GET", "/metrics").from_widest())) == 1
    listing = list(attributes_of("GET", "/api/v1/namespaces/ns/regions").from_widest())
    assert [attributes.namespace for attributes in listing] == ["", "ns"]
