"""What a Secret for Kafka's brokers holds, and how clients of librdkafka are told. Pure.

| keys | for |
|---|---|
| `ca.crt` | the authority that signed the brokers' certificates |
| `tls.crt`, `tls.key` | a client certificate (mutual TLS) |
| `username`, `password`, `mechanism` | SASL: SCRAM-SHA-512 (the default), SCRAM-SHA-256 or PLAIN |
| `token-url`, `client-id`, `client-secret`, `scope` | SASL OAUTHBEARER: the grant for clients of \
OAuth 2 (RFC 6749, 4.4); `scope` may be absent |
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

AUTHORITY, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
KEYS = (
    *(AUTHORITY, CERTIFICATE, KEY, "username", "password", "mechanism"),
    *("token-url", "client-id", "client-secret", "scope"),
)
"""All that is read of the Secret."""
_MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
_TOGETHER = (
    (CERTIFICATE, KEY),
    ("username", "password"),
    ("token-url", "client-id", "client-secret"),
)
_TLS = {AUTHORITY: "ssl.ca.pem", CERTIFICATE: "ssl.certificate.pem", KEY: "ssl.key.pem"}


@dataclass(frozen=True, repr=False)
class Password:
    """A name and a password."""

    mechanism: str
    username: str
    password: str


@dataclass(frozen=True, repr=False)
class Token:
    """Where tokens come from, and what is shown there."""

    url: str
    client_id: str
    client_secret: str
    scope: str


@dataclass(frozen=True, repr=False)
class KafkaCredentials:
    """What a client shows brokers that speak TLS."""

    tls: Mapping[str, str]
    """PEM texts by their keys in the Secret."""
    sasl: Password | Token | None = None

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> Self:
        """Read a Secret's texts. Raises ValueError that names the keys; it repeats no value."""
        given = {key: value for key, value in data.items() if key in KEYS}
        for keys in _TOGETHER:
            missing = [key for key in keys if key not in given]
            if missing and len(missing) < len(keys):
                has = next(key for key in keys if key in given)
                raise ValueError(f"{has} without {' and '.join(missing)}")
        tls = {key: given[key] for key in _TLS if key in given}
        return cls(tls, _sasl({key: value.strip() for key, value in given.items()}))

    def protocol(self) -> str:
        """Return Kafka's name for how to talk."""
        return "SASL_SSL" if self.sasl else "SSL"

    def librdkafka(self) -> dict[str, str]:
        """Return the settings of a client of librdkafka."""
        settings = {"security.protocol": self.protocol()}
        settings |= {_TLS[key]: text for key, text in self.tls.items()}
        match self.sasl:
            case Password() as given:
                settings |= {
                    "sasl.mechanism": given.mechanism,
                    "sasl.username": given.username,
                    "sasl.password": given.password,
                }
            case Token() as given:
                settings |= {
                    "sasl.mechanism": "OAUTHBEARER",
                    "sasl.oauthbearer.method": "oidc",
                    "sasl.oauthbearer.token.endpoint.url": given.url,
                    "sasl.oauthbearer.client.id": given.client_id,
                    "sasl.oauthbearer.client.secret": given.client_secret,
                }
                if given.scope:
                    settings["sasl.oauthbearer.scope"] = given.scope
        return settings


def _sasl(given: Mapping[str, str]) -> Password | Token | None:
    if "username" in given and "token-url" in given:
        raise ValueError("both username and token-url: brokers are shown one of them")
    if "username" in given:
        mechanism = given.get("mechanism", _MECHANISMS[0])
        if mechanism not in _MECHANISMS:
            raise ValueError(f"mechanism is none of {', '.join(_MECHANISMS)}")
        return Password(mechanism, given["username"], given["password"])
    if "token-url" in given:
        client = given["client-id"], given["client-secret"]
        return Token(given["token-url"], *client, given.get("scope", ""))
    return None
