"""A Kafka broker of a test, with a listener that speaks TLS and asks for client certificates."""

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


@dataclass(frozen=True)
class TlsBroker:
    """A running broker; `secret` has what its clients need, by the keys of a Secret."""

    address: str
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
    cluster: Cluster, root: Path, more: Mapping[str, object] | None = None
) -> Iterator[TlsBroker]:
    """Run a broker beside that of the cluster, as one of the cluster's processes.

    `more`: further properties of it.
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
    setting = Setting(
        state.spec, home, ports.choose(("kafka", "kafka-controller", "tls"), {}), state.tools
    )
    address = f"127.0.0.1:{setting.ports['tls']}"
    plain = kafka.broker(setting)

    def prepare() -> None:
        if plain.prepare:
            plain.prepare()
        with (home.config / "kafka.properties").open("a") as file:
            file.write(_listener(setting, address, pem, root / "ca.crt"))
            file.writelines(f"{name}={value}\n" for name, value in (more or {}).items())

    runner = Runner(home, state.id)
    runner.start(replace(plain, prepare=prepare))
    try:
        files = {"ca.crt": "ca.crt", "tls.crt": "client.crt", "tls.key": "client.key"}
        secret = {key: (root / name).read_bytes() for key, name in files.items()}
        yield TlsBroker(address, kafka.bootstrap_servers(setting), secret, root)
    finally:
        runner.stop({"kafka": plain.grace_seconds})


def _listener(setting: Setting, address: str, pem: Path, authority: Path) -> str:
    """Return the lines that add the listener; of equal keys Java takes the last."""
    inner = kafka.bootstrap_servers(setting)
    controller = f"127.0.0.1:{setting.ports['kafka-controller']}"
    values = {
        "listeners": f"PLAINTEXT://{inner},SSL://{address},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{inner},SSL://{address}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": pem,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority,
    }
    return "".join(f"{name}={value}\n" for name, value in values.items())


def _bundle(issued: pki.Issued) -> bytes:
    """Return key and certificate in one file, the key in the form that Java reads."""
    key = issued.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return key + issued.certificate.public_bytes(serialization.Encoding.PEM)
