"""The ProcessingElement that a pod works for, as its watch shows it."""

import logging
import re
from typing import Any, cast

import pytest

from streamgraft_common.kube import KubeClient, Store
from streamgraft_common.resources import PROCESSING_ELEMENT
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.protocol import Pod, ProcessingElement
from streamgraft_pe_runtime.protocol.element import OwnElement


def element(version: int, **spec: Any) -> dict[str, Any]:
    """Return a version of the PE."""
    required = {"job": "j", "peId": 0, "stageName": "s", **spec}
    metadata = {"uid": "u", "resourceVersion": str(version), "generation": version}
    item = PROCESSING_ELEMENT.manifest("j-0", "ns", required, **metadata)
    return {**item, "status": {"launchCount": 1}}


def test_an_edit_that_can_not_be_read_leaves_what_runs_as_it_was(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The definition admits it; the pod would end, and each one that follows it."""
    store = Store(cast(KubeClient, None), "pes")
    own = OwnElement(store, lambda: True)
    store.observe(element(1, shards=[1]))
    before = own.now
    both = {"placement": {"host": "a", "hostPool": "b"}}
    with caplog.at_level(logging.ERROR):
        store.observe(element(2, shards=[2], settings=both, **both))
    assert own.now is before is not None
    assert "j-0 can't be read, and stays as it was" in caplog.text
    store.observe(element(3, shards=[3]))
    assert own.now is not None
    assert own.now.spec.shards == [3]


async def test_the_next_pe_of_our_pod_begins_without_losses() -> None:
    """They would be new ones to the alerts. What says that the process is warm stays."""
    metrics = PeMetrics(1)
    ours = ProcessingElement(cast(KubeClient, None), Pod("ns", "p", "p-uid"), metrics)
    ours.store.observe(element(1))
    metrics.busy_seconds.inc(20)
    metrics.lost_records.labels("t", "0").inc(7)
    metrics.malformed_records.labels("read", "t").inc(3)
    ours.store.observe(element(2, shards=[1]))
    assert len(left_out(metrics)) == 2
    following = element(3)
    following["metadata"]["uid"] = "another"
    ours.store.observe(following)
    assert ours.own.now is not None
    assert ours.own.now.uid == "another"
    assert left_out(metrics) == []
    assert "streamgraft_pe_busy_seconds_total 20.0" in metrics.exposition().decode()


def left_out(metrics: PeMetrics) -> list[str]:
    """Return the series of records that were lost or malformed."""
    lines = metrics.exposition().decode().splitlines()
    return [line for line in lines if re.match(r"streamgraft_pe_(lost|malformed)\w+_total{", line)]
