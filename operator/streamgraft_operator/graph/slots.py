"""How many Spark task slots a PE gets: the threading model of its job."""

import math
from collections.abc import Iterable, Mapping, Sequence

from streamgraft_common.adl import Operator
from streamgraft_common.pe_metadata import InputPort, OutputPort, PeMetadata
from streamgraft_common.quantities import parse
from streamgraft_common.real_time import slots_needed
from streamgraft_common.resources import ProcessingElementSettings, Threading


def task_slots(
    threading: Threading,
    settings: ProcessingElementSettings,
    operators: list[Operator],
    inputs: int,
    least: int = 1,
) -> int:
    """Return the slots of a PE with these operators and so many input ports.

    A source that is a function needs a slot as an input port does. `least`: what the PE can't run
    with less of, where nobody has said a number.
    """
    cpus = _cpu_limit(settings)
    dedicated = max(1, inputs + sum(operator.kind == "source" for operator in operators))
    match threading.model:
        case "dedicated":
            return dedicated
        case "dynamic":
            most = threading.thread_count or 1
            return min(most, cpus or most) if threading.elastic else most
        case "automatic":
            return min(dedicated, cpus or dedicated)
        case "manual":
            return settings.slots or least


def real_time_slots(
    operators: Sequence[Operator],
    inputs: Sequence[InputPort],
    outputs: Sequence[OutputPort],
    shards: int | None,
    partitions: Mapping[str, int],
) -> int:
    """Return the least slots of a PE: more than one in real-time mode only.

    `shards`: of its region; None outside. `partitions`: of outside topics, as far as known.
    """
    if not any(operator.real_time for operator in operators):
        return 1
    counts = [port.partitions or partitions.get(port.topic, 1) for port in inputs]
    return max(1, slots_needed(shards, counts, _scans(operators, inputs, outputs)))


def counted_topics(pes: Iterable[PeMetadata]) -> set[str]:
    """Return the outside topics whose partitions decide about slots: read whole, in real time."""
    return {
        port.topic
        for pe in pes
        if pe.real_time and pe.region is None
        for port in pe.inputs
        if port.external
    }


def _scans(
    operators: Sequence[Operator], inputs: Sequence[InputPort], outputs: Sequence[OutputPort]
) -> int:
    """Return how many scans the one query of a PE has: rows that go several ways are read anew."""
    scans = {port.stream: 1 for port in inputs}
    origin = {port.stream: port.stream for port in inputs}
    for operator in operators:
        if operator.kind == "split":
            scans |= dict.fromkeys(operator.outputs, scans[operator.inputs[0]])
            origin |= dict.fromkeys(operator.outputs, origin[operator.inputs[0]])
        for stream in operator.outputs:
            scans.setdefault(stream, sum(scans[name] for name in operator.inputs))
            origin.setdefault(stream, stream)
    ends = {origin[port.stream]: scans[port.stream] for port in outputs}
    return sum(ends.values()) or len(inputs)


def _cpu_limit(settings: ProcessingElementSettings) -> int | None:
    """Return the CPU limit of a PE, rounded up; None without one."""
    limit = settings.resources.limits.get("cpu") if settings.resources else None
    return max(1, math.ceil(parse(limit))) if limit else None
