"""The Service of a PE: its control port under a stable name, whatever the launch."""

from typing import Any

from streamgraft_common import names
from streamgraft_operator.graph import PlannedPe
from streamgraft_operator.manifests.metadata import Owner, metadata, pe_labels


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
