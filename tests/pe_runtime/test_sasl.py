"""Brokers that ask for a password (SCRAM) or a token (OAUTHBEARER): operator, PE and Spark."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.e2e.tls_broker import ALLOWED_URLS, TlsBroker, tls_broker
from tests.pe_runtime.conftest import until_reported
from tests.pe_runtime.one_driver import driver
from tests.pe_runtime.token_server import CLIENT, SECRET, token_server

from streamgraft_common.kafka_credentials import KafkaCredentials
from streamgraft_local import Cluster
from streamgraft_operator.kafka.client import Brokers, Kafka, KafkaUnavailable
from streamgraft_pe_runtime import query
from streamgraft_pe_runtime.brokers import Brokers as PeBrokers
from streamgraft_pe_runtime.kafka_access import (
    KAFKA_VARIABLE,
    consumer_options,
    jvm_properties,
    spark_options,
)
from streamgraft_pe_runtime.plan import Plan
from streamgraft_pe_runtime.targets import KafkaTarget

pytestmark = pytest.mark.integration

USER, PASSWORD = "alice", 'a "password"; with \\'
SECONDS = 60


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """Who issues tokens."""
    with token_server() as url:
        yield url


@pytest.fixture(scope="module")
def broker(
    cluster: Cluster, issuer: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TlsBroker]:
    """A broker that knows the user's password."""
    with tls_broker(cluster, tmp_path_factory.mktemp("broker"), issuer=issuer) as running:
        admin = AdminClient({"bootstrap.servers": running.plain})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        admin.alter_user_scram_credentials([change])[USER].result(30)
        yield running


@pytest.fixture(scope="module")
def session(cluster: Cluster, issuer: str) -> Iterator[SparkSession]:
    """A driver as that of a PE that shows tokens."""
    with driver(cluster, {ALLOWED_URLS: f"{issuer}/token"}) as found:
        yield found


@pytest.fixture(params=["SCRAM-SHA-512", "OAUTHBEARER"])
def secret(request: pytest.FixtureRequest, broker: TlsBroker, issuer: str) -> dict[str, str]:
    """What the job's Secret holds."""
    authority = {"ca.crt": broker.secret["ca.crt"].decode()}
    if request.param == "OAUTHBEARER":
        token = {"token-url": f"{issuer}/token", "client-id": CLIENT, "client-secret": SECRET}
        return authority | token
    return authority | {"username": USER, "password": PASSWORD}


def mounted(secret: Mapping[str, str], folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Show the Secret to the PE's code as a pod does."""
    folder.mkdir()
    for key, text in secret.items():
        (folder / key).write_text(text)
    patch.setenv(KAFKA_VARIABLE, str(folder))


async def test_operator_pe_and_spark_are_let_in(
    session: SparkSession,
    broker: TlsBroker,
    secret: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A query writes exactly once, and what it wrote is read."""
    mounted(secret, tmp_path / "secret", monkeypatch)
    topic = f"n.j.{len(secret)}"
    admin = AdminClient({"bootstrap.servers": broker.plain})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    options = tuple(KafkaCredentials.parse(secret).librdkafka().items())
    operator = Brokers(broker.sasl, options)
    of_pe = PeBrokers(broker.sasl, "group", consumer_options(True))
    async with asyncio.timeout(SECONDS):  # what the broker says of a new topic comes a little later
        while topic not in (await Kafka().look(operator)).partitions:
            await asyncio.sleep(0.1)
        while of_pe.partitions(topic) != [0]:
            await asyncio.sleep(0.1)
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    value = F.col("value").cast("string").alias("value")
    frame = rows.select(F.lit(0).alias("target"), F.lit(topic).alias("topic"), value)
    target = KafkaTarget.at(broker.sasl, True, topic, options={}, transactional_id=f"{topic}.0")
    running = query.start(Plan(frame, [target], "update"), tmp_path / "checkpoint", 0.2, topic)
    until_reported(running)
    assert running.stop(SECONDS)
    read = session.read.format("kafka").options(**spark_options(True))
    written = read.option("kafka.bootstrap.servers", broker.sasl).option("subscribe", topic)
    assert written.option("kafka.isolation.level", "read_committed").load().count() >= 5
    [position] = await Kafka().positions(operator, "group", {topic: 1})
    assert position.end >= 5


def test_the_driver_may_ask_for_the_tokens(
    secret: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the session of this test was started with is what a PE starts its driver with."""
    mounted(secret, tmp_path / "secret", monkeypatch)
    url = secret.get("token-url")
    assert jvm_properties() == ({ALLOWED_URLS: url} if url else {})


async def test_a_wrong_password_is_refused(broker: TlsBroker, secret: dict[str, str]) -> None:
    """Whoever shows nothing is, too."""
    known = {"ca.crt": secret["ca.crt"]}
    wrong = {key: "wrong" for key in ("password", "client-secret") if key in secret}
    for shown in (secret | wrong, known):
        options = tuple(KafkaCredentials.parse(shown).librdkafka().items())
        with pytest.raises(KafkaUnavailable):
            await Kafka().look(Brokers(broker.sasl, options))
