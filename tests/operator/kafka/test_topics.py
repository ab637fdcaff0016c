"""Which topics a job makes, and which it may delete."""

from typing import Any

import pytest

from streamgraft_common.resources import MadeInKafka
from streamgraft_operator.graph import PlannedTopic
from streamgraft_operator.kafka.topics import (
    KafkaCluster,
    TopicUnusable,
    changes,
    left_over,
    noted,
)

JOB = ("prod", "orders")


def topic(name: str, **changes: Any) -> PlannedTopic:
    """Return a topic between PEs."""
    settings: dict[str, Any] = {"partitions": 2, "external": False, "awaited": False, **changes}
    return PlannedTopic(name=name, bootstrap_servers="kafka:9092", **settings)


def cluster(**partitions: int) -> KafkaCluster:
    """Return a Kafka with these topics; `_` stands for a dot."""
    named = {name.replace("_", "."): count for name, count in partitions.items()}
    return KafkaCluster("k", named)


def test_what_is_missing_is_made_but_awaited_sources_are_not() -> None:
    wanted = [topic("prod.orders.a"), topic("in", external=True, awaited=True)]
    found = changes(wanted, cluster(), ())
    assert [item.name for item in found.create] == ["prod.orders.a"]
    assert found.awaited == ("in",)


def test_a_topic_that_the_job_did_not_make_is_not_used() -> None:
    there = cluster(prod_orders_raw=2)
    with pytest.raises(TopicUnusable, match=r"prod\.orders\.raw exists, and this job did not"):
        changes([topic("prod.orders.raw")], there, ())
    assert not changes([topic("prod.orders.raw")], there, ["prod.orders.raw"]).create


def test_users_topics_are_used_as_they_are() -> None:
    found = changes([topic("out", external=True, partitions=1)], cluster(out=9), ())
    assert (found.create, found.widen) == ((), ())


def test_partitions() -> None:
    made = ["prod.orders.a"]
    assert changes([topic(made[0], partitions=4)], cluster(prod_orders_a=2), made).widen
    with pytest.raises(TopicUnusable, match=r"has 8 partitions, not 4: .* take a savepoint"):
        changes([topic(made[0], partitions=4)], cluster(prod_orders_a=8), made)


def test_the_record_grows_and_another_kafka_begins_a_new_one() -> None:
    first = noted(None, cluster(), ["b"], ["r"])
    second = noted(first, cluster(), ["a"], ["s"])
    assert second == MadeInKafka(cluster_id="k", topics=["a", "b"], stages=["r", "s"])
    assert noted(second, KafkaCluster("other", {}), ["c"], []).topics == ["c"]


def test_only_what_the_job_made_goes() -> None:
    made = MadeInKafka(cluster_id="k", topics=["prod.orders.a", "prod.orders.gone"], stages=["r"])
    there = cluster(prod_orders_a=1, prod_orders_raw=1, other=1)
    groups = [
        "prod.orders.r",
        "prod.orders.r.0.LEDGER",
        "prod.orders.r.0.out.LEDGER",
        "prod.orders.reader",
        "prod.orders.r.reader",
        "prod.ordersr",
    ]
    found = left_over(JOB, made, there, groups)
    assert found.topics == ("prod.orders.a",)
    assert found.groups == tuple(groups[:3])
