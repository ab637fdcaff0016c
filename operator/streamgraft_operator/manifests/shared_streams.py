"""The Import and Export resources of a job's operators."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamgraft_common import names
from streamgraft_common.adl import Adl, Operator
from streamgraft_common.pe_metadata import InputPort, OutputPort
from streamgraft_common.resources import EXPORT, IMPORT, ExportSpec, ImportSpec
from streamgraft_common.resources.base import CustomKind
from streamgraft_operator.graph import Topology
from streamgraft_operator.manifests.metadata import Owner, digest, metadata

DECLARED = ("name", "properties", "allowFilter", "namespaces", "subscription", "filter", "fromJob")
"""Fields that users may edit."""


@dataclass(frozen=True)
class SharedStream:
    """One resource that should exist. Its content id is of what the application declares."""

    kind: CustomKind
    manifest: dict[str, Any]


def shared_streams(owner: Owner, adl: Adl, topology: Topology) -> list[SharedStream]:
    """Return the Imports and Exports of a topology."""
    return list(_all(owner, adl, topology))


def _all(owner: Owner, adl: Adl, topology: Topology) -> Iterator[SharedStream]:
    operators = {operator.name: operator for operator in adl.operators}
    schemas = {item.name: json.dumps(item.stream_schema, sort_keys=True) for item in adl.streams}
    for pe in topology.stages:
        for port in pe.metadata.outputs:
            operator = operators[port.operator]
            if operator.kind == "export":
                yield _made(owner, EXPORT, operator, _export(owner, operator, port, schemas))
        for entry in pe.metadata.inputs:
            if entry.imported:
                operator = operators[entry.operator]
                yield _made(owner, IMPORT, operator, _import(owner, operator, entry, schemas))


def _export(
    owner: Owner, operator: Operator, port: OutputPort, schemas: dict[str, str]
) -> ExportSpec:
    assert operator.exported is not None
    return ExportSpec(
        job=owner.name,
        operator=operator.name,
        stream=port.stream,
        **operator.exported.model_dump(exclude={"partitions"}),
        topic=port.topic,
        bootstrap_servers=port.bootstrap_servers,
        tls=port.tls,
        schema=schemas[port.stream],
    )


def _import(
    owner: Owner, operator: Operator, port: InputPort, schemas: dict[str, str]
) -> ImportSpec:
    assert operator.imported is not None
    return ImportSpec(
        job=owner.name,
        operator=operator.name,
        **operator.imported.model_dump(exclude={"starting_offsets"}),
        bootstrap_servers=port.bootstrap_servers,
        tls=port.tls,
        schema=schemas[port.stream],
    )


def _made(
    owner: Owner, kind: CustomKind, operator: Operator, spec: ExportSpec | ImportSpec
) -> SharedStream:
    wire = spec.to_wire()
    declared = digest({field: wire.get(field) for field in DECLARED})
    manifest = kind.manifest("", owner.namespace, wire)
    name = names.shared_stream(owner.name, operator.name)
    return SharedStream(kind, {**manifest, "metadata": metadata(owner, name, {}, declared)})
