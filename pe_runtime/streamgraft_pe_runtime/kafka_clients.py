"""What librdkafka's clients of a PE show its brokers: the job's credentials, or a source's options.

A source with brokers of its own has options for Kafka's Java clients. Keys and certificates are
read by the Java client's own code, whatever they are kept in (PEM, JKS, PKCS 12).
"""

import base64
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError

from streamgraft_common.pe_metadata import InputPort, OutputPort, PeMetadata
from streamgraft_pe_runtime.kafka_access import client_settings, consumer_options

log = logging.getLogger(__name__)

Clients = Mapping[str, Mapping[str, str]]
"""Addresses of brokers → settings of librdkafka's clients; without those that can't be told."""
_BY_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_TOKENS_FROM = "sasl.oauthbearer.token.endpoint.url"
_ENTRY = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")
"""One of a line of JAAS, in which Kafka takes both kinds of quotes."""
_LINE_LENGTH = 64
"""Of base 64 in PEM (RFC 7468)."""


class NotTold(Exception):
    """Options that librdkafka has no words for."""


def clients(jvm: Any, metadata: PeMetadata, options: Mapping[str, Mapping[str, str]]) -> Clients:
    """Return the settings for all brokers of a PE's inputs and of its streams to other PEs.

    `options`: of sources, by operator. The job's own credentials come before them, and of several
    sources at one address the last that has any lends its own to all.
    """
    ports: list[InputPort | OutputPort] = [port for port in metadata.outputs if not port.external]
    ports += metadata.inputs
    encrypted = {port.bootstrap_servers for port in ports if port.tls}
    found: dict[str, Mapping[str, str]] = {}
    for port in ports:
        servers = port.bootstrap_servers
        try:
            if servers in encrypted:
                found[servers] = consumer_options(True)
            elif told := translated(jvm, options.get(port.operator, {}) if port.external else {}):
                if found.get(servers, {}) not in ({}, told):
                    log.warning(
                        "%s is asked about all sources there with the options of %s",
                        servers,
                        port.operator,
                    )
                found[servers] = told
            else:
                found.setdefault(servers, {})
        except NotTold as error:
            log.warning("%s at %s is not watched: %s", port.topic, servers, error)
    return found


def translated(jvm: Any, options: Mapping[str, str]) -> dict[str, str]:
    """Return what options of Spark's Kafka source say of security. Raises NotTold."""
    java = client_settings(options)
    protocol = java.get("security.protocol", "PLAINTEXT").upper()
    settings = {"security.protocol": protocol} if protocol != "PLAINTEXT" else {}
    if protocol.endswith("SSL"):
        try:
            settings |= _tls(jvm, java)
        except Py4JJavaError as error:
            why = error.java_exception.toString()
            raise NotTold(f"its keys or certificates can't be read: {why}") from error
    if protocol.startswith("SASL"):
        settings |= _sasl(java)
    return settings


def _tls(jvm: Any, java: Mapping[str, str]) -> dict[str, str]:
    if custom := java.get("ssl.engine.factory.class"):
        raise NotTold(f"kafka.ssl.engine.factory.class is {custom}")
    admin = {"bootstrap.servers": "localhost:1", **java}
    parsed = jvm.org.apache.kafka.clients.admin.AdminClientConfig(jvm.java.util.HashMap(admin))
    engine = jvm.org.apache.kafka.common.security.ssl.DefaultSslEngineFactory()
    engine.configure(parsed.values())
    settings = {}
    if java.get("ssl.endpoint.identification.algorithm") == "":
        settings["ssl.endpoint.identification.algorithm"] = "none"
    if (trusted := engine.truststore()) is not None:
        found = (trusted.getCertificate(alias) for alias in _aliases(trusted))
        settings["ssl.ca.pem"] = "".join(map(_certificate, found))
    if (own := engine.keystore()) is not None:
        alias = next(filter(own.isKeyEntry, _aliases(own)), None)
        if alias is None:
            raise NotTold("its keystore has no key")
        password = java.get("ssl.key.password")
        if java.get("ssl.keystore.type", "JKS").upper() != "PEM":
            password = password or java.get("ssl.keystore.password")
        key = own.getKey(alias, _characters(jvm, password))
        settings["ssl.key.pem"] = _pem("PRIVATE KEY", _encoded(jvm, key))
        settings["ssl.certificate.pem"] = "".join(map(_certificate, own.getCertificateChain(alias)))
    return settings


def _aliases(store: Any) -> Iterator[str]:
    aliases = store.aliases()
    while aliases.hasMoreElements():
        yield aliases.nextElement()


def _encoded(jvm: Any, key: Any) -> bytes:
    """Return a key in PKCS 8. Its class is none that Py4J may look into; its interface is."""
    java = jvm.java.lang
    no_classes, nothing = (
        java.reflect.Array.newInstance(java.Class.forName(f"java.lang.{kind}"), 0)
        for kind in ("Class", "Object")
    )
    method = java.Class.forName("java.security.Key").getMethod("getEncoded", no_classes)
    found: bytes = method.invoke(key, nothing)
    return found


def _certificate(certificate: Any) -> str:
    return _pem("CERTIFICATE", certificate.getEncoded())


def _pem(kind: str, content: bytes) -> str:
    text = base64.b64encode(content).decode()
    lines = [text[at : at + _LINE_LENGTH] for at in range(0, len(text), _LINE_LENGTH)]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])


def _characters(jvm: Any, text: str | None) -> Any:
    """Return a text as Java's array of characters, which Py4J has no other way to make."""
    if text is None:
        return None
    length = len(text.encode("utf-16-le")) // 2
    return jvm.java.nio.CharBuffer.allocate(length).put(text).array()


def _sasl(java: Mapping[str, str]) -> dict[str, str]:
    mechanism = java.get("sasl.mechanism", "GSSAPI")
    shown = {
        name: re.sub(r"\\(.)", r"\1", double or single) or plain
        for name, double, single, plain in _ENTRY.findall(java.get("sasl.jaas.config", ""))
    }
    if mechanism in _BY_PASSWORD:
        needed = {"sasl.username": "username", "sasl.password": "password"}
        settings: dict[str, str] = {"sasl.mechanism": mechanism}
    elif mechanism == "OAUTHBEARER" and _TOKENS_FROM in java:
        needed = {
            "sasl.oauthbearer.client.id": "clientId",
            "sasl.oauthbearer.client.secret": "clientSecret",
        }
        settings = {
            "sasl.mechanism": mechanism,
            "sasl.oauthbearer.method": "oidc",
            _TOKENS_FROM: java[_TOKENS_FROM],
        }
        if scope := shown.get("scope"):
            settings["sasl.oauthbearer.scope"] = scope
    else:
        raise NotTold(f"kafka.sasl.mechanism is {mechanism}, which only Java's clients are told")
    if missing := [name for name in needed.values() if name not in shown]:
        raise NotTold(f"kafka.sasl.jaas.config has no {' and no '.join(missing)}")
    return settings | {setting: shown[name] for setting, name in needed.items()}
