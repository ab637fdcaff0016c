"""Brokers that refuse: each right that is missing is named, and so are missing transactions."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.e2e.tls_broker import TlsBroker, tls_broker
from tests.pe_runtime.conftest import until_reported

from streamgraft_local import Cluster
from streamgraft_pe_runtime import query
from streamgraft_pe_runtime.kafka_access import KAFKA_VARIABLE, client_settings, spark_options
from streamgraft_pe_runtime.plan import Plan
from streamgraft_pe_runtime.protocol import failures
from streamgraft_pe_runtime.query import ShardQuery
from streamgraft_pe_runtime.targets import KafkaTarget

pytestmark = pytest.mark.integration

USER = "User:CN=client"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
TRANSACTIONS, GROUPS, TOPICS = (
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.GROUP,
    ResourceType.TOPIC,
)
OUT = "n.j.out"
SECONDS = 60


def prepared(broker: TlsBroker, folder: Path, patch: pytest.MonkeyPatch) -> AdminClient:
    """Make the topic, and the Secret's folder for our clients; return an administrator's client."""
    folder.mkdir()
    for name, content in broker.secret.items():
        (folder / name).write_bytes(content)
    patch.setenv(KAFKA_VARIABLE, str(folder))
    admin = AdminClient({"bootstrap.servers": broker.plain})
    admin.create_topics([NewTopic(OUT, 1, 1)])[OUT].result(30)
    return admin


def allow(admin: AdminClient, kind: ResourceType, *operations: AclOperation) -> None:
    """Allow the user operations on all that belongs to the job."""
    for operation in operations:
        rule = AclBinding(
            kind,
            "n.j.",
            ResourcePatternType.PREFIXED,
            USER,
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        admin.create_acls([rule])[rule].result(30)


def start(
    session: SparkSession, broker: TlsBroker, checkpoint: Path, patience: float = 15
) -> ShardQuery:
    """Start a query that writes to the broker, and waits for answers for so many seconds."""
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    value = F.col("value").cast("string").alias("value")
    frame = rows.select(F.lit(0).alias("target"), F.lit(OUT).alias("topic"), value)
    target = KafkaTarget.at(
        broker.address,
        True,
        OUT,
        options={"kafka.max.block.ms": str(round(patience * 1000))},
        transactional_id="n.j.s.0",
    )
    return query.start(
        Plan(frame, [target], "update"), checkpoint, 0.2, f"rights-{checkpoint.name}"
    )


def refused(
    session: SparkSession, broker: TlsBroker, checkpoint: Path, patience: float = 15
) -> str:
    """Return what is shown of the failure of a query that writes to the broker."""
    running = start(session, broker, checkpoint, patience)
    with suppress(Exception):  # that it failed is asked below
        running._query.awaitTermination(SECONDS)
    failure = running.failure()
    running.stop(0)
    assert failure
    return failures.summary(failure)


def test_missing_rights_are_named(
    session: SparkSession, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other; with all of them the query writes."""
    with tls_broker(cluster, tmp_path, AUTHORIZER) as broker:
        admin = prepared(broker, tmp_path / "secret", monkeypatch)
        said = refused(session, broker, tmp_path / "0")
        assert "transactional id n.j.s.0: the user needs Write and Describe" in said
        allow(admin, TRANSACTIONS, AclOperation.WRITE, AclOperation.DESCRIBE)
        said = refused(session, broker, tmp_path / "1")
        assert "consumer group n.j.s.0.LEDGER: the user needs Read" in said
        allow(admin, GROUPS, AclOperation.READ)
        said = refused(session, broker, tmp_path / "2")
        assert "Read on n.j.out" in said
        allow(admin, TOPICS, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.READ)
        running = start(session, broker, tmp_path / "3")
        until_reported(running)
        assert running.stop(SECONDS)


def test_an_export_that_may_not_be_read_is_left_out(
    session: SparkSession, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that the user may write to, and so describe."""
    with tls_broker(cluster, tmp_path, AUTHORIZER) as broker:
        admin = prepared(broker, tmp_path / "secret", monkeypatch)
        jvm: Any = session._jvm
        settings = client_settings(
            {"kafka.bootstrap.servers": broker.address, **spark_options(True)}
        )
        ours = jvm.org.apache.kafka.clients.admin.Admin.create(jvm.java.util.HashMap(settings))
        try:
            assert readable(session, ours) == (0, "Topic authorization failed.")
            for operation, expected in (
                (AclOperation.WRITE, (0, f"not allowed to read {OUT}: the user needs Read on it")),
                (AclOperation.READ, (1, "")),
            ):
                allow(admin, TOPICS, operation)
                deadline = time.monotonic() + SECONDS
                while (found := readable(session, ours)) != expected:  # rules hold a little later
                    assert time.monotonic() < deadline, found
                    time.sleep(0.05)
        finally:
            ours.close()


def readable(session: SparkSession, admin: Any) -> tuple[int, str]:
    """Return how many partitions of the topic an import would read, and why not."""
    jvm: Any = session._jvm
    topics = jvm.scala.jdk.javaapi.CollectionConverters.asScala(jvm.java.util.Set.of(OUT)).toSet()
    imports = jvm.org.apache.spark.sql.kafka010.imports
    found = getattr(getattr(imports, "MatchedTopics$"), "MODULE$").partitions(admin, topics)
    why = found._2().values().headOption()
    return found._1().size(), why.get().getMessage() if why.isDefined() else ""


def test_brokers_that_can_have_no_transactions(
    session: SparkSession, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As three copies of the transactions' log on a single broker."""
    with tls_broker(cluster, tmp_path, {"transaction.state.log.replication.factor": 3}) as broker:
        prepared(broker, tmp_path / "secret", monkeypatch)
        assert "grant no transactions" in refused(session, broker, tmp_path / "0", patience=5)
