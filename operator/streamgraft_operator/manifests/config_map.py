"""ConfigMaps: graph metadata of a PE, operator port labels of a job."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from streamgraft_common import names
from streamgraft_common.port_labels import PortLabel, document
from streamgraft_common.resources import SavedStage
from streamgraft_operator.graph import PlannedPe
from streamgraft_operator.manifests.metadata import Owner, metadata, pe_labels


def pe_config_map(owner: Owner, pe: PlannedPe, content_id: str) -> dict[str, Any]:
    """Return the ConfigMap with a PE's graph metadata; it has the PE's name."""
    own = metadata(owner, pe.name, pe_labels(pe), content_id)
    own["annotations"][names.ANNOTATION_SAVEPOINT] = pe.metadata.savepoint or ""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": own,
        "data": {names.PE_METADATA_KEY: pe.metadata.to_wire()},
    }


def job_config_map(
    owner: Owner,
    labels: Mapping[str, PortLabel],
    stages: Iterable[SavedStage],
    content_id: str,
    checkpoints: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the job's own ConfigMap.

    `content_id` is that of the whole submission, `checkpoints` the volume that they are on.
    """
    own = metadata(owner, names.job_config_map(owner.name), {}, content_id)
    own["annotations"][names.ANNOTATION_CHECKPOINTS] = json.dumps(checkpoints)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": own,
        "data": {
            names.PORT_LABELS_KEY: document(labels),
            names.STAGES_KEY: json.dumps([stage.to_wire() for stage in stages]),
        },
    }


def stages_of(config_map: dict[str, Any]) -> list[SavedStage]:
    """Return the stages that a job's own ConfigMap notes; none if it notes nothing of them."""
    document = json.loads(config_map.get("data", {}).get(names.STAGES_KEY, "[]"))
    return [SavedStage.model_validate(item) for item in document]


def checkpoints_of(config_map: dict[str, Any]) -> dict[str, Any]:
    """Return the volume that a job's own ConfigMap notes; empty if it notes none."""
    annotations = config_map["metadata"].get("annotations", {})
    found: dict[str, Any] = json.loads(annotations.get(names.ANNOTATION_CHECKPOINTS, "{}"))
    return found
