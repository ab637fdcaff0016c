"""Edits that move a sink to another target, while a batch is cut off, on real Spark and Kafka."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from tests.pe_runtime.chain import Chain, crashed_behind_the_commit, once
from tests.pe_runtime.one_driver import PARTITIONS

from streamgraft_pe_runtime.targets import MAIN

pytestmark = pytest.mark.integration

TOO_SMALL = {"kafka.max.request.size": "20"}


def test_what_a_sink_that_fails_did_not_get_it_gets_in_another_target(chain: Chain) -> None:
    """As where the user takes away the options that it fails with."""
    chain.shared, chain.options = frozenset({0}), TOO_SMALL
    chain.write(0, 100)
    chain.start()
    assert "too large" in chain.failure()
    chain.shared = frozenset({0, 1})
    chain.start()
    assert chain.read(100) == once(100)


def test_a_sink_that_gets_a_target_of_its_own_has_the_last_batch(chain: Chain) -> None:
    chain.shared = frozenset({0, 1})
    crashed_behind_the_commit(chain, 100)
    chain.shared = frozenset({0})
    chain.start()
    chain.write(100, 120)
    assert chain.read(120) == once(120)


def test_the_last_batch_of_a_stage_is_known_wherever_all_its_sinks_go(chain: Chain) -> None:
    """Both lose their options, and get some again: nothing else is written by this query."""
    crashed_behind_the_commit(chain, 100)
    chain.shared = frozenset({0, 1})
    chain.start()
    chain.write(100, 120)
    assert chain.read(120) == once(120)
    chain.stop()
    chain.forget(f"commits/{chain.last_batch()}")
    chain.shared = frozenset()
    chain.start()
    chain.write(120, 140)
    assert chain.read(140) == once(140)


def test_what_a_sink_that_fails_did_not_get_it_gets_in_another_topic(chain: Chain) -> None:
    """As where the user gives it one that takes larger records; its ledger is at the former."""
    chain.shared, chain.options = frozenset({0}), TOO_SMALL
    chain.write(0, 100)
    chain.start()
    assert "too large" in chain.failure()
    chain.options = {}
    other_topic(chain)
    chain.start()
    assert chain.read(100) == once(100)


def test_the_newest_ledger_counts_whichever_topics_a_sink_had(chain: Chain) -> None:
    """In each of them is one. The last batch is in its second topic, and not in its first again."""
    chain.shared = frozenset({0})
    former = chain.outputs
    crashed_behind_the_commit(chain, 100)
    other_topic(chain)
    chain.start()
    chain.write(100, 120)
    assert chain.read(120, 20)[1] == Counter(range(100, 120))
    chain.stop()
    chain.forget(f"commits/{chain.last_batch()}")
    (main,) = (target for target in chain.targets() if target.name == MAIN)
    chain.forget_last_batch(main)
    chain.outputs = former
    chain.start()
    chain.write(120, 130)
    assert chain.read(130, 110)[1] == Counter([*range(100), *range(120, 130)])


def test_the_shared_ledger_stands_in_for_one_that_is_not_there(chain: Chain) -> None:
    """As that of a sink which is given other brokers."""
    chain.shared = frozenset({0})
    crashed_behind_the_commit(chain, 100)
    chain.lose_ledgers("sink-1")
    chain.start()
    chain.write(100, 120)
    assert chain.read(120) == once(120)
    chain.stop()
    chain.forget(f"commits/{chain.last_batch()}")
    chain.lose_ledgers("sink-1")
    (main,) = (target for target in chain.targets() if target.name == MAIN)
    chain.forget_last_batch(main)
    chain.start()
    assert "is gone" in chain.failure()


def other_topic(chain: Chain) -> None:
    """Give the second sink another topic."""
    topic = f"{chain.outputs[1]}-2"
    admin = AdminClient({"bootstrap.servers": chain.cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    chain.outputs = (chain.outputs[0], topic)


def test_the_order_of_sources_does_not_make_another_batch(
    session: SparkSession, tmp_path: Path
) -> None:
    """Nor does a source that is there twice, as for a way more that its rows go."""
    jvm: Any = session._jvm
    log = tmp_path / "offsets"
    log.mkdir()
    lines = {0: "v1 {} a b", 1: "v1 {} b a", 2: "v1 {} b a b", 3: "v1 {} a c"}
    for number, text in lines.items():
        (log / str(number)).write_text(text.replace(" ", "\n"))
    package = jvm.org.apache.spark.sql.kafka010.exactlyonce
    checkpoint = package.Checkpoint(jvm.org.apache.hadoop.fs.Path(str(tmp_path)))
    plans = [checkpoint.plan(number) for number in lines]
    assert plans[0] == plans[1] == plans[2] != plans[3]
