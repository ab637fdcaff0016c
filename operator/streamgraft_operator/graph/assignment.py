"""Which channel owns which shard: balanced by number and load, sticky and deterministic."""

from collections.abc import Mapping


def assign(
    shards: int, width: int, current: Mapping[int, int], loads: Mapping[int, float] | None = None
) -> dict[int, int]:
    """Return shard → channel (0 … width-1) for all shards 0 … shards-1.

    The numbers of shards differ by one at most, and no such assignment moves fewer shards. Within
    that, `loads` (any unit; shards without one count as average) decide which shards move, and
    where to. `current` may lack shards or name channels that are gone. Without channels no shard
    has one. Raises ValueError unless 0 <= width <= shards.

    Minimal because a shard stays exactly if its channel keeps it: channel c can keep at most
    min(load, ceiling), and only `shards % width` channels may keep a ceiling; giving the ceilings
    to the most loaded channels maximises what is kept, and everything not kept has to move.
    """
    if not 0 <= width <= shards:
        raise ValueError(f"width {width} is not within 0 to {shards}, the number of shards")
    if width == 0:
        return {}
    floor, ceilings = divmod(shards, width)
    owned: list[list[int]] = [[] for _ in range(width)]
    for shard in range(shards):
        if (channel := current.get(shard, -1)) in range(width):
            owned[channel].append(shard)
    by_load = sorted(range(width), key=lambda channel: (-len(owned[channel]), channel))
    room = {channel: floor + (rank < ceilings) for rank, channel in enumerate(by_load)}
    weight = _weights(shards, loads or {})
    fair = sum(weight.values()) / width
    kept = [_kept(owned[channel], room[channel], weight, fair) for channel in range(width)]
    result = {shard: channel for channel in range(width) for shard in kept[channel]}
    free = sorted(weight.keys() - result.keys(), key=lambda shard: (-weight[shard], shard))
    for shard in free:
        open_channels = [ch for ch in range(width) if len(kept[ch]) < room[ch]]
        lightest = min(open_channels, key=lambda ch: (sum(weight[s] for s in kept[ch]), ch))
        kept[lightest].append(shard)
        result[shard] = lightest
    return dict(sorted(result.items()))


def concerned(before: Mapping[int, int], after: Mapping[int, int]) -> frozenset[int]:
    """Return the shards of all channels that give or take some: those that move, and those that
    stay beside them. Both are assignments of shards to channels."""
    shards = before.keys() | after.keys()
    moved = [shard for shard in shards if before.get(shard) != after.get(shard)]
    channels = {owner[shard] for owner in (before, after) for shard in moved if shard in owner}
    return frozenset(shard for shard in shards if {before.get(shard), after.get(shard)} & channels)


def _weights(shards: int, loads: Mapping[int, float]) -> dict[int, float]:
    known = [loads[shard] for shard in range(shards) if shard in loads]
    average = sum(known) / len(known) if known else 0.0
    return {shard: loads.get(shard, average) for shard in range(shards)}


def _kept(owned: list[int], room: int, weight: Mapping[int, float], fair: float) -> list[int]:
    """Return the shards that a channel keeps: the rest is nearest to a fair share of the load."""
    kept = list(owned)
    while len(kept) > room:
        left = sum(weight[shard] for shard in kept)
        kept.remove(min(kept, key=lambda shard: (abs(left - weight[shard] - fair), -shard)))
    return kept
