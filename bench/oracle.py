"""What is reachable at all: the best course of widths for someone who knows the load."""

from collections.abc import Sequence

import numpy as np

from streamgraft_autoscaler.replay import RegionModel

STEP_SECONDS = 300.0
"""Widths may change every five minutes."""


def least_pod_hours(
    rates: Sequence[float], seconds: float, model: RegionModel, share: float, changes: int
) -> float:
    """Return the least pod-hours with so many width changes, and no channel busier than `share`.

    `rates`: records/s every `seconds`. Dynamic programming over (changes so far, width); a change
    takes no time.
    """
    each = round(STEP_SECONDS / seconds)
    peaks = np.asarray(rates)[: len(rates) // each * each].reshape(-1, each).max(axis=1)
    useful = model.division.useful_widths(model.shards)
    widths = np.asarray(useful, dtype=float)
    full = np.asarray([[model.busy_share(w, rate) > share for w in useful] for rate in peaks])
    full[:, -1] = False
    costs = np.full((changes + 1, len(useful)), np.inf)
    costs[0] = np.where(full[0], np.inf, widths)
    for crowded in full[1:]:
        best = costs.min(axis=1)
        costs[1:] = np.minimum(costs[1:], best[:-1, None])
        costs = np.where(crowded, np.inf, costs + widths)
    return float(costs.min() * STEP_SECONDS / 3600)
