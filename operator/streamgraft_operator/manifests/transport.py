"""What transport security puts into a pod: Secrets with certificates, and https for its probes."""

from typing import Any

from streamgraft_common import names
from streamgraft_common.resources import TransportSecurity
from streamgraft_operator.manifests.pod_settings import Mount

CONTROL_TLS = "/etc/streamgraft/tls/control"
KAFKA_TLS = "/etc/streamgraft/tls/kafka"


def mounts(job: str, security: TransportSecurity) -> list[Mount]:
    """Return the Secrets that a pod mounts."""
    if not security.encrypted:
        return []
    wanted = [("control-tls", CONTROL_TLS, names.control_secret(job), "STREAMGRAFT_CONTROL_TLS")]
    if security.kafka_secret:
        wanted.append(("kafka-tls", KAFKA_TLS, security.kafka_secret, "STREAMGRAFT_KAFKA_TLS"))
    return [
        Mount(name, path, {"secret": {"secretName": secret}}, variable, read_only=True)
        for name, path, secret, variable in wanted
    ]


def annotations(security: TransportSecurity) -> dict[str, str]:
    """Return the annotation by which Prometheus sees that a control port speaks https."""
    return {names.ANNOTATION_SCHEME: "https"} if security.encrypted else {}


def probes(plain: dict[str, Any], security: TransportSecurity) -> dict[str, Any]:
    """Return a container's probes, by https if its control port speaks it."""
    if not security.encrypted:
        return plain
    return {
        name: {**probe, "httpGet": {**probe["httpGet"], "scheme": "HTTPS"}}
        for name, probe in plain.items()
    }
