"""A Kafka broker of a test, with a listener that speaks TLS and asks for client certificates, and
one that speaks TLS and asks for a password or a token."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from streamgraft_local import Cluster, pki, ports
from streamgraft_local.components import kafka
from streamgraft_local.components.model import Setting
from streamgraft_local.paths import Home
from streamgraft_local.runner import Runner

HOSTS = ("localhost", "127.0.0.1")
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


@dataclass(frozen=True)
class TlsBroker:
    """A running broker; `secret` has what its clients need, by the keys of a Secret."""

    address: str
    sasl: str
    """Address of the listener that asks for a password or a token."""
    plain: str
    """Address of a listener without TLS, whose users are nobody to the broker."""
    secret: dict[str, bytes]
    folder: Path

    def client(self) -> dict[str, str]:
        """Return the settings of a librdkafka client."""
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "ssl",
            "ssl.ca.location": str(self.folder / "ca.crt"),
            "ssl.certificate.location": str(self.folder / "client.crt"),
            "ssl.key.location": str(self.folder / "client.key"),
        }


@contextmanager
def tls_broker(
    cluster: Cluster, root: Path, more: Mapping[str, object] | None = None, issuer: str = ""
) -> Iterator[TlsBroker]:
    """Run a broker beside that of the cluster, as one of the cluster's processes.

    `more`: further properties of it. `issuer`: URL of who issues tokens.
    """
    home = Home(root / "kafka")
    home.create()
    signer = pki.authority("kafka-ca")
    signer.save(root, "ca")
    client = pki.issue(signer, "client")
    client.save(root, "client")
    pem = root / "broker.pem"
    pem.write_bytes(_bundle(pki.issue(signer, "broker", hosts=HOSTS)))
    state = cluster.state()
    chosen = ports.choose(("kafka", "kafka-controller", "tls", "sasl"), {})
    setting = Setting(state.spec, home, chosen, state.tools)
    address, sasl = (f"127.0.0.1:{setting.ports[name]}" for name in ("tls", "sasl"))
    plain = kafka.broker(setting)

    def prepare() -> None:
        if plain.prepare:
            plain.prepare()
        with (home.config / "kafka.properties").open("a") as file:
            file.write(_lines(_listeners(setting, address, sasl, pem, root / "ca.crt")))
            file.write(_lines(_sasl(issuer)))
            file.write(_lines(more or {}))

    runner = Runner(home, state.id)
    java, *options = plain.command
    allowed = (f"-D{ALLOWED_URLS}={issuer}/keys",) if issuer else ()
    command = (java, *allowed, *options)
    runner.start(replace(plain, command=command, prepare=prepare))
    try:
        files = {"ca.crt": "ca.crt", "tls.crt": "client.crt", "tls.key": "client.key"}
        secret = {key: (root / name).read_bytes() for key, name in files.items()}
        yield TlsBroker(address, sasl, kafka.bootstrap_servers(setting), secret, root)
    finally:
        runner.stop({"kafka": plain.grace_seconds})


def _listeners(
    setting: Setting, address: str, sasl: str, pem: Path, authority: Path
) -> dict[str, object]:
    """Return the properties that add the listeners; of equal keys Java takes the last."""
    inner = kafka.bootstrap_servers(setting)
    controller = f"127.0.0.1:{setting.ports['kafka-controller']}"
    ours = f"PLAINTEXT://{inner},SSL://{address},SASL_SSL://{sasl}"
    protocols = ("PLAINTEXT", "SSL", "SASL_SSL")
    return {
        "listeners": f"{ours},CONTROLLER://{controller}",
        "advertised.listeners": ours,
        "listener.security.protocol.map": ",".join(
            ["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in protocols)]
        ),
        "ssl.client.auth": "required",
        "listener.name.sasl_ssl.ssl.client.auth": "none",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": pem,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority,
    }


def _sasl(issuer: str) -> dict[str, str]:
    """Return what the listener asks for; passwords of SCRAM are made by an administrator."""
    listener, security = "listener.name.sasl_ssl", "org.apache.kafka.common.security"
    bearer = f"{listener}.oauthbearer"
    scram = f"{security}.scram.ScramLoginModule required;"
    mechanisms = {
        f"{listener}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        f"{listener}.scram-sha-512.sasl.jaas.config": scram,
    }
    if not issuer:
        return mechanisms
    return mechanisms | {
        f"{listener}.sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
        f"{bearer}.sasl.jaas.config": f"{security}.oauthbearer.OAuthBearerLoginModule required;",
        f"{bearer}.sasl.server.callback.handler.class": (
            f"{security}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": f"{issuer}/keys",
        "sasl.oauthbearer.expected.audience": "kafka",
    }


def _lines(properties: Mapping[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def _bundle(issued: pki.Issued) -> bytes:
    """Return key and certificate in one file, the key in the form that Java reads."""
    key = issued.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return key + issued.certificate.public_bytes(serialization.Encoding.PEM)
