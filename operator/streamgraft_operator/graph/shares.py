"""Resources of a job, divided among its PEs. Pure."""

import math

from streamgraft_common.quantities import parse
from streamgraft_common.resources.base import Resources

_DIVISIBLE = ("memory", "ephemeral-storage")


def divided(resources: Resources, count: int) -> Resources:
    """Return the share of each of `count` PEs.

    CPU in whole millicores and memory in whole bytes, rounded down. Anything else comes in whole
    pieces (devices), rounded up: a PE without its device would not do.
    """
    return Resources(
        requests={name: _share(name, text, count) for name, text in resources.requests.items()},
        limits={name: _share(name, text, count) for name, text in resources.limits.items()},
    )


def _share(name: str, quantity: str, count: int) -> str:
    share = parse(quantity) / count
    if name == "cpu":
        return f"{max(1, math.floor(share * 1000))}m"
    if name in _DIVISIBLE:
        return str(max(1, math.floor(share)))
    return str(math.ceil(share))
