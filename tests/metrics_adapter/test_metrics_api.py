"""The metrics APIs over HTTP semantics, in one process: who calls is not asked here."""

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.types import Message

from streamgraft_common.kube import KubeClient, Store
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_metrics_adapter.app import routed
from streamgraft_metrics_adapter.catalog import Catalog
from streamgraft_metrics_adapter.configuration import MetricRule
from streamgraft_metrics_adapter.object_labels import ObjectLabels
from streamgraft_metrics_adapter.provider import Provider
from streamgraft_metrics_adapter.regions import RegionCache
from streamgraft_metrics_adapter.rules import RuleMetrics

CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
NOWHERE = KubeClient(KubeConfig(server="http://127.0.0.1:1"))
PODS = {"apiVersion": "v1", "kind": "Pod", "resource": "pods", "nameLabel": "pod"}
RULES: list[dict[str, Any]] = [
    {"name": "rate", "object": PODS | {"namespaceLabel": "namespace"}, "window": "1m"},
    {
        "name": "free",
        "object": {"apiVersion": "v1", "kind": "Node", "resource": "nodes", "nameLabel": "node"},
    },
    {
        "name": "sum",
        "object": {
            "apiVersion": "v1",
            "kind": "Namespace",
            "resource": "namespaces",
            "nameLabel": "namespace",
        },
    },
    {"name": "queue", "external": {"namespaceLabel": "namespace"}},
    {"name": "world", "external": {}},
]


def row(value: float | str, part: str = "value", **labels: str) -> dict[str, Any]:
    """Return a row of Prometheus' answer."""
    return {"metric": {"streamgraft_part": part, **labels}, "value": [0, str(value)]}


def now(**labels: str) -> dict[str, Any]:
    """Return the row that says that the samples are of now."""
    return row(time.time(), "time", **labels)


class Called:
    """The application with metrics from given rows; `get` calls it."""

    def __init__(self) -> None:
        rules = [MetricRule.model_validate({**rule, "series": "x", "query": "x"}) for rule in RULES]
        self.rules = RuleMetrics(rules)
        self.regions = Store(NOWHERE, PARALLEL_REGION.path())
        self.regions.synced.set()
        provider = Provider(RegionCache(self.regions), window_seconds=60.0, max_age_seconds=30.0)
        catalog = Catalog(provider, self.rules, ObjectLabels(NOWHERE))
        self._app = routed(provider, catalog, NOWHERE)

    def answer(self, query: str, *rows: dict[str, Any]) -> None:
        """Set the answer to one rule's query."""
        self.rules.take(0.0, iter([(query, rows)]))

    async def get(self, path: str, **query: str) -> tuple[int, dict[str, Any]]:
        """Return the status code and the document."""
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(query).encode(),
            "headers": [],
        }
        await self._app(scope, receive, send)
        body = b"".join(message.get("body", b"") for message in sent)
        return int(sent[0]["status"]), json.loads(body)


@pytest.fixture
def called() -> Called:
    """An application of its own."""
    return Called()


def only(answer: tuple[int, dict[str, Any]]) -> Mapping[str, Any]:
    """Return the only item of a good answer."""
    code, document = answer
    assert code == 200, document
    (item,) = document["items"]
    found: Mapping[str, Any] = item
    return found


async def test_discovery_names_every_metric(called: Called) -> None:
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


async def test_by_name_is_exactly_one_item_in_both_versions(called: Called) -> None:
    place = {"namespace": "a", "pod": "p"}
    called.answer("pods/rate", row(1.5, **place, code="200"), row(2, **place, code="500"))
    path = "namespaces/a/pods/p/rate"
    assert (await called.get(f"{CUSTOM}/{path}"))[0] == 503
    called.answer(
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


async def test_objects_outside_of_namespaces(called: Called) -> None:
    called.answer("nodes/free", row(7, node="n"), now(node="n"))
    called.answer("namespaces/sum", row(8, namespace="a"), now(namespace="a"))
    item = only(await called.get(f"{CUSTOM}/nodes/n/free"))
    assert (item["value"], "namespace" in item["describedObject"]) == ("7", False)
    assert "windowSeconds" not in item
    item = only(await called.get(f"{CUSTOM}/namespaces/a/metrics/sum"))
    assert item["value"] == "8"
    assert item["describedObject"] == {"kind": "Namespace", "apiVersion": "v1", "name": "a"}
    assert (await called.get(f"{CUSTOM}/namespaces/a/nodes/n/free"))[0] == 404
    # Authorization would take `sum` for a kind of object here.
    assert (await called.get(f"{CUSTOM}/namespaces/a/sum"))[0] == 404


async def test_external_metrics(called: Called) -> None:
    called.answer(
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
    called.answer("external/world", row(9), now())
    assert only(await called.get(f"{EXTERNAL}/namespaces/any/world"))["value"] == "9"


PATH = f"{CUSTOM}/namespaces/a/pods/p/rate"
PLACE = {"namespace": "a", "pod": "p"}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([row(1, **PLACE)], "NoData"),
        ([row(1, **PLACE), row(time.time() - 100, "time", **PLACE)], "Stale"),
        ([row(1, **PLACE), row("NaN", "time", **PLACE)], "Stale"),
        ([row("NaN", **PLACE), now(**PLACE)], "NotANumber"),
        ([row("+Inf", **PLACE), now(**PLACE)], "NotANumber"),
    ],
)
async def test_no_value_is_an_error_with_a_reason(
    called: Called, rows: list[dict[str, Any]], reason: str
) -> None:
    called.answer("pods/rate", *rows)
    code, status = await called.get(PATH)
    assert (code, status["kind"], status["reason"]) == (503, "Status", "ServiceUnavailable")
    assert f"has no value: {reason}" in status["message"]


async def test_unknown_is_not_found(called: Called) -> None:
    called.answer("pods/rate", row(1, **PLACE), now(**PLACE))
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


async def test_bad_selectors_are_bad_requests(called: Called) -> None:
    called.answer("pods/rate", row(1, **PLACE), now(**PLACE))
    for selector in ("a b", "a" * 5000):
        code, status = await called.get(PATH, metricLabelSelector=selector)
        assert (code, status["reason"]) == (400, "BadRequest")


async def test_openapi_describes_every_group_version(called: Called) -> None:
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
