"""Which options of Spark's Kafka source and sink an application may set: all but those that say
again, and otherwise, what arguments say, that Spark or Kafka's clients refuse, or that a stream
does not survive."""

from collections.abc import Iterator, Mapping

from streamgraft._errors import ApplicationError, InvalidArgument
from streamgraft._graph import Graph

_BROKERS = "kafka.bootstrap.servers"
_ONE_TOPIC = "use topic=: a source reads one"
_NO_END = "leave it out: a stream has no end"
_BYTES = 'leave it out: Spark reads and writes bytes; format="raw" has them as they are'
_OF_SOURCES = {
    _BROKERS: "use bootstrap_servers=",
    "subscribe": _ONE_TOPIC,
    "subscribepattern": _ONE_TOPIC,
    "assign": _ONE_TOPIC,
    "startingoffsets": "use starting_offsets=, or startingTimestamp to begin at a time",
    "endingoffsets": _NO_END,
    "endingoffsetsbytimestamp": _NO_END,
    "endingtimestamp": _NO_END,
    "includeheaders": 'leave it out: a source with format="raw" has the headers',
    "kafka.auto.offset.reset": "use starting_offsets=",
    "kafka.enable.auto.commit": "leave it out: positions are in the checkpoint",
    "kafka.interceptor.classes": "leave it out: Spark's source takes no interceptors",
    "kafka.key.deserializer": _BYTES,
    "kafka.value.deserializer": _BYTES,
}
_OF_SINKS = {
    _BROKERS: "use bootstrap_servers=",
    "topic": "use topic=",
    "kafka.transactional.id": "leave it out: each shard has one of its own",
    "kafka.key.serializer": _BYTES,
    "kafka.value.serializer": _BYTES,
}
_MOST_IN_FLIGHT = 5
"""With idempotence, brokers keep the numbers of so many requests."""
_DIVIDING = ("minpartitions", "maxrecordsperpartition")
"""Options with which a partition is read by several tasks."""
_LIMIT = "maxoffsetspertrigger"
_OF_BATCHES = (_LIMIT, "minoffsetspertrigger", "maxtriggerdelay")
"""Options that Spark's real-time mode refuses."""


def source_errors(name: str, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the options of a source, and what to do. They are as for Spark: in
    upper or lower case."""
    for option, value in sorted(options.items()):
        if remedy := _OF_SOURCES.get(option.lower()):
            yield f"source {name!r} has the option {option}", remedy
        elif option.lower() in _DIVIDING:
            yield (
                f"source {name!r} has the option {option}: several tasks would read parts of"
                " one partition, and records of a key lose their order",
                "leave it out; spark.streamgraft.maxOffsetsPerTrigger bounds a batch, and a region"
                " spreads its work",
            )
        elif option.lower() == _LIMIT and not (value.isdecimal() and int(value)):
            yield f"source {name!r} has {option}={value!r}", "use a whole number above 0"


def real_time_errors(graph: Graph) -> Iterator[ApplicationError]:
    """Yield the sources with options of batches that are read in real time alone: they are in the
    PE of whoever does, unless that is in a region."""
    for source in graph.operators:
        if source.kind != "kafka-source" or source.kafka is None:
            continue
        readers = [item for item in graph.operators if {*item.inputs} & {*source.outputs}]
        if not readers or not all(item.real_time and not item.region for item in readers):
            continue
        for option in sorted(source.kafka.options):
            if option.lower() in _OF_BATCHES:
                yield InvalidArgument(
                    source.location,
                    f"source {source.name!r} has the option {option}, and {readers[0].name!r} reads"
                    " it in real time, which has no batches to bound",
                    "leave it out, or real_time=True",
                )


def sink_errors(
    name: str, options: Mapping[str, str], *, exactly_once: bool
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the options of a sink, and what to do."""
    for option, value in sorted(options.items()):
        if remedy := _OF_SINKS.get(option.lower()):
            yield f"sink {name!r} has the option {option}", remedy
        elif not option.lower().startswith("kafka."):
            yield (
                f"sink {name!r} has the option {option}",
                "sinks take settings of Kafka's producer, as kafka.NAME",
            )
        elif exactly_once and _rules_out_transactions(option.lower(), value):
            yield (
                f"sink {name!r} has {option}={value!r}, and writes with transactions, for which"
                " Kafka's producer does not take it",
                "leave it out, or use delivery='at_least_once'",
            )


def _rules_out_transactions(option: str, value: str) -> bool:
    """Return whether a producer with a transactional id refuses to start, or has it otherwise."""
    match option:
        case "kafka.acks":
            return value not in ("all", "-1")
        case "kafka.retries":
            return value == "0"
        case "kafka.enable.idempotence":
            return value.lower() == "false"
        case "kafka.max.in.flight.requests.per.connection":
            return value.isdecimal() and int(value) > _MOST_IN_FLIGHT
    return False
