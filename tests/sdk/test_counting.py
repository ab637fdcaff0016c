"""What the tests of edits and savepoints take for repeats in a topic."""

import json

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.producers import idempotent
from tests.sdk.counting import KEYS, Streams, repeated

from streamgraft_local import Cluster


def test_counts_of_a_key_rise_with_each_record() -> None:
    assert repeated([("a", 1), ("b", 4), ("a", 2), ("b", 5)]) == []


def test_a_batch_that_was_written_twice_is_seen() -> None:
    assert repeated([("a", 1), ("b", 1), ("a", 1), ("b", 1), ("a", 2)]) == [("a", 1), ("b", 1)]


def test_a_count_from_an_older_state_is_seen() -> None:
    assert repeated([("a", 1), ("a", 5), ("a", 3), ("a", 6)]) == [("a", 3)]


@pytest.mark.integration
def test_all_of_a_topic_is_read_though_it_looks_complete_before(
    cluster: Cluster, namespace: str
) -> None:
    streams = Streams(cluster, namespace)
    streams.send(KEYS)
    streams.send(KEYS)
    assert streams.copied(streams.source) == list(range(2 * KEYS))
    counts = [(f"k{number}", count) for count in (1, 2, 2) for number in range(KEYS)]
    sink, servers = f"{namespace}-out", cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(sink, 1, 1)])[sink].result()
    producer = idempotent(servers)
    for key, count in counts:
        producer.produce(sink, json.dumps({"key": key, "count": count}))
    assert producer.flush(30) == 0
    found = streams.counted(sink)
    assert found == counts
    assert repeated(found) == [(f"k{number}", 2) for number in range(KEYS)]
