"""Keys and certificates of a cluster, all of its own making and never leaving its folder.

Four authorities: one for servers and users, another for the aggregation layer's client certificate
(were they the same, any user could pose as the front proxy and name another user), one for what
only the API server may ask (etcd, which lets nobody in who may do less, and the process node), and
one that the operator gets, for the control ports of processing elements.
"""

import datetime
import ipaddress
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from streamgraft_common import certificates

LIFETIME = datetime.timedelta(days=3650)
ADAPTER_HOST = "streamgraft-metrics-adapter.streamgraft-system.svc"
"""The name under which the API server verifies the metrics adapter."""
NODE_METRICS_HOST = "streamgraft-node-metrics.streamgraft-system.svc"
"""The name under which it verifies the process node as the server of metrics.k8s.io."""
FRONT_PROXY = "front-proxy-client"
"""Common name of the aggregation layer's client certificate."""

IDENTITIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("streamgraft-admin", ("system:masters",)),
    "controller-manager": ("system:kube-controller-manager", ()),
    "scheduler": ("system:kube-scheduler", ()),
    "node": ("streamgraft-node", ()),
    "operator": ("streamgraft-operator", ()),
    "adapter": ("streamgraft-metrics-adapter", ()),
    "prometheus": ("streamgraft-prometheus", ()),
}
"""Client certificates: user name and groups by file name."""
_LOCAL = ("localhost", "127.0.0.1")


@dataclass(frozen=True)
class Issued:
    """A private key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def save(self, folder: Path, name: str) -> None:
        """Write `<name>.crt` and `<name>.key` (PEM)."""
        (folder / f"{name}.crt").write_bytes(
            self.certificate.public_bytes(serialization.Encoding.PEM)
        )
        _save_key(folder / f"{name}.key", self.key)

    @classmethod
    def load(cls, folder: Path, name: str) -> Self:
        """Read what was saved."""
        key = serialization.load_pem_private_key((folder / f"{name}.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return cls(key, x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes()))


def authority(name: str) -> Issued:
    """Return a new self-signed certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name, ())
    builder = _builder(subject, subject, key.public_key(), key.public_key(), authority=True)
    return Issued(key, builder.sign(key, hashes.SHA256()))


def issue(
    signer: Issued, name: str, groups: Sequence[str] = (), hosts: Sequence[str] = ()
) -> Issued:
    """Return a certificate: of a server if it has `hosts` (names or addresses), else of a client.

    Kubernetes takes the common name for the user and the organizations for the groups.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject, issuer = _name(name, groups), signer.certificate.subject
    builder = _builder(subject, issuer, key.public_key(), signer.key.public_key(), authority=False)
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    if hosts:
        alternatives = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
        builder = builder.add_extension(alternatives, critical=False)
    return Issued(key, builder.sign(signer.key, hashes.SHA256()))


def ensure(folder: Path) -> None:
    """Create the folder with everything in it, unless it exists: all or nothing."""
    if folder.exists():
        if not (folder / "pe-ca.crt").exists():  # made by an earlier release
            authority("streamgraft-pe-ca").save(folder, "pe-ca")
        if not (folder / "backend-client.crt").exists():
            _write_backends(folder)
        if not (folder / "node-metrics.crt").exists():
            _serving(Issued.load(folder, "ca"), NODE_METRICS_HOST).save(folder, "node-metrics")
        return
    work = Path(tempfile.mkdtemp(prefix="pki-", dir=folder.parent))
    try:
        _write_all(work)
        work.rename(folder)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def _write_all(folder: Path) -> None:
    users, proxies = authority("streamgraft-ca"), authority("streamgraft-front-proxy-ca")
    users.save(folder, "ca")
    proxies.save(folder, "front-proxy-ca")
    authority("streamgraft-pe-ca").save(folder, "pe-ca")
    _write_backends(folder)
    kubernetes = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1"]
    issue(users, "kube-apiserver", hosts=[*_LOCAL, *kubernetes]).save(folder, "apiserver")
    issue(users, "controllers", hosts=_LOCAL).save(folder, "controllers")
    _serving(users, ADAPTER_HOST).save(folder, "adapter-serving")
    _serving(users, NODE_METRICS_HOST).save(folder, "node-metrics")
    issue(proxies, FRONT_PROXY).save(folder, "front-proxy")
    for name, (user, groups) in IDENTITIES.items():
        issue(users, user, groups).save(folder, name)
    account = ec.generate_private_key(ec.SECP256R1())
    _save_key(folder / "service-account.key", account)


def _write_backends(folder: Path) -> None:
    backends = authority("streamgraft-backend-ca")
    backends.save(folder, "backend-ca")
    issue(backends, "etcd", hosts=_LOCAL).save(folder, "etcd")
    issue(backends, "kube-apiserver").save(folder, "backend-client")


def _serving(signer: Issued, host: str) -> Issued:
    """Return the certificate of a server that the API server asks under a Service's name."""
    return issue(signer, host, hosts=[host, *_LOCAL])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePublicKey,
    *,
    authority: bool,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    validity = now - datetime.timedelta(hours=1), now + LIFETIME
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer)
    return certificates.unsigned(
        subject, issuer, public, validity, authority=authority
    ).add_extension(issued_by, critical=False)


def _name(common: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _save_key(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    file.touch(mode=0o600)
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
