"""Analysis: run every operator's function once on empty streaming frames.

No query is ever started. Spark's analyzer finds the schemas and which operators keep state, and its
own UnsupportedOperationChecker says what a streaming query could not do.
"""

import logging
from collections.abc import Collection, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgraft import _plan_checks as plan_checks
from streamgraft._behind_regions import joined, placed, torn
from streamgraft._encoded_checks import encoded_column_errors
from streamgraft._errors import ApplicationError, PlanningFailed, SchemaMismatch
from streamgraft._fusion_groups import Fusion
from streamgraft._graph import SOURCES, Graph, Notice, OperatorNode, OutputMode
from streamgraft._location import innermost
from streamgraft._real_time import obstacle, read_twice
from streamgraft._schemas import KAFKA_COLUMNS, empty_stream, nullable, reason, written
from streamgraft._state_schemas import state_tables
from streamgraft._streams import Parameter, values_read
from streamgraft_common.adl import StateTable
from streamgraft_common.shared_streams import ExpressionError, to_sql
from streamgraft_common.shared_streams import parse as parse_expression

log = logging.getLogger(__name__)


@dataclass
class Analysis:
    """What the analysis found."""

    schemas: dict[str, StructType] = field(default_factory=dict)
    """Schema of each stream; a stream whose operator failed is missing, like those behind it."""
    required: dict[str, list[str]] = field(default_factory=dict)
    """Columns of sources that are NOT NULL, by operator; those without any are missing."""
    stateful: set[str] = field(default_factory=set)
    """Operators that keep state."""
    joint_state: set[str] = field(default_factory=set)
    """Those whose state several shards may keep in one query."""
    state: dict[str, list[StateTable]] = field(default_factory=dict)
    """What it consists of, by operator; one of which Spark could not say it is missing."""
    grouped_by: dict[str, list[list[str]]] = field(default_factory=dict)
    """By which columns operators of regions keep their states, but for joins."""
    parameters: dict[str, dict[str, str]] = field(default_factory=dict)
    """Submission-time values that operators' functions have read, by operator."""
    watermarked: set[str] = field(default_factory=set)
    """Operators that say how late records may be."""
    append_only: set[str] = field(default_factory=set)
    """Operators whose results would differ in output mode update."""
    groups: dict[str, int] = field(default_factory=dict)
    """Fusion group of each operator: those of different groups can't share a Spark plan."""
    regions: dict[str, str] = field(default_factory=dict)
    """Region of operators that are written behind it and run in its channels."""
    errors: list[ApplicationError] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)


def analyze(
    graph: Graph, spark: SparkSession, folder: Path, parameters: Collection[Parameter] = ()
) -> Analysis:
    """Analyze a graph that has passed the checks; errors point at lines of files below `folder`.

    `parameters`: the application's, of which those are noted that its functions read.
    """
    analyzer = _Analyzer(graph, spark, folder, parameters)
    analyzer.run()
    return analyzer.analysis


class _Analyzer:
    def __init__(
        self, graph: Graph, spark: SparkSession, folder: Path, parameters: Collection[Parameter]
    ) -> None:
        self.analysis = Analysis()
        self._graph = graph
        self._spark = spark
        self._folder = folder
        self._parameters = parameters

    def run(self) -> None:
        for operator in self._graph.upstream_first():
            if all(stream in self.analysis.schemas for stream in operator.inputs):
                try:
                    self._analyze_operator(operator)
                except ApplicationError as error:
                    self.analysis.errors.append(error)
        self.analysis.errors += plan_checks.key_errors(self._graph, self.analysis.schemas)
        self.analysis.errors += plan_checks.raw_errors(
            self._spark, self._graph, self.analysis.schemas
        )
        self.analysis.errors += encoded_column_errors(self._graph, self.analysis.schemas)
        if not self.analysis.errors:
            found = self.analysis
            self._place()
            found.notices = [
                *_update_notices(self._graph, found.stateful),
                *_repeat_notices(self._graph),
                *_grouping_notices(self._graph, found),
            ]

    def _place(self) -> None:
        """Find out what runs in which region, and what can share a plan."""
        found, staying = self.analysis, set(self.analysis.stateful)
        while True:
            found.regions = joined(self._graph, staying, self._takes)
            graph = placed(self._graph, found.regions)
            found.groups = Fusion(
                self._spark,
                graph,
                found.schemas,
                found.append_only,
                found.watermarked,
                found.stateful,
                self._call,
            ).groups()
            apart = torn(self._graph, found.regions, found.groups)
            if not apart:
                return
            staying |= apart

    def _takes(self, operator: OperatorNode) -> bool:
        """Return whether a function takes rows one by one, in the JVM.

        With a watermark it would take the region's shards apart, each into a query of its own.
        """
        assert operator.function is not None
        if operator.name in self.analysis.watermarked:
            return False
        schemas = [self.analysis.schemas[name] for name in operator.inputs]
        return obstacle(self._spark, operator.function, schemas) is None

    def _analyze_operator(self, operator: OperatorNode) -> None:
        frames = [
            empty_stream(self._spark, self.analysis.schemas[name]) for name in operator.inputs
        ]
        if operator.kind in SOURCES:
            self._set_schema(operator, operator.name, self._source_schema(operator))
            self._check_row_filter(operator)
        elif operator.kind == "function":
            with values_read(self._parameters) as self.analysis.parameters[operator.name]:
                result = self._call(operator, frames)
            if plan_checks.is_stateful(result):
                self.analysis.stateful.add(operator.name)
                self._note_state(operator, result)
                if operator.region:
                    found = plan_checks.grouped_by(result)
                    self.analysis.grouped_by[operator.name] = found
                if plan_checks.is_timeless(result):
                    self.analysis.joint_state.add(operator.name)
            if plan_checks.has_watermark(result):
                self.analysis.watermarked.add(operator.name)
            if operator.output_mode == "append" and plan_checks.depends_on_mode(result):
                self.analysis.append_only.add(operator.name)
            self._check_mode(operator, result, operator.output_mode)
            if operator.real_time:
                self._check_real_time(operator, result)
            self._set_schema(operator, operator.name, nullable(result.schema))
        elif operator.kind == "split":
            for output in operator.split:
                self._filter(operator, frames[0], output.condition)
                self._set_schema(operator, output.stream, self.analysis.schemas[operator.inputs[0]])

    def _note_state(self, operator: OperatorNode, result: DataFrame) -> None:
        try:
            self.analysis.state[operator.name] = state_tables(result, operator.output_mode)
        except (PySparkException, Py4JJavaError, OSError) as error:
            # Whether the query can run is checked elsewhere; an edit is then compared without.
            log.info("the state of %s can't be described: %s", operator.name, reason(error))

    def _set_schema(self, operator: OperatorNode, stream: str, schema: StructType) -> None:
        for error in plan_checks.column_errors(self._spark, operator, schema):
            raise error
        self.analysis.schemas[stream] = schema

    def _source_schema(self, operator: OperatorNode) -> StructType:
        try:
            text = KAFKA_COLUMNS if operator.schema is None else operator.schema
            schema = written(self._spark, text)
        except PySparkException as error:
            raise SchemaMismatch(
                operator.location,
                f"the schema of {operator.name!r} is not valid: {reason(error)}",
                "write it like a table's columns: 'carrier string, delay double'",
            ) from error
        if operator.kafka and (names := [item.name for item in schema if not item.nullable]):
            self.analysis.required[operator.name] = names
        return nullable(schema)

    def _check_row_filter(self, operator: OperatorNode) -> None:
        if operator.imported is None or operator.imported.filter is None:
            return
        text, schema = operator.imported.filter, self.analysis.schemas[operator.name]
        try:
            to_sql(parse_expression(text), schema.jsonValue())
        except ExpressionError as error:
            raise SchemaMismatch(
                operator.location,
                f"filter {text!r} of import {operator.name!r}, {error}",
                f"it has the columns {', '.join(schema.names)}",
            ) from error

    def _call(self, operator: OperatorNode, frames: list[DataFrame]) -> DataFrame:
        assert operator.function is not None
        try:
            result = operator.function(*frames)
        except (Exception, SystemExit) as error:
            raise PlanningFailed(
                innermost(error.__traceback__, self._folder) or operator.location,
                f"{operator.name!r} fails on an empty stream: {reason(error)}",
                "an operator only describes what to do with its frames; correct this line",
            ) from error
        if not isinstance(result, DataFrame):
            raise PlanningFailed(
                operator.location,
                f"{operator.name!r} returns a {type(result).__name__}",
                "return a DataFrame made from the input",
            )
        if not result.isStreaming:
            raise PlanningFailed(
                operator.location,
                f"{operator.name!r} returns a DataFrame that is not a stream",
                "return one that is made from the input",
            )
        if others := plan_checks.streams_of_its_own(result):
            raise PlanningFailed(
                operator.location,
                f"{operator.name!r} reads a stream that is none of its inputs"
                f" ({', '.join(others)}): nobody would watch it, and in a region each shard would"
                " read all of it, or other records than those of its keys",
                "declare it, with app.kafka_source or app.source, and give it to the operator as"
                " an input; spark.read reads a table",
            )
        return result

    def _filter(self, operator: OperatorNode, frame: DataFrame, condition: str) -> DataFrame:
        try:
            return frame.where(F.expr(condition))
        except PySparkException as error:
            raise SchemaMismatch(
                operator.location,
                f"condition {condition!r} of split {operator.name!r} is not valid for stream"
                f" {operator.inputs[0]!r}: {reason(error)}",
                f"it has the columns {', '.join(frame.columns)}",
            ) from error

    def _check_real_time(self, operator: OperatorNode, result: DataFrame) -> None:
        assert operator.function is not None
        if read_twice(result):
            raise PlanningFailed(
                operator.location,
                f"{operator.name!r} can't run in real time: it reads one of its inputs more than"
                " once",
                "leave out real_time=True, or give it that input once and make all rows of it, with"
                " explode for instance; two operators may read one stream in real time",
            )
        schemas = [self.analysis.schemas[name] for name in operator.inputs]
        stateful = operator.name in self.analysis.stateful
        if problem := "state" if stateful else obstacle(self._spark, operator.function, schemas):
            raise PlanningFailed(
                operator.location,
                f"{operator.name!r} can't run in real time: that mode does not take {problem}",
                "leave out real_time=True, or move that part into an operator of its own",
            )

    def _check_mode(self, operator: OperatorNode, frame: DataFrame, mode: OutputMode) -> None:
        if problem := plan_checks.unsupported(self._spark, frame, mode):
            remedy = "change the operator"
            if mode == "append" and not plan_checks.unsupported(self._spark, frame, "update"):
                remedy = "give it output_mode='update', or a watermark in this same operator"
            raise PlanningFailed(
                operator.location,
                f"Spark can't run {operator.name!r} in output mode {mode}: {problem}",
                remedy,
            )


def _update_notices(graph: Graph, stateful: Set[str]) -> Iterator[Notice]:
    """Yield the operators that keep state over a stream in which rows replace earlier ones."""
    producers, updating = graph.producers(), dict[str, str]()
    for operator in graph.upstream_first():
        sources = [producers[stream].name for stream in operator.inputs]
        origins = [updating[name] for name in sources if name in updating]
        if origins and operator.name in stateful:
            yield Notice(
                operator.location,
                f"{operator.name!r} keeps state over rows that {origins[0]!r} updates: it sees each"
                " update as a row of its own, and how many there are depends on the batches",
            )
        if operator.output_mode == "update" and operator.name in stateful:
            updating[operator.name] = operator.name
        elif origins:
            updating[operator.name] = origins[0]


def _repeat_notices(graph: Graph) -> Iterator[Notice]:
    """Yield the operators whose exports a crash may send again: other jobs don't drop repeats."""
    for operator in graph.operators:
        if not operator.real_time or operator.delivery != "at_least_once":
            continue
        exports = [
            f"export {item.name!r}"
            for item in graph.operators
            if item.kind == "export" and not {*item.inputs}.isdisjoint(operator.outputs)
        ]
        if exports:
            yield Notice(
                operator.location,
                f"{operator.name!r} has delivery at_least_once: after a crash it sends records"
                f" again, and whoever imports {', '.join(exports)} takes them for new",
            )


def _grouping_notices(graph: Graph, found: Analysis) -> Iterator[Notice]:
    """Yield the operators of regions whose state is not grouped by the region's key: rows of one
    group are in several key groups, and a test without them shows whole results.

    By name: a key that was renamed on the way looks alike and is right, so none is refused.
    """
    regions = {region.name: region for region in graph.regions}
    for operator in graph.operators:
        for columns in found.grouped_by.get(operator.name, ()):
            assert operator.region is not None
            region = regions[operator.region]
            lower = {column.lower() for column in columns}
            if lower.issuperset(column.lower() for column in region.key):
                continue
            entering = [found.schemas[stream].names for stream, _ in graph.entering(region.name)]
            possible = [name for name in columns if all(name in names for names in entering)]
            key = possible[0] if len(possible) == 1 else possible
            spread, kept = ", ".join(region.key), ", ".join(columns)
            yield Notice(
                operator.location,
                f"{operator.name!r} keeps state {f'by {kept}' if kept else 'over all rows'}, and"
                f" region {region.name!r} spreads by {spread}: each key group counts for itself"
                f"{f', unless {spread} follows from {kept}' if kept else ''};"
                f" {f'use key={key!r}, or ' if key else ''}put it behind the region",
            )
            break
