"""Our own settings among those of Spark, which an application or a Job may have. Pure."""

from collections.abc import Iterator, Mapping

OWN_PREFIX = "spark.streamgraft."
"""Beginning of settings that are none of Spark's: running drivers can change them."""
MAX_OFFSETS = f"{OWN_PREFIX}maxOffsetsPerTrigger"
"""Most records of an input that one batch takes, so that a batch (and with it the wait for a batch
boundary) stays short behind a backlog."""
DEFAULT_MAX_OFFSETS = 20000


def conf_errors(conf: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each setting of ours that has no effect or no use, and what to do."""
    for name, value in sorted(conf.items()):
        if name.startswith(OWN_PREFIX) and name != MAX_OFFSETS:
            yield name, f"there is no such setting: {OWN_PREFIX} has maxOffsetsPerTrigger only"
        elif name == MAX_OFFSETS and not (value.isdecimal() and int(value)):
            yield name, "use a whole number above 0"
