"""The application language: what an application's module calls to write its graph down.

Nothing is checked here beyond single values; `_checks` and `_analysis` look at the whole graph when
the bundle is built, so that all errors come out together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from streamgraft._arguments import (
    StreamLike,
    columns,
    is_positive,
    operator_name,
    stream_names,
    with_arguments,
)
from streamgraft._cluster_objects import ClusterObjects
from streamgraft._consistent_regions import ConsistentRegions
from streamgraft._encodings import Avro, Protobuf, declared
from streamgraft._errors import UnknownParameter
from streamgraft._graph import (
    Delivery,
    Graph,
    Malformed,
    OutputMode,
    RegionNode,
)
from streamgraft._kafka_options import sink_errors, source_errors
from streamgraft._location import caller
from streamgraft._shared_streams import SharedStreams
from streamgraft._streams import Parameter, Stream
from streamgraft_common.adl import (
    Autoscaling,
    Placement,
    SplitOutput,
)
from streamgraft_common.batches import Batch
from streamgraft_common.own_conf import conf_errors
from streamgraft_common.worker_values import given

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    SinkFunction = TypeVar("SinkFunction", bound=Callable[[DataFrame, Batch], None])

_TIME_PARSER = "spark.sql.legacy.timeParserPolicy"


class Application(SharedStreams, ConsistentRegions, ClusterObjects):
    """A streaming application: operators, the streams between them, and parallel regions.

    `trigger_seconds` is the micro-batch interval of its PEs and `spark_conf` their Spark settings;
    a Job's own settings win over both.
    """

    def __init__(
        self,
        name: str,
        *,
        trigger_seconds: float | None = None,
        spark_conf: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.trigger_seconds = trigger_seconds
        self.spark_conf = dict(spark_conf or {})
        super().__init__(Graph(name, caller()))
        self.parameters: dict[str, Parameter] = {}
        if trigger_seconds is not None and not is_positive(trigger_seconds):
            self._reject(f"trigger_seconds is {trigger_seconds!r}", "use a finite number above 0")
        for setting, value in self.spark_conf.items():
            if not isinstance(value, str):
                self._reject(f"spark_conf[{setting!r}] is {value!r}", "write the value as text")
            elif setting == _TIME_PARSER and value.upper() == "LEGACY":
                self._reject(
                    f"spark_conf[{setting!r}] is {value!r}, which can't write streams' timestamps",
                    "leave it out, or use CORRECTED",
                )
        texts = {name: value for name, value in self.spark_conf.items() if isinstance(value, str)}
        for setting, remedy in conf_errors(texts):
            self._reject(f"spark_conf[{setting!r}] is {texts[setting]!r}", remedy)

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """The Python functions of sources, operators and sinks, by operator name."""
        return {item.name: item.function for item in self.graph.operators if item.function}

    def bind(self, parameters: Mapping[str, str]) -> None:
        """Give the parameters their submission-time values; called before any function is.

        Raises UnknownParameter.
        """
        if unknown := sorted(set(parameters) - set(self.parameters)):
            raise UnknownParameter(
                self.graph.location,
                f"application {self.name!r} has no parameter {', '.join(unknown)}",
                f"it has {', '.join(sorted(self.parameters)) or 'none'}",
            )
        for name, value in parameters.items():
            self.parameters[name].value = value

    def parameter(self, name: str, *, default: str) -> Parameter:
        """Declare a submission-time value; read it as `.value` inside functions."""
        if name in self.parameters:
            self._reject(f"parameter {name!r} is declared twice", "give it another name")
        if not isinstance(default, str):
            self._reject(f"the default of {name!r} is {default!r}", "write it as text")
        parameter = Parameter(name, default)
        parameter.value = given(self.name).get(name, default)
        return self.parameters.setdefault(name, parameter)

    def kafka_source(
        self,
        name: str,
        *,
        topic: str,
        schema: str | StructType | None = None,
        format: Literal["json", "raw"] | Avro | Protobuf = "json",
        starting_offsets: Literal["earliest", "latest"] = "earliest",
        malformed: Malformed = "dead_letter",
        bootstrap_servers: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Stream:
        """Read a topic. json, Avro, Protobuf: values have the fields of `schema` (DDL);
        raw: the Kafka columns.

        A value that is no such object is `malformed`. dead_letter: the record goes to
        the job's topic for dead letters; skip: it is left out; fail: its query fails.
        """
        kafka = self._endpoint(
            topic=topic,
            **declared(format),
            starting_offsets=starting_offsets,
            malformed=malformed,
            bootstrap_servers=bootstrap_servers,
            options=dict(options or {}),
        )
        for problem, remedy in source_errors(name, kafka.options if kafka else {}):
            self._reject(problem, remedy)
        if (format == "raw") == (schema is not None):
            found = f"{declared(format)['format']} and {'a' if schema else 'no'} schema"
            self._reject(
                f"source {name!r} has format {found}",
                "all but raw need a schema, raw has the Kafka columns",
            )
        if format == "raw" and malformed != "dead_letter":
            self._reject(
                f"source {name!r} has format raw and malformed={malformed!r}",
                "leave it out: raw records are taken as they are",
            )
        return self._add(name, "kafka-source", outputs=(name,), kafka=kafka, schema=schema)

    @with_arguments
    def source(
        self,
        *,
        schema: str | StructType,
        placement: Placement | None = None,
        uid: str | None = None,
    ) -> Callable[[Callable[[SparkSession], DataFrame]], Stream]:
        """Declare a function that makes a streaming DataFrame of `schema` from the session.

        `uid`: the operator's name, and its stream's; None: the function's.
        """
        location = caller()

        def declare(function: Callable[[SparkSession], DataFrame]) -> Stream:
            name = uid or operator_name(function)
            return self._add(
                name,
                "source",
                location,
                placement,
                outputs=(name,),
                function=function,
                schema=schema,
            )

        return declare

    @with_arguments
    def operator(
        self,
        *,
        inputs: StreamLike | Sequence[StreamLike],
        output_mode: OutputMode = "append",
        real_time: bool = False,
        delivery: Delivery = "exactly_once",
        placement: Placement | None = None,
        restartable: bool = True,
        apart: bool = False,
        uid: str | None = None,
    ) -> Callable[[Callable[..., DataFrame]], Stream]:
        """Declare a function from the inputs' DataFrames, in their order, to one DataFrame.

        `output_mode` is Spark's: update for aggregates without a watermark. `real_time` asks for
        Spark's real-time mode, which takes neither state nor Python in the function's plan; there
        `delivery` at_least_once has each record sent at once, and again after a crash.
        `placement` says on which nodes it runs. A PE with an operator that is not `restartable`
        stays down after a failure, unless its settings say otherwise.
        Without state and Python, one that alone reads what a region makes runs in its channels;
        `apart` keeps it in a PE of its own.
        `uid` is the operator's name, and its stream's; None: the function's. State and positions
        belong to it: with the old name as its uid a function can be renamed.
        """
        location, names = caller(), stream_names(inputs)
        if delivery != "exactly_once" and not real_time:
            self._reject(
                f"an operator has delivery={delivery!r}, and no real_time=True",
                "leave it out: only Kafka sinks and operators in real time have a delivery",
            )

        def declare(function: Callable[..., DataFrame]) -> Stream:
            name = uid or operator_name(function)
            return self._add(
                name,
                "function",
                location,
                placement,
                inputs=names,
                outputs=(name,),
                function=function,
                output_mode=output_mode,
                restartable=restartable,
                real_time=real_time,
                delivery=delivery,
                apart=apart,
            )

        return declare

    def split(
        self, name: str, *, input: StreamLike, outputs: Mapping[str, str]
    ) -> tuple[Stream, ...]:
        """Make one stream per SQL condition, of the rows for which it is true.

        A row goes to every output whose condition it meets. Returns the streams in order.
        """
        if not isinstance(outputs, Mapping):
            raise TypeError(
                f"outputs is {outputs!r}: give each stream its condition, as in"
                " outputs={'late': 'delay > 60'}"
            )
        self._add(
            name,
            "split",
            inputs=stream_names(input),
            outputs=tuple(outputs),
            split=tuple(
                SplitOutput.model_construct(stream=stream, condition=condition)
                for stream, condition in outputs.items()
            ),
        )
        return tuple(Stream(stream) for stream in outputs)

    @with_arguments
    def sink(
        self, *, inputs: StreamLike, placement: Placement | None = None, uid: str | None = None
    ) -> Callable[[SinkFunction], SinkFunction]:
        """Declare a function that takes each micro-batch's rows and its number (foreachBatch).

        After a failure it may get the last batch again, with the same number; `write_once` has a
        database leave it out then. `uid`: the operator's name; None: the function's.
        """
        location, names = caller(), stream_names(inputs)

        def declare(function: SinkFunction) -> SinkFunction:
            name = uid or operator_name(function)
            self._add(name, "sink", location, placement, inputs=names, function=function)
            return function

        return declare

    def kafka_sink(
        self,
        name: str,
        *,
        input: StreamLike,
        topic: str,
        key: str | Sequence[str] = (),
        partitions: int = 1,
        format: Literal["json", "raw"] | Avro | Protobuf = "json",
        delivery: Delivery = "exactly_once",
        bootstrap_servers: str | None = None,
        options: Mapping[str, str] | None = None,
        apart: bool = False,
    ) -> None:
        """Write a topic. A missing one is created with `partitions`; `key` makes the record key.

        Avro, Protobuf: the columns are fields of the schema.
        raw: the stream has a `value` column, and `key` and `headers` if wanted.
        at_least_once: without transactions; a crash may write the last batch's records again.
        What a region makes is written by its channels; `apart` has a PE behind them do it.
        """
        kafka = self._endpoint(
            topic=topic,
            key=list(columns(key)),
            partitions=partitions,
            **declared(format),
            delivery=delivery,
            bootstrap_servers=bootstrap_servers,
            options=dict(options or {}),
        )
        exactly_once = delivery == "exactly_once"
        for problem, remedy in sink_errors(
            name, kafka.options if kafka else {}, exactly_once=exactly_once
        ):
            self._reject(problem, remedy)
        self._add(name, "kafka-sink", inputs=stream_names(input), kafka=kafka, apart=apart)

    def parallel(
        self,
        name: str,
        *,
        key: str | Sequence[str],
        max_width: int,
        width: int = 1,
        autoscaling: Autoscaling | None = None,
        placement: Placement | None = None,
    ) -> AbstractContextManager[None]:
        """Open a region: operators written inside run in `width` channels, rows spread by `key`.

        `max_width` is the number of key groups, so also the largest width, for the job's life.
        `placement` holds for the PEs of all channels, as far as their operators ask for no other.
        """
        for what, value in (("width", width), ("max_width", max_width)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{what} is {value!r}: use a whole number")
        if not isinstance(autoscaling, Autoscaling | None):
            raise TypeError(f"autoscaling is {autoscaling!r}: use sg.Autoscaling(...)")
        region = RegionNode(
            name,
            columns(key),
            width,
            max_width,
            autoscaling,
            caller(),
            self._region,
            placement or Placement(),
        )
        self.graph.regions.append(region)
        return self._opened(name)
