"""What /metrics shows: the signals of all regions, what was learned, and what the process says.

The signals are written as text here, in turns: as objects of the client library those of five
thousand regions take a second, in which nothing else could be served.
"""

from prometheus_client import generate_latest

from streamgraft_autoscaler import NotReady
from streamgraft_metrics_adapter.provider import Provider
from streamgraft_metrics_adapter.turns import in_turns

_VALUES = "streamgraft_region_signal"
_TROUBLES = "streamgraft_region_signal_unavailable"


async def exposition(provider: Provider) -> bytes:
    """Return the text that Prometheus scrapes."""
    values = [
        f"# HELP {_VALUES} Signals as served, by region; absent while a signal has no value",
        f"# TYPE {_VALUES} gauge",
    ]
    troubles = [
        f"# HELP {_TROUBLES} 1 while a signal of a region has no value, with the reason",
        f"# TYPE {_TROUBLES} gauge",
    ]
    async for region in in_turns(provider.all_regions()):
        place = f'namespace="{region.namespace}",name="{region.name}"'
        for reading in provider.read_all(region):
            labels, result = f'{place},metric="{reading.metric}"', reading.result
            if isinstance(result, NotReady):
                troubles.append(f'{_TROUBLES}{{{labels},reason="{result.reason.value}"}} 1')
            else:
                values.append(f"{_VALUES}{{{labels}}} {result.value!r}")
    learned = [line async for line in in_turns(provider.learned())]
    return generate_latest() + "\n".join([*values, *troubles, *learned, ""]).encode()
