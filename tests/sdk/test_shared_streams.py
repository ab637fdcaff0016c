"""Exports and imports as applications write them down."""

from pathlib import Path

import pytest
from tests.sdk.test_documents import ROOT, application_of

import streamgraft as sg
from streamgraft._checks import check, notices
from streamgraft_common.resources import ExportSpec, ImportSpec
from streamgraft_operator.stream_broker.matching import Offer, Subscriber, pair

EXAMPLES = ROOT / "examples" / "shared_stream"


def test_examples_fit() -> None:
    """They pass the checks, and the one wants what the other exports."""
    ingest, totals = (application_of(EXAMPLES / name) for name in ("ingest.py", "totals.py"))
    for app in (ingest, totals):
        assert (check(app.graph), notices(app.graph)) == ([], [])
    exported = next(item.exported for item in ingest.graph.operators if item.exported)
    imported = next(item.imported for item in totals.graph.operators if item.imported)
    offer = ExportSpec(job="a", operator="o", stream="s", properties=exported.properties)
    wish = ImportSpec(job="b", operator="i", subscription=imported.subscription)
    found = pair(Subscriber.of(("n", "i"), wish), Offer.of(("n", "o"), offer))
    assert found is not None
    page = Path(ROOT / "docs" / "use" / "import-export.md").read_text()
    assert imported.subscription is not None
    assert imported.subscription in page


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({}, "an import needs either the name of an export or a subscription"),
        ({"name": "a", "subscription": "b == 1"}, "an import needs either"),
        ({"subscription": "b = 1"}, "subscription 'b = 1', column 3: '=' is not expected"),
        ({"name": "a", "filter": "b =="}, "column 5: it ends where something is still to come"),
    ],
)
def test_wrong_imports_are_refused(declared: dict[str, str], problem: str) -> None:
    """With the place of the error in an expression."""
    app = sg.Application("app")
    app.import_stream("rows", schema="a bigint", **declared)  # type: ignore[arg-type]
    assert any(problem in str(error) for error in check(app.graph))


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({}, "an export needs a name or properties"),
        ({"properties": {"a b": 1}}, "is no name of a property"),
    ],
)
def test_wrong_exports_are_refused(declared: dict[str, object], problem: str) -> None:
    """With what to do."""
    app = sg.Application("app")
    rows = app.kafka_source("rows", topic="rows", schema="a bigint")
    app.export(rows, **declared)  # type: ignore[arg-type]
    assert any(problem in str(error) for error in check(app.graph))


def test_functions_change_streams() -> None:
    """The PE hears of it; what is wrong is raised at the call."""
    app = sg.Application("app")
    rows = app.import_stream("rows", name="n", schema="a bigint")
    app.export(rows, name="copy")
    app.set_properties("rows-export", {"a": 1})  # nobody to tell: a build, a test
    heard: list[tuple[str, str, object]] = []
    app.on_stream_change(lambda *change: heard.append(change))
    app.set_properties("rows-export", {"a": 1})
    app.set_subscription(rows, "a == 1")
    app.set_filter("rows", "")
    assert heard == [
        ("rows-export", "properties", {"a": 1}),
        ("rows", "subscription", "a == 1"),
        ("rows", "filter", ""),
    ]
    with pytest.raises(ValueError, match="column 3: '=' is not expected"):
        app.set_filter(rows, "a = 1")
    with pytest.raises(ValueError, match="is no name of a property"):
        app.set_properties("rows-export", {"a b": 1})
    with pytest.raises(ValueError, match="there is no export 'rows'; there are rows-export"):
        app.set_properties("rows", {"a": 1})
