"""How far apart the triggers of micro-batches may get, by what batches cost. Pure.

PEs go by it (docs/use/batch-cost.md), and `streamgraft plan` tells it.
"""

SHARE = 0.5
"""Share of a core's time that batches may take, and of the slots that many queries may take."""
LONGEST = 4.0
"""Many queries have this many times the user's trigger at most."""
SHARD_SECONDS = 0.01
"""For each further shard of a query whose state is kept apart."""
_BATCH_SECONDS = {False: 0.1, True: 0.2}
"""What a batch with few rows takes, by whether it has state (bench/batch_cost.py)."""


def assumed_batch(shards: int, *, stateful: bool) -> float:
    """Return what a batch of a query over so many shards is assumed to take, in seconds."""
    return _BATCH_SECONDS[stateful] + stateful * (shards - 1) * SHARD_SECONDS


def longest_interval(
    trigger_seconds: float, queries: int, slots: int, batch_seconds: float
) -> float:
    """Return how far apart a PE's triggers are at most: one query's as the user says, those of many
    queries farther if their batches, which last so long, would fill the slots."""
    if queries == 1:
        return trigger_seconds
    fixed = queries * batch_seconds / (slots * SHARE)
    return min(max(trigger_seconds, fixed), LONGEST * trigger_seconds)
