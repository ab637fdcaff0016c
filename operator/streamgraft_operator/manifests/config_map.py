"""ConfigMaps: graph metadata of a PE, operator port labels of a job."""

import json
from collections.abc import Mapping
from typing import Any

from streamgraft_common import names
from streamgraft_operator.graph import PlannedPe, PortLabel
from streamgraft_operator.manifests.metadata import Owner, metadata, pe_labels


def pe_config_map(owner: Owner, pe: PlannedPe, content_id: str) -> dict[str, Any]:
    """Return the ConfigMap with a PE's graph metadata; it has the PE's name."""
    document = pe.metadata.model_dump_json(by_alias=True)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(owner, pe.name, pe_labels(pe), content_id),
        "data": {names.PE_METADATA_KEY: document},
    }


def job_config_map(
    owner: Owner, port_labels: Mapping[str, PortLabel], content_id: str
) -> dict[str, Any]:
    """Return the job's own ConfigMap. `content_id` is that of the whole submission."""
    labels = {name: label.to_wire() for name, label in port_labels.items()}
    document = json.dumps(labels, indent=1, sort_keys=True)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(owner, names.job_config_map(owner.name), {}, content_id),
        "data": {names.PORT_LABELS_KEY: document},
    }
