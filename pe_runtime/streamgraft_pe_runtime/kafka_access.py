"""How a PE's Kafka clients are told what to show the brokers: files of a mounted Secret.

Where they are is in the pod's environment (docs/develop/contracts.md); without the variable the
brokers' certificates are checked against the system's CAs.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamgraft_common.kafka_credentials import (
    AUTHORITY,
    CERTIFICATE,
    KEY,
    KEYS,
    KafkaCredentials,
    Password,
    Token,
)

KAFKA_VARIABLE = "STREAMGRAFT_KAFKA_TLS"
UNASKED = {"kafka.enable.metrics.push": "false"}
"""Clients that may be asked for their metrics by brokers (KIP-714) look all the time whether they
were. The application's own options win."""
_PREFIX = "kafka."
_SECURITY = "org.apache.kafka.common.security"
_MODULES = {
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
}
_BEARER_MODULE = f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule"
_BEARER_HANDLER = f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"


def spark_options(tls: bool) -> dict[str, str]:
    """Return the options of Spark's Kafka source and sink for brokers with or without TLS."""
    if not tls:
        return {}
    credentials = _credentials()
    options = {"security.protocol": credentials.protocol(), **_java_tls(credentials)}
    match credentials.sasl:
        case Password() as given:
            options["sasl.mechanism"] = given.mechanism
            shown = {"username": given.username, "password": given.password}
            options["sasl.jaas.config"] = _jaas(_MODULES[given.mechanism], shown)
        case Token() as given:
            options["sasl.mechanism"] = "OAUTHBEARER"
            options["sasl.oauthbearer.token.endpoint.url"] = given.url
            options["sasl.login.callback.handler.class"] = _BEARER_HANDLER
            shown = {"clientId": given.client_id, "clientSecret": given.client_secret}
            if given.scope:
                shown["scope"] = given.scope
            options["sasl.jaas.config"] = _jaas(_BEARER_MODULE, shown)
    return {f"kafka.{name}": value for name, value in options.items()}


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Kafka's Java clients among the options of Spark's source or sink."""
    return {
        name.removeprefix(_PREFIX): value
        for name, value in options.items()
        if name.startswith(_PREFIX)
    }


@contextmanager
def jvm_admin(jvm: Any, bootstrap_servers: str, options: Mapping[str, str]) -> Iterator[Any]:
    """Give an administrator's client of the JVM, with the options of Spark's source or sink.

    librdkafka's may end the process (brokers.py).
    """
    kafka = {"bootstrap.servers": bootstrap_servers, **client_settings(options)}
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(jvm.java.util.HashMap(kafka))
    try:
        yield admin
    finally:
        admin.close(jvm.java.time.Duration.ZERO)


def consumer_options(tls: bool) -> dict[str, str]:
    """Return the same for librdkafka."""
    return _credentials().librdkafka() if tls else {}


def jvm_properties() -> dict[str, str]:
    """Return what the driver's JVM must know: Kafka's client asks only URLs that it may ask."""
    match _credentials().sasl:
        case Token() as given:
            return {"org.apache.kafka.sasl.oauthbearer.allowed.urls": given.url}
        case _:
            return {}


def _credentials() -> KafkaCredentials:
    """Read the Secret. Raises ValueError if keys are missing in it."""
    folder = os.environ.get(KAFKA_VARIABLE)
    files = [Path(folder) / key for key in KEYS] if folder else []
    return KafkaCredentials.parse({file.name: file.read_text() for file in files if file.exists()})


def _java_tls(credentials: KafkaCredentials) -> dict[str, str]:
    options = {}
    if AUTHORITY in credentials.tls:
        options["ssl.truststore.type"] = "PEM"
        options["ssl.truststore.certificates"] = credentials.tls[AUTHORITY]
    if CERTIFICATE in credentials.tls:
        options["ssl.keystore.type"] = "PEM"
        options["ssl.keystore.certificate.chain"] = credentials.tls[CERTIFICATE]
        options["ssl.keystore.key"] = _pkcs8(credentials.tls[KEY].encode())
    return options


def _jaas(module: str, values: dict[str, str]) -> str:
    """Return a line of JAAS (javax.security.auth.login.Configuration)."""
    quoted = " ".join(f"{name}={_quoted(value)}" for name, value in values.items())
    return f"{module} required {quoted};"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _pkcs8(key: bytes) -> str:
    """Return a private key in the one PEM form that Kafka's client reads."""
    # Only here: this module is imported before the JVM starts.
    from cryptography.hazmat.primitives import serialization

    loaded = serialization.load_pem_private_key(key, password=None)
    return loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
