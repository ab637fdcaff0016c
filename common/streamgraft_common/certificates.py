"""What the X.509 certificates that we issue have in common (RFC 5280)."""

import datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec


def unsigned(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    validity: tuple[datetime.datetime, datetime.datetime],
    *,
    authority: bool,
) -> x509.CertificateBuilder:
    """Return a certificate to be completed and signed; `validity`: from when until when.

    An authority may sign certificates of servers and clients, but none of further authorities.
    """
    constraints = x509.BasicConstraints(ca=authority, path_length=0 if authority else None)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity[0])
        .not_valid_after(validity[1])
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(constraints, critical=True)
        .add_extension(_usage(authority=authority), critical=True)
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
