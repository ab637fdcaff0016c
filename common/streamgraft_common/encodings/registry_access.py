"""What a schema registry is shown: keys of the job's `restrictedPropertiesSecret`.

| keys | for |
|---|---|
| `registry.username`, `registry.password` | HTTP basic authentication |
| `registry.token` | a bearer token |
| `registry.ca.crt` | the authority that signed the registry's certificate |

A pod has them as files, which follow a Secret that is changed: they are read for each question.
"""

import base64
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

USERNAME, PASSWORD, TOKEN = "registry.username", "registry.password", "registry.token"
AUTHORITY = "registry.ca.crt"
KEYS = frozenset({USERNAME, PASSWORD, TOKEN, AUTHORITY})
"""Keys of the Secret that are no settings of Spark."""
VARIABLE = "STREAMGRAFT_RESTRICTED_PROPERTIES"


@dataclass(frozen=True, repr=False)
class Access:
    """What is shown, and whom we trust."""

    authorization: str | None = None
    """Value of the HTTP header."""
    authority: str | None = None
    """PEM text; the system's if there is none."""

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> Self:
        """Read a Secret's texts. Raises ValueError that names the keys; it repeats no value."""
        given = {key: data[key].strip() for key in KEYS & data.keys()}
        for key, other in ((USERNAME, PASSWORD), (PASSWORD, USERNAME)):
            if key in given and other not in given:
                raise ValueError(f"restrictedPropertiesSecret has {key} without {other}")
        if USERNAME in given and TOKEN in given:
            raise ValueError(
                f"restrictedPropertiesSecret has both {USERNAME} and {TOKEN}: keep one"
            )
        shown = None
        if USERNAME in given:
            pair = f"{given[USERNAME]}:{given[PASSWORD]}".encode()
            shown = f"Basic {base64.b64encode(pair).decode()}"
        elif TOKEN in given:
            shown = f"Bearer {given[TOKEN]}"
        return cls(shown, given.get(AUTHORITY))

    def context(self) -> ssl.SSLContext | None:
        """Return how a certificate is looked at, if not as the system does. Raises ValueError."""
        if self.authority is None:
            return None
        try:
            return ssl.create_default_context(cadata=self.authority)
        except (ssl.SSLError, ValueError):
            raise ValueError(
                f"{AUTHORITY} of restrictedPropertiesSecret is no certificate"
            ) from None


def found() -> Access:
    """Return what this pod has. Raises ValueError, OSError."""
    folder = os.environ.get(VARIABLE)
    files = [Path(folder, key) for key in sorted(KEYS)] if folder else []
    return Access.parse({file.name: file.read_text() for file in files if file.exists()})
