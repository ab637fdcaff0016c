"""The ProcessingElement resource of a planned PE."""

from collections.abc import Iterable
from typing import Any

from streamgraft_common.resources import PROCESSING_ELEMENT, JobSpec, ProcessingElementSpec
from streamgraft_operator.graph import PlannedPe
from streamgraft_operator.manifests.metadata import Owner, metadata, pe_labels


def from_job(spec: JobSpec, pe: PlannedPe) -> dict[str, Any]:
    """Return the fields of a PE's spec that follow the job, whatever its pod holds."""
    return {
        "bundleDigest": pe.metadata.bundle_digest,
        "slots": pe.metadata.slots,
        "sparkConf": pe.metadata.spark_conf,
        "restartable": pe.restartable,
        "importOperators": [port.operator for port in pe.metadata.inputs if port.imported],
        "placement": pe.placement.model_dump(by_alias=True, exclude_defaults=True, mode="json"),
        "inherited": spec.processing_element.for_pods().to_wire(),
    }


def processing_element(
    owner: Owner,
    spec: JobSpec,
    pe: PlannedPe,
    content_id: str,
    shards: Iterable[int],
    epoch: int,
) -> dict[str, Any]:
    """Return the resource. `spec` is that of an expansion; the rest is what the PE starts with."""
    place = ProcessingElementSpec(
        job=owner.name,
        pe_id=pe.pe_id,
        stage_name=pe.stage_name,
        region=pe.region,
        channel=pe.channel,
        stage=pe.stage,
        shards=sorted(shards),
        epoch=epoch,
    )
    wire = {**place.to_wire(), **from_job(spec, pe)}
    manifest = PROCESSING_ELEMENT.manifest(pe.name, owner.namespace, wire)
    return {**manifest, "metadata": metadata(owner, pe.name, pe_labels(pe), content_id)}
