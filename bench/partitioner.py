"""Kafka's default partitioner: which key group a record key belongs to."""


def murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 hash as Kafka's clients compute it (seed 0x9747b28c)."""
    mask, multiplier = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(data)
    whole = len(data) - len(data) % 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        value = value * multiplier & mask ^ word
    if tail := data[whole:]:
        value = (value ^ int.from_bytes(tail, "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15


def key_group(key: bytes, groups: int) -> int:
    """Return the partition of a key among `groups`."""
    return (murmur2(key) & 0x7FFFFFFF) % groups
