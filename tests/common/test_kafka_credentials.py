"""What a Secret for Kafka's brokers may hold."""

import pytest

from streamgraft_common.kafka_credentials import KafkaCredentials

PASSWORD = {"username": "alice", "password": "secret\n"}
TOKEN = {"token-url": "https://id/token", "client-id": "me", "client-secret": "secret"}


def test_certificates_alone() -> None:
    data = {"ca.crt": "authority", "tls.crt": "certificate", "tls.key": "key", "other": "x"}
    assert KafkaCredentials.parse(data).librdkafka() == {
        "security.protocol": "SSL",
        "ssl.ca.pem": "authority",
        "ssl.certificate.pem": "certificate",
        "ssl.key.pem": "key",
    }
    assert KafkaCredentials.parse({}).librdkafka() == {"security.protocol": "SSL"}


def test_a_password_is_for_scram_unless_the_secret_says_otherwise() -> None:
    """The end of line that an editor adds is not part of it."""
    assert KafkaCredentials.parse({**PASSWORD, "ca.crt": "authority"}).librdkafka() == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.pem": "authority",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }
    plain = KafkaCredentials.parse({**PASSWORD, "mechanism": "PLAIN"})
    assert plain.librdkafka()["sasl.mechanism"] == "PLAIN"


def test_a_token_with_or_without_a_scope() -> None:
    settings = KafkaCredentials.parse({**TOKEN, "scope": "kafka"}).librdkafka()
    assert settings == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://id/token",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "secret",
        "sasl.oauthbearer.scope": "kafka",
    }
    assert "sasl.oauthbearer.scope" not in KafkaCredentials.parse(TOKEN).librdkafka()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"tls.crt": "x"}, "tls.crt without tls.key"),
        ({"password": "x"}, "password without username"),
        ({"token-url": "x"}, "token-url without client-id and client-secret"),
        ({**PASSWORD, **TOKEN}, "both username and token-url"),
        ({**PASSWORD, "mechanism": "GSSAPI"}, "none of SCRAM-SHA-512"),
    ],
)
def test_what_does_not_belong_together_is_named(data: dict[str, str], words: str) -> None:
    """By the keys; no value is repeated."""
    with pytest.raises(ValueError, match=words) as raised:
        KafkaCredentials.parse(data)
    assert "secret" not in str(raised.value).replace("client-secret", "")
