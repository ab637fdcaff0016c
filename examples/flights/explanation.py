"""Why the demand signal asked for a width.

`region` is what the metrics adapter's REST tells of it, as `streamgraft explain region` shows it.
"""

from typing import Any


def why(region: dict[str, Any]) -> str | None:
    """Return the reasons behind a region's demand in a sentence: none while it has no value, and
    None while a width change is under way, whose reason is the last one."""
    signal = region["signals"]["demand"]
    if signal.get("value") is None:
        return None if signal.get("reason") == "Resizing" else ""
    inputs = signal["inputs"]
    stage = inputs["stages"][inputs["stage"]]
    load, needed = stage["load"], inputs["needed"]
    parts = [f"{load['input_rate']:,.0f} flights/s arrive, {stage['backlog']:,.0f} wait"]
    if capacity := load["capacity"]:
        parts.append(f"a busy channel does {capacity['true_rate']:,.0f} a second")
    parts.append(f"the load needs {needed} channel{'' if needed == 1 else 's'}")
    return "; ".join([*parts, *inputs["held"]])


def channel_rate(region: dict[str, Any]) -> float | None:
    """Return the flights/s that a busy channel does by the demand signal, None while it has no
    value or does not know."""
    signal = region["signals"]["demand"]
    if signal.get("value") is None:
        return None
    capacity = signal["inputs"]["stages"][signal["inputs"]["stage"]]["load"]["capacity"]
    return float(capacity["true_rate"]) if capacity else None
