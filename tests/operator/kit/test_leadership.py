"""Who may write, and what a lease says of it."""

import pytest

from streamgraft_common.kube import KubeClient, KubeConfig
from streamgraft_common.kube.client import Object
from streamgraft_operator.kit.leadership import Elector, FencedClient, NotLeading, Term
from streamgraft_operator.kit.leadership.lease import claimed, free_in, holder, released

TERM = Term(15)
FRESH: Object = {"metadata": {"name": "operator", "resourceVersion": "7", "labels": {"a": "b"}}}


def test_leader_stops_before_its_lease_ends() -> None:
    assert TERM.renew_every < TERM.renew_within < TERM.seconds


def test_lease_is_free_when_nobody_has_it_or_nobody_renewed_it() -> None:
    assert free_in(FRESH, 0.0) == 0.0
    lease = claimed(FRESH, "one", TERM, 0.0)
    assert holder(lease) == "one"
    assert [free_in(lease, seconds) for seconds in (0.0, 14.0, 15.0, 99.0)] == [15.0, 1.0, 0.0, 0.0]
    assert free_in(released(lease), 0.0) == 0.0


def test_a_lease_reads_as_what_happened() -> None:
    """As `kubectl describe lease` shows it; whatever others wrote into it stays."""
    first = claimed(FRESH, "one", TERM, 0.0)
    renewed = claimed(first, "one", TERM, 2.5)
    second = claimed(released(renewed), "two", TERM, 4.0)
    assert first["spec"] == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "1970-01-01T00:00:00.000000Z",
        "renewTime": "1970-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    assert renewed["spec"] == {**first["spec"], "renewTime": "1970-01-01T00:00:02.500000Z"}
    assert second["spec"]["leaseTransitions"] == 1
    assert second["spec"]["acquireTime"] == "1970-01-01T00:00:04.000000Z"
    assert second["metadata"] == FRESH["metadata"]


async def test_replica_that_does_not_lead_sends_no_write() -> None:
    """There is no server: a write that was sent would be Unreachable, but not NotLeading."""
    config = KubeConfig(server="http://127.0.0.1:1")
    async with FencedClient(config, lambda: False) as client:
        for write in (
            client.create("/api/v1/pods", {}),
            client.patch("/api/v1/pods/a", {}),
            client.replace("/api/v1/pods/a", {}),
            client.delete("/api/v1/pods/a"),
        ):
            with pytest.raises(NotLeading, match="does not lead"):
                await write


def test_threads_may_ask_who_leads() -> None:
    """Calls to Kafka block, so they are made there, where there is no event loop."""
    client = KubeClient(KubeConfig("http://127.0.0.1:1"))
    assert not Elector(client, ("ns", "operator"), "me", TERM).leading()
