"""Transport security: TLS to Kafka and on the control port, from the files of mounted Secrets.

Where they are is in the pod's environment (docs/develop/contracts.md); a variable that is missing
means that this part is not encrypted, or that Kafka's brokers are checked by the system's CAs.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives import serialization

log = logging.getLogger(__name__)

KAFKA_VARIABLE = "STREAMGRAFT_KAFKA_TLS"
CONTROL_VARIABLE = "STREAMGRAFT_CONTROL_TLS"
UNASKED = {"kafka.enable.metrics.push": "false"}
"""Clients that may be asked for their metrics by brokers (KIP-714) look all the time whether they
were. The application's own options win."""
_LOOK_SECONDS = 5.0


def spark_options(tls: bool) -> dict[str, str]:
    """Return the options of Spark's Kafka source and sink for brokers with or without TLS."""
    if not tls:
        return {}
    options = {"security.protocol": "SSL"}
    if folder := _folder(KAFKA_VARIABLE):
        if (authority := folder / "ca.crt").exists():
            options["ssl.truststore.type"] = "PEM"
            options["ssl.truststore.location"] = str(authority)
        if (certificate := folder / "tls.crt").exists():
            options["ssl.keystore.type"] = "PEM"
            options["ssl.keystore.certificate.chain"] = certificate.read_text()
            options["ssl.keystore.key"] = _pkcs8((folder / "tls.key").read_bytes())
    return {f"kafka.{name}": value for name, value in options.items()}


def consumer_options(tls: bool) -> dict[str, str]:
    """Return the same for librdkafka."""
    if not tls:
        return {}
    options = {"security.protocol": "SSL"}
    if folder := _folder(KAFKA_VARIABLE):
        files = {"ca.crt": "ssl.ca.location", "tls.crt": "ssl.certificate.location"}
        files["tls.key"] = "ssl.key.location"
        options |= {
            option: str(folder / name) for name, option in files.items() if (folder / name).exists()
        }
    return options


class ControlTls:
    """The control port's certificate, loaded again whenever its files change."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: tuple[bytes, bytes] | None = None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.reload()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "ControlTls | None":
        """Return the TLS of the control port, or None if it is not encrypted."""
        folder = environment.get(CONTROL_VARIABLE)
        return cls(Path(folder)) if folder else None

    def reload(self) -> None:
        """Load the certificate if it changed: new connections get it, open ones stay."""
        certificate, key = self._folder / "tls.crt", self._folder / "tls.key"
        content = certificate.read_bytes(), key.read_bytes()
        if content != self._loaded:
            self.context.load_cert_chain(certificate, key)
            self._loaded = content
            log.info("the control port's certificate is loaded")

    async def run(self) -> None:
        """Follow the files until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                self.reload()
            except (OSError, ssl.SSLError) as error:  # swapped while we read: look again
                log.warning("the control port's certificate can't be loaded: %s", error)


def _folder(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


def _pkcs8(key: bytes) -> str:
    """Return a private key in the one PEM form that Kafka's client reads."""
    loaded = serialization.load_pem_private_key(key, password=None)
    return loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
