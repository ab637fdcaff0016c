"""The authorities that Java trusts: also those that the user's $SSL_CERT_FILE names.

Python, Go and most tools read that variable, Java does not; a private Java, which knows only the
public authorities, could then fetch nothing from behind a company's proxy.
"""

import os
import threading
import warnings
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
)
from cryptography.utils import CryptographyDeprecationWarning

_PASSWORD = "changeit"
"""Java's customary one: the store holds nothing secret, but Java reads none without."""
_ONE_AT_A_TIME = threading.Lock()
"""What Python warns of is set for all threads at once, and tools are made ready in several."""


def java_options(folder: Path) -> tuple[str, ...]:
    """Return options for a JVM, and write the store that they name into the folder.

    Empty if $SSL_CERT_FILE is not set: Java's own list holds then.
    """
    bundle = os.environ.get("SSL_CERT_FILE")
    if not bundle:
        return ()
    store = folder / "trust.p12"
    store.write_bytes(_store(Path(bundle).read_bytes()))
    return (
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}",
    )


def _store(bundle: bytes) -> bytes:
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        # Systems' bundles hold old authorities with serial numbers that break today's rules.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        certificates = x509.load_pem_x509_certificates(bundle)
    entries = [
        PKCS12Certificate(certificate, str(number).encode())
        for number, certificate in enumerate(certificates)
    ]
    return serialize_java_truststore(entries, BestAvailableEncryption(_PASSWORD.encode()))
