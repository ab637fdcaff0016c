"""Hostile HTTP: any path, query, method and header has an answer that is no error of the server."""

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Message
from tests.fuzz.adapter_world import GOOD, NOWHERE, Tenants
from tests.fuzz.cases import CASES

from streamgraft_metrics_adapter.access.attributes import attributes_of
from streamgraft_metrics_adapter.access.authentication import Authenticator, proxied_user
from streamgraft_metrics_adapter.access.authorities import Authorities, authorities_of
from streamgraft_metrics_adapter.access.authorization import Authorizer
from streamgraft_metrics_adapter.access.sessions import Sessions
from streamgraft_metrics_adapter.api.app import application, routed
from streamgraft_metrics_adapter.api.catalog import Catalog
from streamgraft_metrics_adapter.api.object_labels import ObjectLabels
from streamgraft_metrics_adapter.rules.rule_metrics import RuleMetrics

PARTS = st.sampled_from(
    [
        *("apis", "api", "v1", "custom.metrics.k8s.io", "external.metrics.k8s.io", "v1beta2"),
        *("namespaces", GOOD, "parallelregions.streamgraft.io", "*", "demand", "total_lag"),
        *("metrics", "regions", "j-r", "history", "decisions", "scale", "openapi", "v3", "", ".."),
    ]
) | st.text(max_size=8)
PATHS = st.lists(PARTS, max_size=9).map(lambda parts: "/" + "/".join(parts))
QUERIES = st.dictionaries(
    st.sampled_from(["labelSelector", "metricLabelSelector", "limit", "continue", "since"]),
    st.text(max_size=12),
).map(lambda query: "&".join(f"{name}={value}" for name, value in query.items()))
METHODS = st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "X"])
HEADERS = st.lists(
    st.tuples(
        st.sampled_from([b"authorization", b"content-length", b"content-type", b"x-remote-user"])
        | st.binary(max_size=8),
        st.binary(max_size=30),
    ),
    max_size=4,
)


async def answer(app: Any, scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
    """Return the code and the body that a request is answered with."""
    sent: list[Message] = []
    left = [body]

    async def receive() -> Message:
        if not left:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": left.pop(), "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    async with asyncio.timeout(20):
        await app(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent)
    return int(sent[0]["status"]), text


def scope_of(
    method: str, path: str, query: str, headers: list[tuple[bytes, bytes]]
) -> dict[str, Any]:
    """Return a request as the server hands it on."""
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query.encode("utf-8", "replace"),
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "state": {},
    }


@settings(max_examples=CASES)
@given(METHODS, PATHS, QUERIES, HEADERS, st.binary(max_size=40))
def test_who_is_let_in_gets_an_answer(
    method: str, path: str, query: str, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    """Behind the guard, as somebody who may do anything; streams are left out, they don't end."""
    if path.endswith("/stream"):
        return
    tenants = Tenants()
    tenants.refresh()
    catalog = Catalog(tenants.provider, RuleMetrics([]), ObjectLabels(NOWHERE))
    app = routed(tenants.provider, catalog, NOWHERE.config, Sessions())
    code, text = asyncio.run(answer(app, scope_of(method, path, query, headers), body))
    assert code in {200, 307, 400, 403, 404, 405, 422, 503}
    if code >= 400 and method != "HEAD":
        assert json.loads(text)["code"] == code


class NobodyKnown:
    """The authorities of a cluster whose ConfigMap was not read yet."""

    current = Authorities()


@settings(max_examples=CASES)
@given(METHODS, PATHS, QUERIES, HEADERS, st.binary(max_size=40))
def test_who_is_unknown_gets_no_further(
    method: str, path: str, query: str, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    """The API server is away: a token is an error, never somebody."""
    tenants = Tenants()
    catalog = Catalog(tenants.provider, RuleMetrics([]), ObjectLabels(NOWHERE))
    watch: Any = NobodyKnown()
    access = Authenticator(NOWHERE, watch), Authorizer(NOWHERE)
    app = application(tenants.provider, catalog, NOWHERE.config, *access)
    code, _ = asyncio.run(answer(app, scope_of(method, path, query, headers), body))
    assert code in {401, 413, 429, 503}
    assert attributes_of(method, path).verb


@settings(max_examples=CASES)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                *("requestheader-client-ca-file", "requestheader-allowed-names"),
                *("requestheader-username-headers", "client-ca-file"),
            ]
        ),
        st.text(max_size=30) | st.sampled_from(["[]", "null", "5", '["x-remote-user"]', "{}"]),
    ),
    st.lists(st.tuples(st.just("x-remote-user") | st.text(max_size=8), st.text(max_size=8))),
)
def test_no_odd_authority_makes_a_user(
    data: dict[str, str], headers: list[tuple[str, str]]
) -> None:
    try:
        trusted = authorities_of(data)
    except (ValueError, TypeError):
        return
    assert proxied_user(None, headers, trusted) is None
