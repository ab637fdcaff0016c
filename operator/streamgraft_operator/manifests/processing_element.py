"""The ProcessingElement resource of a planned PE."""

from collections.abc import Iterable
from typing import Any

from streamgraft_common.resources import PROCESSING_ELEMENT, ProcessingElementSpec
from streamgraft_operator.graph import PlannedPe
from streamgraft_operator.manifests.metadata import Owner, metadata, pe_labels


def processing_element(
    owner: Owner, pe: PlannedPe, content_id: str, shards: Iterable[int], epoch: int
) -> dict[str, Any]:
    """Return the resource. `shards` and `epoch` are those it starts with."""
    spec = ProcessingElementSpec(
        job=owner.name,
        pe_id=pe.pe_id,
        stage_name=pe.stage_name,
        region=pe.region,
        channel=pe.channel,
        stage=pe.stage,
        shards=sorted(shards),
        epoch=epoch,
    )
    manifest = PROCESSING_ELEMENT.manifest(pe.name, owner.namespace, spec)
    return {**manifest, "metadata": metadata(owner, pe.name, pe_labels(pe), content_id)}
