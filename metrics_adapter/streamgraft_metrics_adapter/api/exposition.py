"""What /metrics shows: the signals of all regions, what was learned, and what the process says.

The signals are written as text here, in time slices: as objects of the client library those of five
thousand regions take a second, in which nothing else could be served.
"""

from prometheus_client import generate_latest

from streamgraft_autoscaler import NotReady
from streamgraft_metrics_adapter.prometheus.text import labels
from streamgraft_metrics_adapter.signals.provider import Provider
from streamgraft_metrics_adapter.time_slices import in_slices

_VALUES = "streamgraft_region_signal"
_UNAVAILABLE = "streamgraft_region_signal_unavailable"


async def text(provider: Provider) -> bytes:
    """Return the text that Prometheus scrapes."""
    values = [
        f"# HELP {_VALUES} Signals as served, by region; absent while a signal has no value",
        f"# TYPE {_VALUES} gauge",
    ]
    unavailable = [
        f"# HELP {_UNAVAILABLE} 1 while a signal of a region has no value, with the reason",
        f"# TYPE {_UNAVAILABLE} gauge",
    ]
    async for region in in_slices(provider.all_regions()):
        place = labels(namespace=region.namespace, name=region.name)
        for reading in provider.read_all(region):
            signal, result = f"{place},{labels(metric=reading.metric)}", reading.result
            if isinstance(result, NotReady):
                reason = labels(reason=result.reason.value)
                unavailable.append(f"{_UNAVAILABLE}{{{signal},{reason}}} 1")
            else:
                values.append(f"{_VALUES}{{{signal}}} {result.value!r}")
    learned = [line async for line in in_slices(provider.learned())]
    return generate_latest() + "\n".join([*values, *unavailable, *learned, ""]).encode()
