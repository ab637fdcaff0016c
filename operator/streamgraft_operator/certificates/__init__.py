"""Certificates of control ports: `authority` is the pure part, `issuer` keeps them in Secrets."""

from streamgraft_operator.certificates.issuer import Issuer

__all__ = ["Issuer"]
