"""Transport security of the control port, from the files of a mounted Secret.

Where they are is in the pod's environment (docs/develop/contracts.md); if the variable is missing
the port is not encrypted.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import Mapping
from pathlib import Path

log = logging.getLogger(__name__)

CONTROL_VARIABLE = "STREAMGRAFT_CONTROL_TLS"
_LOOK_SECONDS = 5.0


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
