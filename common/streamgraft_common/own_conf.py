"""Settings of Spark that an application or a Job may have. Some are our own, and some are refused,
as they do nothing in a driver that is started as ours is. Pure."""

from collections.abc import Iterator, Mapping

OWN_PREFIX = "spark.streamgraft."
"""Beginning of settings that are none of Spark's: running drivers can change them."""
MAX_OFFSETS = f"{OWN_PREFIX}maxOffsetsPerTrigger"
"""Most records of an input that one batch takes, so that a batch (and with it the wait for a batch
boundary) stays short behind a backlog."""
DEFAULT_MAX_OFFSETS = 20000

_HEAP = "use heapMb and resources of the Job's processingElement"
_OPTIONS = "use javaOptions of the Job's processingElement"
_JARS = "put jars into the image of the PEs, where STREAMGRAFT_JARS says"
_ALONE = (
    "leave it out: a driver runs its tasks itself, slots of the Job's processingElement at once"
)
_UNHEEDED = {
    "spark.master": _ALONE,
    "spark.submit.deployMode": _ALONE,
    "spark.cores.max": _ALONE,
    "spark.driver.cores": _ALONE,
    "spark.driver.memory": _HEAP,
    "spark.driver.memoryOverhead": _HEAP,
    "spark.driver.extraJavaOptions": _OPTIONS,
    "spark.driver.defaultJavaOptions": _OPTIONS,
    "spark.driver.extraClassPath": _JARS,
    "spark.jars": _JARS,
    "spark.executor.cores": _ALONE,
    "spark.executor.instances": _ALONE,
    "spark.executor.memory": _HEAP,
    "spark.executor.memoryOverhead": _HEAP,
    "spark.executor.extraJavaOptions": _OPTIONS,
    "spark.executor.defaultJavaOptions": _OPTIONS,
    "spark.executor.extraClassPath": _JARS,
}
"""What only spark-submit and executors read, neither of which there is, and what our launcher says
itself. Other settings of executors hold in a driver, such as spark.executor.heartbeatInterval."""
_OF_SUBMIT = "spark.jars."


def conf_errors(conf: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each setting that has no effect or no use, and what to do."""
    for name, value in sorted(conf.items()):
        if remedy := _JARS if name.startswith(_OF_SUBMIT) else _UNHEEDED.get(name):
            yield name, remedy
        elif name.startswith(OWN_PREFIX) and name != MAX_OFFSETS:
            yield name, f"there is no such setting: {OWN_PREFIX} has maxOffsetsPerTrigger only"
        elif name == MAX_OFFSETS and not (value.isdecimal() and int(value)):
            yield name, "use a whole number above 0"
