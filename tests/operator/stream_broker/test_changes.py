"""Changes of exports and imports by functions of their own job."""

import json
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_operator.stream_broker.changes import concerned, newly_requested, to_apply


def element(name: str, *changes: Object) -> Object:
    """Return a PE that asks for changes."""
    spec = {"job": "j", "peId": 0, "stageName": "s"}
    status = {"runtime": {"streamChanges": list(changes)}}
    return {"metadata": {"namespace": "ns", "name": name}, "spec": spec, "status": status}


def change(value: Any, number: int, field: str = "properties", operator: str = "out") -> Object:
    """Return a change; the higher its number, the later."""
    at = f"2026-01-01T00:00:{number:02}.000Z"
    return {"operator": operator, "field": field, "value": value, "id": f"u.{number}", "at": at}


def item(applied: dict[str, str] | None = None, **spec: Any) -> Object:
    """Return an Export or Import of operator `out`."""
    annotations = {names.ANNOTATION_CHANGES: json.dumps(applied)} if applied else {}
    metadata = {"namespace": "ns", "name": "j-out", "annotations": annotations}
    return {"metadata": metadata, "spec": {"job": "j", "operator": "out", **spec}}


def test_the_last_change_wins_and_properties_are_replaced() -> None:
    """Also those of another PE; a change of another operator is not for it."""
    elements = [
        element("j-0", change({"b": 1}, 2)),
        element("j-1", change({"c": 1}, 1), change({"d": 1}, 9, operator="other")),
    ]
    patch = to_apply(item(properties={"a": 1}), elements)
    assert patch is not None
    assert patch["spec"] == {"properties": {"a": None, "b": 1}}
    applied = json.loads(patch["metadata"]["annotations"][names.ANNOTATION_CHANGES])
    assert applied == {"j-0.properties": "u.2", "j-1.properties": "u.1"}


def test_a_change_is_applied_once() -> None:
    """What is edited later stays, until the function asks for something else."""
    applied = {"j-0.properties": "u.2"}
    assert to_apply(item(applied, properties={}), [element("j-0", change({"b": 1}, 2))]) is None
    patch = to_apply(item(applied, properties={}), [element("j-0", change({"b": 2}, 3))])
    assert patch is not None
    assert patch["spec"] == {"properties": {"b": 2}}


def test_a_subscription_takes_the_place_of_a_name() -> None:
    """An import has one of both."""
    asked = element("j-0", change("a == 1", 1, "subscription"), change("", 2, "filter"))
    patch = to_apply(item(name="n"), [asked])
    assert patch is not None
    assert patch["spec"] == {"subscription": "a == 1", "name": None, "filter": ""}


def test_what_no_function_can_ask_for_is_left_out() -> None:
    """A pod can write anything into its status."""
    asked = element("j-0", change("a", 1), change({"a": 1}, 2, "filter"))
    assert to_apply(item(), [asked]) is None
    assert list(concerned(asked)) == []


def test_only_news_matter() -> None:
    """Loads of shards are reported every few seconds."""
    asked = element("j-0", change({}, 1))
    assert list(concerned(asked)) == [("ns", "j-out")]
    other = {**asked, "status": {"runtime": {**asked["status"]["runtime"], "ready": True}}}
    assert not newly_requested(asked, other)
    assert newly_requested(None, asked)
    assert not newly_requested(None, element("j-0"))
