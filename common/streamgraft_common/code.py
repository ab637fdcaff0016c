"""Which code a PE runs: a hash that only what its own operators are and use changes. Pure.

Operator, command line and pods compute it, each from the bundle that it has: so a pod knows whether
that is the code that its PE is to run.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence, Set
from typing import Any

from streamgraft_common.adl import Adl, Operator
from streamgraft_common.pe_metadata import PeMetadata

_CODED = ("source", "function", "sink")
"""Kinds of operators that are functions of the application."""
_PLANNED = ("function", "split")
"""Kinds whose streams have the columns that functions give them."""
_DECLARED = ("name", "kind", "inputs", "outputs", "function", "code", "split", "output_mode")
"""Of an operator: what the application says, and its plan goes by."""
_LENGTH = 16
"""Hexadecimal digits: enough to tell the few versions of one PE apart."""
_NOT_THE_DRIVERS = {"location", "placement", "restartable", "fusion_group", "parameters"}
"""Of an operator: where it was written, and what only the control plane goes by."""


def code_of(adl: Adl, bundle_digest: str, operators: Iterable[str]) -> str:
    """Return the hash of the code of operators, and of what the description says of them.

    A bundle that does not tell operators' code apart (an older one) is one piece. Raises KeyError.
    """
    wanted = sorted(set(operators))
    by_name = {operator.name: operator for operator in adl.operators}
    chosen = [by_name[name] for name in wanted]
    streams = {name for item in chosen for name in (*item.inputs, *item.outputs)}
    return _hash(adl, [_described(item, bundle_digest) for item in chosen], streams)


def code_of_pe(adl: Adl, bundle_digest: str, pe: PeMetadata) -> str:
    """Return the hash of the code of a PE's operators, and of those that its ports belong to.

    Raises KeyError if the application has not all of them.
    """
    inputs, outputs = [[port.operator for port in side] for side in (pe.inputs, pe.outputs)]
    return code_of(adl, bundle_digest, (*pe.operators, *inputs, *outputs))


def plan_code(adl: Adl, bundle_digest: str, operators: Iterable[str]) -> str:
    """Return the hash of what the plan of operators is made from, submission-time values apart.

    Nothing is in it that the build found out with the values that it had. Raises KeyError.
    """
    by_name = {operator.name: operator for operator in adl.operators}
    chosen = [by_name[name] for name in sorted(set(operators))]
    planned = {stream for item in chosen if item.kind in _PLANNED for stream in item.outputs}
    streams = {name for item in chosen for name in (*item.inputs, *item.outputs)} - planned
    described = [_described(item, bundle_digest) for item in chosen]
    return _hash(adl, [{name: item[name] for name in _DECLARED} for item in described], streams)


def _described(operator: Operator, bundle_digest: str) -> dict[str, Any]:
    found: dict[str, Any] = operator.model_dump(mode="json", exclude=_NOT_THE_DRIVERS)
    if operator.kind in _CODED and operator.code is None:
        found["code"] = bundle_digest
    # Pods of former releases know none of these.
    if operator.kafka and operator.kafka.required is None:
        del found["kafka"]["required"]
    if not operator.event_time:
        del found["event_time"]
    return found


def _hash(adl: Adl, operators: Sequence[dict[str, object]], streams: Set[str]) -> str:
    """Return the hash of operators as they are described, and of the schemas of streams."""
    document = {
        "application": [adl.module, adl.application],
        "operators": operators,
        "streams": {item.name: item.stream_schema for item in adl.streams if item.name in streams},
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]
