"""What all manifests have in common: owner, labels, content ids."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from streamgraft_common import names
from streamgraft_operator.graph import PlannedPe


@dataclass(frozen=True)
class Owner:
    """The job that an object belongs to, and the generation of its graph that writes it."""

    namespace: str
    name: str
    uid: str
    generation_id: int

    def reference(self) -> dict[str, Any]:
        """Return the owner reference."""
        return owner_reference("Job", self.name, self.uid)

    def labels(self) -> dict[str, str]:
        """Return the labels of everything that belongs to the job."""
        return {names.LABEL_JOB: self.name, names.LABEL_GENERATION: str(self.generation_id)}


def owner_reference(kind: str, name: str, uid: str) -> dict[str, Any]:
    """Return the reference to an object of ours that controls another."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def pe_labels(pe: PlannedPe) -> dict[str, str]:
    """Return the labels that say which PE of the job it is."""
    labels = {names.LABEL_PE: pe.name, names.LABEL_STAGE_NAME: pe.stage_name}
    if pe.region is not None:
        labels[names.LABEL_REGION] = pe.region
        labels[names.LABEL_CHANNEL] = str(pe.channel)
        labels[names.LABEL_STAGE] = str(pe.stage)
    return labels


def metadata(
    owner: Owner, name: str, labels: dict[str, str], content_id: str | None = None
) -> dict[str, Any]:
    """Return the metadata of an object of the job."""
    result: dict[str, Any] = {
        "name": name,
        "namespace": owner.namespace,
        "labels": owner.labels() | labels,
        "ownerReferences": [owner.reference()],
    }
    if content_id is not None:
        result["annotations"] = {names.ANNOTATION_CONTENT: content_id}
    return result


def digest(content: Any) -> str:
    """Return the sha256 (hex) of a JSON value, independent of the order of keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
