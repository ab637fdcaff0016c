"""What a PE's Kafka clients show the brokers."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from streamgraft_pe_runtime.kafka_access import (
    KAFKA_VARIABLE,
    consumer_options,
    jvm_properties,
    spark_options,
)


def test_without_tls_nothing_is_set() -> None:
    assert spark_options(False) == consumer_options(False) == {}


def test_brokers_of_a_known_authority_and_a_client_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key of any form (here PKCS 1) reaches Java in the form that it reads."""
    monkeypatch.setenv(KAFKA_VARIABLE, str(tmp_path))
    (tmp_path / "ca.crt").write_text("authority")
    assert spark_options(True) == {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "authority",
    }
    assert consumer_options(True) == {
        "security.protocol": "SSL",
        "ssl.ca.pem": "authority",
    }
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    (tmp_path / "tls.key").write_bytes(key)
    (tmp_path / "tls.crt").write_text("certificate")
    options = spark_options(True)
    assert options["kafka.ssl.keystore.certificate.chain"] == "certificate"
    assert options["kafka.ssl.keystore.key"].startswith("-----BEGIN PRIVATE KEY-----")
    assert consumer_options(True)["ssl.key.pem"] == key.decode()


def test_brokers_checked_by_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KAFKA_VARIABLE, raising=False)
    assert spark_options(True) == {"kafka.security.protocol": "SSL"}


def test_a_password_reaches_java_whatever_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KAFKA_VARIABLE, str(tmp_path))
    (tmp_path / "username").write_text("alice")
    (tmp_path / "password").write_text('a"b\\c;')
    assert spark_options(True) == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule"
        ' required username="alice" password="a\\"b\\\\c;";',
    }
    assert jvm_properties() == {}


def test_the_jvm_may_ask_for_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KAFKA_VARIABLE, str(tmp_path))
    for key, value in {"token-url": "https://id", "client-id": "me", "client-secret": "s"}.items():
        (tmp_path / key).write_text(value)
    options = spark_options(True)
    assert options["kafka.sasl.jaas.config"].endswith('required clientId="me" clientSecret="s";')
    assert options["kafka.sasl.oauthbearer.token.endpoint.url"] == "https://id"
    allowed = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
    assert jvm_properties() == {allowed: "https://id"}
