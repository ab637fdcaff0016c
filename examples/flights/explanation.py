"""Why the demand signal asked for a width, in a sentence."""

from typing import Any


def why(region: dict[str, Any]) -> str | None:
    """Return the reasons behind a region's demand, None while it has no value.

    `region`: what the metrics adapter's REST tells of it, as `streamgraft explain region` shows it.
    """
    signal = region["signals"]["demand"]
    if signal.get("value") is None:
        return None
    inputs = signal["inputs"]
    stage = inputs["stages"][inputs["stage"]]
    load = stage["load"]
    parts = [f"{load['input_rate']:,.0f} flights/s arrive, {stage['backlog']:,.0f} wait"]
    if capacity := load["capacity"]:
        parts.append(f"a busy channel does {capacity['true_rate']:,.0f} a second")
    parts.append(f"the load needs {inputs['needed']} channels")
    return "; ".join([*parts, *inputs["held"]])
