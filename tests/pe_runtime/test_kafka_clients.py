"""Sources whose own brokers ask for something: what their options say reaches librdkafka, too."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from pyspark.sql import SparkSession
from tests.e2e.tls_broker import TlsBroker, tls_broker
from tests.pe_runtime.conftest import published

from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_local import Cluster
from streamgraft_pe_runtime.brokers import Brokers
from streamgraft_pe_runtime.kafka_access import KAFKA_VARIABLE, jvm_admin
from streamgraft_pe_runtime.kafka_clients import NotTold, clients, translated

NO_JVM: Any = None
USER, PASSWORD = "alice", 'a "password"; with \\'
JAAS = "org.apache.kafka.common.security"
SCRAM = (
    f'{JAAS}.scram.ScramLoginModule required username="alice"'
    ' password="a \\"password\\"; with \\\\";'
)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, {}),
        ({"failOnDataLoss": "false", "kafka.security.protocol": "plaintext"}, {}),
        (
            {
                "kafka.security.protocol": "SASL_PLAINTEXT",
                "kafka.sasl.mechanism": "SCRAM-SHA-512",
                "kafka.sasl.jaas.config": SCRAM,
            },
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": USER,
                "sasl.password": PASSWORD,
            },
        ),
        (
            {
                "kafka.security.protocol": "SASL_PLAINTEXT",
                "kafka.sasl.mechanism": "PLAIN",
                "kafka.sasl.jaas.config": f"{JAAS}.plain.PlainLoginModule   required"
                " username='KEY'   password='SECRET';",
            },
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "KEY",
                "sasl.password": "SECRET",
            },
        ),
        (
            {
                "kafka.security.protocol": "SASL_PLAINTEXT",
                "kafka.sasl.mechanism": "OAUTHBEARER",
                "kafka.sasl.oauthbearer.token.endpoint.url": "https://issuer/token",
                "kafka.sasl.jaas.config": f"{JAAS}.oauthbearer.OAuthBearerLoginModule required"
                " clientId=us clientSecret='n\\'o \"' scope=\"all\" ;",
            },
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": "https://issuer/token",
                "sasl.oauthbearer.client.id": "us",
                "sasl.oauthbearer.client.secret": "n'o \"",
                "sasl.oauthbearer.scope": "all",
            },
        ),
    ],
)
def test_what_options_say(options: dict[str, str], told: dict[str, str]) -> None:
    assert translated(NO_JVM, options) == told


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "mechanism is GSSAPI"),
        ({"kafka.sasl.mechanism": "AWS_MSK_IAM"}, "mechanism is AWS_MSK_IAM"),
        ({"kafka.sasl.mechanism": "OAUTHBEARER"}, "mechanism is OAUTHBEARER"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "has no username and no password"),
    ],
)
def test_what_has_no_words_is_said(options: dict[str, str], why: str) -> None:
    with pytest.raises(NotTold, match=why):
        translated(NO_JVM, {"kafka.security.protocol": "SASL_PLAINTEXT", **options})


def pe(*inputs: InputPort) -> PeMetadata:
    """Return a PE with inputs."""
    return PeMetadata(
        namespace="n",
        job="j",
        pe_id=0,
        stage_name="pe-0",
        operators=["o"],
        inputs=list(inputs),
        outputs=[],
        checkpoint_path="p",
        trigger_seconds=1.0,
        bundle_digest="",
    )


def source(operator: str, servers: str, *, tls: bool = False) -> InputPort:
    """Return the port of a source."""
    return InputPort(
        port=0,
        stream=operator,
        topic=operator,
        partitions=None,
        bootstrap_servers=servers,
        tls=tls,
        external=True,
        operator=operator,
    )


def test_the_jobs_credentials_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of brokers that a source names though they are the job's own."""
    monkeypatch.delenv(KAFKA_VARIABLE, raising=False)
    named, own = source("named", "job:1"), source("own", "job:1", tls=True)
    for inputs in ((named, own), (own, named)):
        assert clients(NO_JVM, pe(*inputs), {}) == {"job:1": {"security.protocol": "SSL"}}


def test_each_address_has_the_options_of_its_sources() -> None:
    """What has no words is left out, and in the log."""
    asks = {"kafka.security.protocol": "SASL_PLAINTEXT"}
    password = {"kafka.sasl.mechanism": "SCRAM-SHA-512", "kafka.sasl.jaas.config": SCRAM}
    inputs = source("a", "a:1"), source("b", "b:1"), source("c", "c:1")
    found = clients(NO_JVM, pe(*inputs), {"b": asks | password, "c": asks})
    assert found.keys() == {"a:1", "b:1"}
    assert (found["a:1"], found["b:1"]["sasl.username"]) == ({}, USER)


def test_one_address_is_shown_the_options_of_one_of_its_sources(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And the log says of which."""
    password = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    options = {
        name: {**password, "kafka.sasl.jaas.config": f"x required username={name} password=p;"}
        for name in "ab"
    }
    a, b, c = source("a", "k:1"), source("b", "k:1"), source("c", "k:1")
    assert clients(NO_JVM, pe(a, c), options)["k:1"]["sasl.username"] == "a"
    assert not caplog.messages
    assert clients(NO_JVM, pe(a, b, c), options)["k:1"]["sasl.username"] == "b"
    assert caplog.messages == ["k:1 is asked about all sources there with the options of b"]


@pytest.fixture(scope="module")
def broker(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    """A broker that asks for a certificate, or for a password."""
    with tls_broker(cluster, tmp_path_factory.mktemp("broker")) as running:
        admin = AdminClient({"bootstrap.servers": running.plain})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        admin.alter_user_scram_credentials([change])[USER].result(30)
        admin.create_topics([NewTopic("theirs", 2, 1)])["theirs"].result(30)
        yield running


def _trusted(broker: TlsBroker) -> dict[str, str]:
    authority = broker.secret["ca.crt"].decode()
    # Java takes PEM in one line, as properties files have it.
    line = authority.strip().replace("\n", " ")
    return {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.certificates": line}


def _by_password(broker: TlsBroker) -> tuple[str, dict[str, str]]:
    return broker.sasl, {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": SCRAM,
        **_trusted(broker),
    }


def _by_pem_file(broker: TlsBroker) -> tuple[str, dict[str, str]]:
    key = serialization.load_pem_private_key(broker.secret["tls.key"], None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file = broker.folder / "both.pem"
    file.write_bytes(key + broker.secret["tls.crt"])
    return broker.address, {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.location": str(file),
        **_trusted(broker),
    }


def _by_stores(broker: TlsBroker) -> tuple[str, dict[str, str]]:
    authority = x509.load_pem_x509_certificate(broker.secret["ca.crt"])
    own = x509.load_pem_x509_certificate(broker.secret["tls.crt"])
    key: Any = serialization.load_pem_private_key(broker.secret["tls.key"], None)
    cipher = serialization.BestAvailableEncryption(b"password")
    known = [pkcs12.PKCS12Certificate(authority, b"ca")]
    stores: dict[str, bytes] = {
        "truststore": pkcs12.serialize_java_truststore(known, cipher),
        "keystore": pkcs12.serialize_key_and_certificates(b"us", key, own, None, cipher),
    }
    options = {"kafka.security.protocol": "SSL"}
    for name, content in stores.items():
        file: Path = broker.folder / f"{name}.p12"
        file.write_bytes(content)
        options[f"kafka.ssl.{name}.location"] = str(file)
        options[f"kafka.ssl.{name}.password"] = "password"
    return broker.address, options


@pytest.mark.integration
@pytest.mark.parametrize("shown", [_by_password, _by_pem_file, _by_stores])
async def test_brokers_let_in_who_spark_would_be(
    session: SparkSession,
    broker: TlsBroker,
    shown: Callable[[TlsBroker], tuple[str, dict[str, str]]],
) -> None:
    """Whatever keys and certificates are kept in."""
    servers, options = shown(broker)
    jvm: Any = session._jvm
    with jvm_admin(jvm, servers, options) as admin:
        assert "theirs" in admin.listTopics().names().get()
    found = clients(jvm, pe(source("theirs", servers)), {"theirs": options})
    asked = Brokers(servers, "group", found[servers])
    assert asked.partitions("theirs") == [0, 1]
    await published(asked, {("theirs", 0): 1})
    assert asked.published([("theirs", 0)]) == {("theirs", 0): 1}
    asked.close()


@pytest.mark.integration
def test_stores_that_can_not_be_read_are_said(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(base64.b64decode("AAAA"))
    options = {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.keystore.location": str(tmp_path / "keys"),
        "kafka.ssl.keystore.password": "secret",
    }
    with pytest.raises(NotTold, match="can't be read") as error:
        translated(session._jvm, options)
    assert "secret" not in str(error.value)
