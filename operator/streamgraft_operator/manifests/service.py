"""Services: a PE's control port under a stable name, and the ports that applications declare."""

from typing import Any

from streamgraft_common import names
from streamgraft_common.declared_objects import ServiceDeclaration
from streamgraft_operator.graph import PlannedPe, Topology
from streamgraft_operator.manifests.metadata import Owner, digest, metadata, pe_labels


def service(owner: Owner, pe: PlannedPe) -> dict[str, Any]:
    """Return the headless Service of a PE; it has the PE's name."""
    port = names.CONTROL_PORT
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(owner, pe.name, pe_labels(pe)),
        "spec": {
            "clusterIP": "None",
            "selector": {names.LABEL_PE: pe.name},
            "ports": [{"name": "control", "port": port, "targetPort": port}],
        },
    }


def declared_service(
    owner: Owner, topology: Topology, declared: ServiceDeclaration
) -> dict[str, Any]:
    """Return a Service that the application declares: of one PE, or of a stage of all channels."""
    (pe,) = (pe for pe in topology.stages if declared.operator in pe.metadata.operators)
    target = declared.target_port or declared.port
    spec = {
        "selector": _pods_of(owner, pe),
        "ports": [{"name": declared.name, "port": declared.port, "targetPort": target}],
    }
    name = names.service(owner.name, declared.name)
    labels = {names.LABEL_SERVICE: declared.name}
    described = metadata(owner, name, labels, digest(spec))
    return {"apiVersion": "v1", "kind": "Service", "metadata": described, "spec": spec}


def _pods_of(owner: Owner, pe: PlannedPe) -> dict[str, str]:
    if pe.region is None:
        return {names.LABEL_PE: pe.name}
    return {
        names.LABEL_JOB: owner.name,
        names.LABEL_REGION: pe.region,
        names.LABEL_STAGE: str(pe.stage),
    }
