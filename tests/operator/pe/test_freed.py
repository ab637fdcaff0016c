"""Whose pods may go back to the warm pool, and what they are like then."""

import copy
from typing import Any

import pytest

from streamgraft_common import names
from streamgraft_operator.kit.freed import Freed
from streamgraft_operator.manifests import adoption, return_to_pool
from streamgraft_operator.manifests.metadata import Owner
from streamgraft_operator.pe.freed import is_free

CONTENT = "driver.place.code.plan.notes"


def element() -> dict[str, Any]:
    """Return a channel without shards, in a pod that came from the pool."""
    labels = {names.LABEL_JOB: "job", names.LABEL_PE: "job-2", names.LABEL_REGION: "r"}
    return {
        "metadata": {
            "name": "job-2",
            "namespace": "n",
            "uid": "pe",
            "labels": labels,
            "annotations": {names.ANNOTATION_CONTENT: CONTENT},
        },
        "spec": {
            "job": "job",
            "peId": 2,
            "stageName": "s",
            "region": "r",
            "channel": 1,
            "shards": [],
            "epoch": 5,
            "bundleDigest": "0123456789abcdef0123",
        },
        "status": {
            "pod": "job-warm-7f",
            "launchCount": 1,
            "runtime": {
                "pod": "job-warm-7f",
                "podUid": "pod",
                "launchCount": 1,
                "ready": True,
                "reusable": True,
                "epoch": 5,
                "contentId": CONTENT,
                "shards": {},
            },
        },
    }


def test_channel_that_has_let_go_of_all_is_free() -> None:
    assert is_free(element())


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"shards": [1]}},
        {"spec": {"epoch": 6}},
        {"spec": {"placement": {"hostPool": "fast"}}},
        {"spec": {"saving": {"savepoint": "s", "uid": "u", "shards": []}}},
        {"status": {"pod": "job-2-1"}},
        {"status": {"launchCount": 2}},
        {"status": {"runtime": {"ready": False}}},
        {"status": {"runtime": {"reusable": None}}},
        {"status": {"runtime": {"contentId": "driver.place.code.other.notes"}}},
        {"status": {"runtime": {"shards": {"1": {"state": "Stopping", "epoch": 4}}}}},
    ],
    ids=str,
)
def test_what_is_not_certain_is_not_free(change: dict[str, Any]) -> None:
    """It has, gets or may have something to do, is of another make, or has another's name."""
    item = element()
    _merge(item, change)
    assert not is_free(item)


def test_pod_is_as_it_was_before_it_was_taken() -> None:
    item, owner = element(), Owner("n", "job", "uid", 1)
    before = {
        "labels": {**owner.labels(), names.LABEL_POOL: names.POOL_WARM, "of": "the template"},
        "annotations": {names.ANNOTATION_CONTENT: "driver.0123456789abcdef"},
    }
    pod = {"metadata": copy.deepcopy(before)}
    taken = adoption(item)
    _merge(pod, {"metadata": {**taken, "labels": {**taken["labels"], names.LABEL_POOL: None}}})
    assert pod["metadata"]["labels"][names.LABEL_PE] == "job-2"
    _merge(pod, {"metadata": return_to_pool(item, owner)})
    assert pod["metadata"] == before


def test_a_pod_is_taken_once() -> None:
    freed, item = Freed(), element()
    assert freed.take("pe") is None
    freed.add(item)
    assert freed.take("pe") == item
    assert freed.take("pe") is None
    freed.add(item)
    freed.discard(item)
    assert freed.take("pe") is None


def _merge(item: dict[str, Any], patch: dict[str, Any]) -> None:
    """Apply a JSON merge patch."""
    for name, value in patch.items():
        if value is None:
            item.pop(name, None)
        elif isinstance(value, dict) and isinstance(item.get(name), dict):
            _merge(item[name], value)
        else:
            item[name] = copy.deepcopy(value)
