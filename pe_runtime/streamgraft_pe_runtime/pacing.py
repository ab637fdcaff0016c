"""How often the shards of a PE look for records: the trigger interval by load. Pure.

A micro-batch costs CPU whatever its size (docs/use/batch-cost.md has the figures). A PE that holds
many shards runs that many queries, or a query with a store of state for each, so in a narrow region
their fixed costs could fill its slots.
"""

_BATCH_SECONDS = {False: 0.1, True: 0.2}
"""CPU of a batch with few rows, by whether it has state (bench/batch_cost.py)."""
_SHARD_SECONDS = 0.01
"""CPU of each further shard of a query whose state is kept apart."""
_FIXED_SHARE = 0.5
"""Share of the PE's slots that fixed costs may take while no shard is behind."""
LONGEST = 4.0
"""The interval is stretched to this many times the user's trigger at most."""


def interval_seconds(
    trigger_seconds: float,
    *,
    queries: int,
    slots: int,
    stateful: bool,
    behind: bool,
    shards: int = 1,
) -> float:
    """Return the interval at which each query of a PE is to be triggered. `shards`: of a query.

    It lies between the user's trigger and four times that. A shard that is `behind`, with more
    waiting records than batches at the longer interval would take, has the user's trigger.
    """
    if behind:
        return trigger_seconds
    batch = _BATCH_SECONDS[stateful] + stateful * (shards - 1) * _SHARD_SECONDS
    affordable = queries * batch / (slots * _FIXED_SHARE)
    return min(max(trigger_seconds, affordable), LONGEST * trigger_seconds)


def is_behind(lag: int, batch_limit: int) -> bool:
    """Return whether a shard's waiting records would fill half a batch or more."""
    return 2 * lag >= batch_limit
