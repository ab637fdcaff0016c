"""The metrics APIs over HTTP semantics, in one process: who calls is not asked here."""

import math
import time
from collections.abc import Mapping
from typing import Any

import pytest

from streamgraft_metrics_adapter.prometheus.source import Row

CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"


def row(value: float, part: str = "value", **labels: str) -> Row:
    """Return a row of Prometheus' answer."""
    return {"streamgraft_part": part, **labels}, value


def now(**labels: str) -> Row:
    """Return the row that says that the samples are of now."""
    return row(time.time(), "time", **labels)


def only(answer: tuple[int, dict[str, Any]]) -> Mapping[str, Any]:
    """Return the only item of a good answer."""
    code, document = answer
    assert code == 200, document
    (item,) = document["items"]
    found: Mapping[str, Any] = item
    return found


async def test_discovery_names_every_metric(called: Any) -> None:
    _, groups = await called.get("/apis")
    assert [item["name"] for item in groups["groups"]] == [
        "custom.metrics.k8s.io",
        "external.metrics.k8s.io",
    ]
    _, group = await called.get("/apis/custom.metrics.k8s.io")
    assert group["preferredVersion"]["version"] == "v1beta2"
    for version in ("v1beta1", "v1beta2"):
        _, listing = await called.get(f"/apis/custom.metrics.k8s.io/{version}")
        found = {item["name"]: item["namespaced"] for item in listing["resources"]}
        assert found["parallelregions.streamgraft.io/demand"] is True
        assert (found["pods/rate"], found["nodes/free"], found["namespaces/sum"]) == (
            True,
            False,
            False,
        )
    _, listing = await called.get(EXTERNAL)
    assert [item["name"] for item in listing["resources"]] == ["queue", "world"]


async def test_by_name_is_exactly_one_item_in_both_versions(called: Any) -> None:
    place = {"namespace": "a", "pod": "p"}
    await called.answer("pods/rate", row(1.5, **place, code="200"), row(2, **place, code="500"))
    path = "namespaces/a/pods/p/rate"
    assert (await called.get(f"{CUSTOM}/{path}"))[0] == 503
    await called.answer(
        "pods/rate", row(1.5, **place, code="200"), row(2, **place, code="500"), now(**place)
    )
    item = only(await called.get(f"{CUSTOM}/{path}"))
    assert item["value"] == "3500m"
    assert item["windowSeconds"] == 60
    assert item["metric"] == {"name": "rate", "selector": None}
    assert item["describedObject"] == {
        "kind": "Pod",
        "apiVersion": "v1",
        "namespace": "a",
        "name": "p",
    }
    item = only(
        await called.get(
            f"/apis/custom.metrics.k8s.io/v1beta1/{path}", metricLabelSelector="code=500"
        )
    )
    assert (item["metricName"], item["value"], item["window"]) == ("rate", "2", 60)
    assert item["selector"] == {
        "matchExpressions": [{"key": "code", "operator": "In", "values": ["500"]}]
    }


async def test_objects_outside_of_namespaces(called: Any) -> None:
    await called.answer("nodes/free", row(7, node="n"), now(node="n"))
    await called.answer("namespaces/sum", row(8, namespace="a"), now(namespace="a"))
    item = only(await called.get(f"{CUSTOM}/nodes/n/free"))
    assert (item["value"], "namespace" in item["describedObject"]) == ("7", False)
    assert "windowSeconds" not in item
    item = only(await called.get(f"{CUSTOM}/namespaces/a/metrics/sum"))
    assert item["value"] == "8"
    assert item["describedObject"] == {"kind": "Namespace", "apiVersion": "v1", "name": "a"}
    assert (await called.get(f"{CUSTOM}/namespaces/a/nodes/n/free"))[0] == 404
    # Authorization would take `sum` for a kind of object here.
    assert (await called.get(f"{CUSTOM}/namespaces/a/sum"))[0] == 404


async def test_external_metrics(called: Any) -> None:
    await called.answer(
        "external/queue",
        row(1, namespace="a", q="x"),
        row(2, namespace="a", q="y"),
        row(3, namespace="b", q="x"),
        now(namespace="a"),
        now(namespace="b"),
    )
    path = f"{EXTERNAL}/namespaces/a/queue"
    _, everything = await called.get(path)
    assert [item["value"] for item in everything["items"]] == ["1", "2"]
    item = only(await called.get(path, labelSelector="q in (y,z)"))
    assert (item["metricName"], item["metricLabels"]) == ("queue", {"q": "y"})
    assert (await called.get(path, labelSelector="q=z"))[1]["items"] == []
    await called.answer("external/world", row(9), now())
    assert only(await called.get(f"{EXTERNAL}/namespaces/any/world"))["value"] == "9"


PATH = f"{CUSTOM}/namespaces/a/pods/p/rate"
PLACE = {"namespace": "a", "pod": "p"}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([row(1, **PLACE)], "NoData"),
        ([row(1, **PLACE), row(time.time() - 100, "time", **PLACE)], "Stale"),
        ([row(1, **PLACE), row(math.nan, "time", **PLACE)], "Stale"),
        ([row(math.nan, **PLACE), now(**PLACE)], "NotANumber"),
        ([row(math.inf, **PLACE), now(**PLACE)], "NotANumber"),
    ],
)
async def test_no_value_is_an_error_with_a_reason(
    called: Any, rows: list[Row], reason: str
) -> None:
    await called.answer("pods/rate", *rows)
    code, status = await called.get(PATH)
    assert (code, status["kind"], status["reason"]) == (503, "Status", "ServiceUnavailable")
    assert f"has no value: {reason}" in status["message"]


async def test_unknown_is_not_found(called: Any) -> None:
    await called.answer("pods/rate", row(1, **PLACE), now(**PLACE))
    for path in (
        "/apis/custom.metrics.k8s.io/v1",
        f"{CUSTOM}/namespaces/a/pods/other/rate",
        f"{CUSTOM}/namespaces/a/pods/p/beauty",
        f"{CUSTOM}/namespaces/a/parallelregions.streamgraft.io/r/demand",
        f"{EXTERNAL}/namespaces/a/beauty",
        "/apis/else.k8s.io",
    ):
        code, status = await called.get(path)
        assert (code, status["reason"]) == (404, "NotFound"), path
    assert (await called.get(PATH, metricLabelSelector="code=1"))[0] == 404


async def test_nothing_can_be_written(called: Any) -> None:
    for method in ("POST", "PUT", "DELETE"):
        code, status = await called.get(PATH, method)
        assert (code, status["reason"]) == (405, "MethodNotAllowed")


async def test_bad_selectors_are_bad_requests(called: Any) -> None:
    await called.answer("pods/rate", row(1, **PLACE), now(**PLACE))
    for selector in ("a b", "a" * 5000):
        code, status = await called.get(PATH, metricLabelSelector=selector)
        assert (code, status["reason"]) == (400, "BadRequest")


async def test_openapi_describes_every_group_version(called: Any) -> None:
    _, index = await called.get("/openapi/v3")
    assert len(index["paths"]) == 3
    for entry in index["paths"].values():
        code, document = await called.get(entry["serverRelativeURL"])
        assert code == 200
        names = set(document["components"]["schemas"])
        assert references(document) <= {f"#/components/schemas/{name}" for name in names}
    _, document = await called.get("/openapi/v2")
    assert references(document) <= {f"#/definitions/{name}" for name in document["definitions"]}
    assert len(document["paths"]) == 7


def references(document: Any) -> set[str]:
    """Return every reference in a document."""
    if isinstance(document, dict):
        own = {document["$ref"]} if "$ref" in document else set()
        return own.union(*(references(part) for part in document.values()))
    parts = document if isinstance(document, list) else []
    return set().union(*(references(part) for part in parts))
