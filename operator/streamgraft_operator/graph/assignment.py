"""Which channel owns which shard: balanced, sticky and deterministic."""

from collections.abc import Mapping


def assign(shards: int, width: int, current: Mapping[int, int]) -> dict[int, int]:
    """Return shard → channel (0 … width-1) for all shards 0 … shards-1.

    Loads differ by one at most, and no balanced assignment moves fewer shards. `current` may lack
    shards or name channels that are gone. Raises ValueError unless 1 <= width <= shards.

    Minimal because a shard stays exactly if its channel keeps it: channel c can keep at most
    min(load, ceiling), and only `shards % width` channels may keep a ceiling; giving the ceilings
    to the most loaded channels maximises what is kept, and everything not kept has to move.
    """
    if not 1 <= width <= shards:
        raise ValueError(f"width {width} is not within 1 to {shards}, the number of shards")
    floor, ceilings = divmod(shards, width)
    owned: list[list[int]] = [[] for _ in range(width)]
    for shard in range(shards):
        if (channel := current.get(shard, -1)) in range(width):
            owned[channel].append(shard)
    by_load = sorted(range(width), key=lambda channel: (-len(owned[channel]), channel))
    room = {channel: floor + (rank < ceilings) for rank, channel in enumerate(by_load)}
    result = {shard: ch for ch, kept in enumerate(owned) for shard in kept[: room[ch]]}
    free = [shard for shard in range(shards) if shard not in result]
    for channel in range(width):
        missing = room[channel] - min(room[channel], len(owned[channel]))
        result |= dict.fromkeys(free[:missing], channel)
        free = free[missing:]
    return dict(sorted(result.items()))
