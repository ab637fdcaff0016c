"""Deletion by label: few calls for few objects, one a channel for many."""

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_operator.job.deletion import WHOLE, bulk_selectors


def _objects(count: int, **labels: str) -> list[Object]:
    metadata = {"labels": {f"{names.GROUP}/{label}": value for label, value in labels.items()}}
    return [{"metadata": metadata}] * count


def test_few_objects_go_by_one_call() -> None:
    assert bulk_selectors("j", _objects(WHOLE, channel="1")) == ["streamgraft.io/job=j"]


def test_nothing_is_asked_for_what_is_going() -> None:
    going: list[Object] = [{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}]
    assert bulk_selectors("j", going) == []


def test_many_objects_go_channel_by_channel_with_those_outside() -> None:
    items = [*_objects(1), *_objects(WHOLE, channel="0"), *_objects(WHOLE, channel="1")]
    assert bulk_selectors("j", items) == [
        "streamgraft.io/job=j,!streamgraft.io/channel",
        "streamgraft.io/job=j,streamgraft.io/channel=0",
        "streamgraft.io/job=j,streamgraft.io/channel=1",
    ]
