"""How many task slots Spark's real-time mode needs: the operator gives them, the PE checks them."""

from collections.abc import Sequence


def slots_needed(shards: int | None, partitions: Sequence[int], scans: int) -> int:
    """Return the task slots of a PE in real-time mode, where each partition of a scan keeps one.

    `shards`: key groups of its region, all of which it may come to hold; None outside of regions.
    `partitions`: of each input that is read whole. `scans`: of one query's plan, more than inputs
    if rows of one input go several ways.
    """
    if shards is not None:
        return shards * scans
    return sum(partitions) + max(partitions, default=0) * (scans - len(partitions))
