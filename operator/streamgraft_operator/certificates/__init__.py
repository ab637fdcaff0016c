"""Certificates of control ports: `authority` is the pure part, `issuer` keeps them in Secrets."""

from streamgraft_operator.certificates.issuer import CertificateError, Issuer

__all__ = ["CertificateError", "Issuer"]
