"""How many Spark task slots a PE gets: the threading model of its job."""

import math

from streamgraft_common.adl import Operator
from streamgraft_common.resources import ProcessingElementSettings, Threading
from streamgraft_operator.graph.quantities import parse


def task_slots(
    threading: Threading,
    settings: ProcessingElementSettings,
    operators: list[Operator],
    inputs: int,
) -> int:
    """Return the slots of a PE with these operators and so many input ports.

    A source that is a function needs a slot as an input port does.
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
            return settings.slots or 1


def _cpu_limit(settings: ProcessingElementSettings) -> int | None:
    """Return the CPU limit of a PE, rounded up; None without one."""
    limit = settings.resources.limits.get("cpu") if settings.resources else None
    return max(1, math.ceil(parse(limit))) if limit else None
