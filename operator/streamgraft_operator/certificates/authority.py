"""Keys and certificates as PEM: an authority, and what it issues. Keys are random."""

import datetime
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from streamgraft_common import certificates

AUTHORITY_DAYS = 3650
RENEW_AT = 2 / 3
"""Part of its validity after which a certificate is replaced."""
CLOCK_SKEW = datetime.timedelta(minutes=5)


@dataclass(frozen=True)
class Pair:
    """A certificate (PEM) and its private key (PEM, PKCS 8)."""

    certificate: bytes
    key: bytes


def new_authority(now: datetime.datetime) -> Pair:
    """Return a new authority, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("streamgraft-ca")
    validity = _validity(now, AUTHORITY_DAYS)
    builder = certificates.unsigned(name, name, key.public_key(), validity, authority=True)
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issue(authority: Pair, hosts: list[str], days: int, now: datetime.datetime) -> Pair:
    """Return a server's certificate for DNS names, signed by an authority.

    Raises ValueError if the authority is no certificate with its key.
    """
    signer = x509.load_pem_x509_certificate(authority.certificate)
    signing_key = serialization.load_pem_private_key(authority.key, password=None)
    if not isinstance(signing_key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise ValueError("the authority's key is neither an elliptic curve nor an RSA key")
    key = ec.generate_private_key(ec.SECP256R1())
    subject, validity = _name(hosts[0]), _validity(now, days)
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    builder = (
        certificates.unsigned(subject, signer.subject, key.public_key(), validity, authority=False)
        .add_extension(purpose, critical=False)
        .add_extension(names, critical=False)
    )
    return _pair(builder.sign(signing_key, hashes.SHA256()), key)


def needs_renewal(
    certificate: bytes, authority: bytes, hosts: list[str], days: int, now: datetime.datetime
) -> bool:
    """Return whether a certificate is old, not of this authority, or not what is asked for."""
    try:
        held = x509.load_pem_x509_certificate(certificate)
        held.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
        names = held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return True
    begin, end = held.not_valid_before_utc, held.not_valid_after_utc
    if names.get_values_for_type(x509.DNSName) != hosts or end - begin != _length(days):
        return True
    return now > begin + (end - begin) * RENEW_AT


def _length(days: int) -> datetime.timedelta:
    return CLOCK_SKEW + datetime.timedelta(days=days)


def _validity(now: datetime.datetime, days: int) -> tuple[datetime.datetime, datetime.datetime]:
    begin = now.replace(microsecond=0) - CLOCK_SKEW
    return begin, begin + _length(days)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), pem)
