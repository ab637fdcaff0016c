"""Which options of Spark's Kafka source and sink an application may set: all but those that say
again, and otherwise, what arguments say, or that a stream does not survive."""

from collections.abc import Iterator, Mapping

_BROKERS = "kafka.bootstrap.servers"
_ONE_TOPIC = "use topic=: a source reads one"
_NO_END = "leave it out: a stream has no end"
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
}
_OF_SINKS = {
    _BROKERS: "use bootstrap_servers=",
    "topic": "use topic=",
    "kafka.transactional.id": "leave it out: each shard has one of its own",
}
_DIVIDING = ("minpartitions", "maxrecordsperpartition")
"""Options with which a partition is read by several tasks."""
_LIMIT = "maxoffsetspertrigger"


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


def sink_errors(name: str, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the options of a sink, and what to do."""
    for option in sorted(options):
        if remedy := _OF_SINKS.get(option.lower()):
            yield f"sink {name!r} has the option {option}", remedy
        elif not option.lower().startswith("kafka."):
            yield (
                f"sink {name!r} has the option {option}",
                "sinks take settings of Kafka's producer, as kafka.NAME",
            )
