"""Operator port labels: the first of two levels of name resolution (design of PEs).

The operator stores in the job's ConfigMap which PE, which of its ports and so which topic the input
of an operator is. A label stays the same as long as the application has the operator; what it leads
to changes with fusion and widths. The second level is the PE's Service: `names.pe_host`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PortLabel:
    """Where an operator's input port is: PE, PE port, and the topic that feeds it."""

    pe: int
    port: int
    topic: str

    def to_wire(self) -> dict[str, int | str]:
        """Return the JSON form."""
        return {"pe": self.pe, "port": self.port, "topic": self.topic}


def label(operator: str, channel: int | None, port: int) -> str:
    """Return the label of an input port; `channel` is None outside of regions."""
    replica = "" if channel is None else f"[{channel}]"
    return f"{operator}{replica}.{port}"


def operator_of(label: str) -> str:
    """Return the name of the operator that a label is of."""
    return label.rpartition(".")[0].partition("[")[0]


def document(labels: Mapping[str, PortLabel]) -> str:
    """Return the labels as the job's ConfigMap holds them."""
    wire = {name: place.to_wire() for name, place in labels.items()}
    return json.dumps(wire, indent=1, sort_keys=True)


def parse(document: str) -> dict[str, PortLabel]:
    """Return the labels of a job's ConfigMap."""
    return {name: PortLabel(**place) for name, place in json.loads(document).items()}
