"""The Spark side of a PE: session, application, compiled plan. All calls block."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from streamgraft_common.adl import Adl, KafkaEndpoint
from streamgraft_common.joint import apart
from streamgraft_common.pe_metadata import (
    HDFS,
    ROCKSDB,
    STATE_STORE_PROVIDER,
    InputPort,
    PeMetadata,
)
from streamgraft_common.resources import MatchedImport
from streamgraft_common.spark_jvm import SparkJvm
from streamgraft_pe_runtime import (
    alignment,
    hadoop_settings,
    kafka_clients,
    local_files,
    malformed,
    query,
    real_time,
    repeats,
    restricted,
    shard_names,
    topic_ids,
    warm_up,
    workers,
)
from streamgraft_pe_runtime.application import Code, LoadedApplication, exchanged
from streamgraft_pe_runtime.bundles import OtherCode
from streamgraft_pe_runtime.cuts import CutSink, cut_sink
from streamgraft_pe_runtime.exchange import exchange
from streamgraft_pe_runtime.ledgers import Ledgers
from streamgraft_pe_runtime.losses import Gap
from streamgraft_pe_runtime.plan import Compiler, Plan, RealInputs
from streamgraft_pe_runtime.query import ShardQuery
from streamgraft_pe_runtime.slot_check import check_slots
from streamgraft_pe_runtime.staggering import Stagger
from streamgraft_pe_runtime.state_stores import StateStores
from streamgraft_pe_runtime.warm_up import EmptyInputs

log = logging.getLogger(__name__)

_COMPILER = "CompilerThre"
"""In the names of the JVM's threads that compile, which the kernel cuts to 15 letters."""
_NICE = 10

_Listeners = tuple[Callable[[str, str, Any], None], Callable[[str], None]]


def _compile_last(pid: int) -> None:
    """Let the threads of a JVM that compile run behind all others.

    What is left to compile behind a rehearsal can wait, the first records of a shard can't.
    """
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it may have ended
            if _COMPILER in (thread / "comm").read_text():
                os.setpriority(os.PRIO_PROCESS, int(thread.name), _NICE)


@dataclass(frozen=True)
class _Planned:
    """A PE as its queries are made from it."""

    metadata: PeMetadata
    code: Code
    compiler: Compiler
    joint: bool
    """Whether one query runs over all shards that the PE holds."""
    obstacle: str = ""
    """Why it does not, though the application's description has nothing against it."""
    prepared: dict[int, Plan] = field(default_factory=dict)
    """Plans of shards that may come and run alone."""


class Driver:
    """A driver with a session and the application's code; it takes up the plan of any PE, and
    other code.

    `properties`: the restricted ones.
    """

    def __init__(
        self, jvm: SparkJvm, code: Code, properties: Mapping[str, str] | None = None
    ) -> None:
        began = time.monotonic()
        self.code = code
        """The version of the application that queries are made from now."""
        self._jvm = jvm
        self._application = code.enter()
        self._listeners: _Listeners | None = None
        self._session = jvm.attach()
        local_files.install(self._session)
        workers.make_functions_anew()
        hadoop_settings.forget_origins(self._session)
        self.stores, self._topics = StateStores(self._session), topic_ids.TopicIds(self._session)
        if properties:
            restricted.apply(self._session, dict(properties))
        self._state_provider = self._session.conf.get(STATE_STORE_PROVIDER, HDFS)
        self._planned: _Planned | None = None
        self._rehearsed: dict[str, _Planned] = {}
        self._exchanged: set[bool] = set()
        """Modes (whether real-time) in which records went to Kafka and back."""
        self._imports: tuple[MatchedImport, ...] = ()
        self._filters: Mapping[str, str] = {}
        """By import; exchanged as a whole, as plans are compiled in other threads."""
        self._telling = threading.Lock()
        self._compiling = threading.Lock()  # user functions need not be safe for threads
        log.info("session after %.1f s", time.monotonic() - began)

    def cut_sink(self, metadata: PeMetadata) -> CutSink | None:
        """Return the sink of a PE, if it takes part in cuts."""
        return cut_sink(metadata, self.code.adl, self._application.cut_functions)

    def rehearse(self, plan: str, metadata: PeMetadata) -> None:
        """Warm up for a plan that may be applied later. `plan`: its hash."""
        began = time.monotonic()
        with self._compiling:
            self._rehearsed[plan] = self._warmed_up(metadata, warm_up.REHEARSED_STARTS)
            if metadata.rehearsal and metadata.real_time not in self._exchanged:
                exchange(self._session, metadata.rehearsal, real_time=metadata.real_time)
                self._exchanged.add(metadata.real_time)
            # Its first time takes 0.3 s for classes, its next ones 0.02 s.
            self.ids_of([port for port in metadata.inputs if not port.external])
            jvm: Any = self._session._jvm
            jvm.System.gc()  # the next collection would be in the first batch of a shard
            _compile_last(self._jvm.pid)
        log.info("%s rehearsed in %.1f s", metadata.stage_name, time.monotonic() - began)

    def apply(self, plan: str, metadata: PeMetadata, bundle: bytes | None = None) -> None:
        """Take up a plan: queries started from now on are made from it.

        `bundle`: what to take the code from, if ours is another. Raises OtherCode, and what the
        application raises; plan and code from before then stay.
        """
        began = time.monotonic()
        with self._compiling:
            before, code = self._planned, self.code
            application = self._application
            if before is not None:
                kept = [(before.code, before.metadata), (self.code, metadata)]
                workers.end_others(self._session, [_environment(*item) for item in kept])
            try:
                if bundle is not None:
                    self._load(bundle, metadata)
                self._planned = self._newly_planned(plan, metadata)
                self._rehearsed.clear()
            except Exception:
                if self.code is not code:
                    exchanged(self.code, code)
                    self._use(code, application)
                if before is not None:
                    self._bind(before.metadata)
                raise
        log.info("%s applied in %.1f s", metadata.stage_name, time.monotonic() - began)

    def prepare(self, shard: int, rehearsed: str | None = None) -> None:
        """Compile the plan of a shard that may come, so that its start is quicker.

        `rehearsed`: hash of a plan that is not applied yet. Raises what the application raises; the
        start would raise it again.
        """
        with self._compiling:
            planned = self._rehearsed.get(rehearsed) if rehearsed else self._planned
            if planned is not None and not planned.joint and shard not in planned.prepared:
                planned.prepared[shard] = self._plan(planned, (shard,))

    def connect(self, imports: Sequence[MatchedImport]) -> bool:
        """Take note of what imports read; return whether filters changed, so that queries have to
        start anew. Otherwise `read_on` tells the queries that run. Does not block."""
        self._imports = tuple(imports)
        filters = {item.operator: item.filter for item in imports}
        changed = filters != self._filters
        self._filters = filters
        return changed

    def listen(
        self,
        on_stream_change: Callable[[str, str, Any], None],
        on_cut_request: Callable[[str], None],
    ) -> None:
        """Have functions that change exports and imports, or ask for cuts, call listeners, in any
        thread."""
        self._listeners = on_stream_change, on_cut_request
        self._use(self.code, self._application)

    def read_on(self) -> None:
        """Have imports read the topics that they are connected to."""
        jvm: Any = self._session._jvm
        matches = jvm.org.apache.spark.sql.kafka010.imports.Matches
        with self._telling:  # so whoever is late says what is true by then
            for item in self._imports:
                matches.set(item.operator, list(item.topics))

    def imported_topics(self, operator: str) -> Sequence[str]:
        """Return the topics that an import is connected to."""
        return [
            topic for item in self._imports if item.operator == operator for topic in item.topics
        ]

    def is_cut(self) -> bool:
        """Return whether operators of the plan that was applied are in a consistent region."""
        ours = set(self._planned.metadata.operators) if self._planned else set()
        return any(not ours.isdisjoint(item.operators) for item in self._adl.consistent_regions)

    def passed_over(self) -> list[Gap]:
        """Return what imports went past, since the last call, that retention had deleted."""
        if not self._imports:
            return []
        jvm: Any = self._session._jvm
        gaps = jvm.org.apache.spark.sql.kafka010.imports.Passed.take()
        return [Gap((gap[0], int(gap[1])), int(gap[2]), int(gap[3])) for gap in gaps]

    @property
    def joint(self) -> bool:
        """Whether the plan that was applied has one query over all shards that are held."""
        return self._planned is not None and self._planned.joint

    @property
    def obstacle(self) -> str:
        """Why the plan that was applied has a query per shard though its description allows one."""
        return self._planned.obstacle if self._planned else ""

    @property
    def state_provider(self) -> str | None:
        """Spark's class for the state of the plan that was applied, None if it has none."""
        operators = {operator.name: operator for operator in self._adl.operators}
        names = self._planned.metadata.operators if self._planned else []
        if not any(operators[name].stateful for name in names):
            return None
        return self._state_provider

    def starts_at_latest(self, port: InputPort) -> bool:
        """Return whether a shard that no query has run reads only what comes from now on."""
        endpoint = self._endpoint(port)
        return endpoint is not None and endpoint.starting_offsets == "latest"

    def ids_of(
        self, inputs: Sequence[InputPort], noted: topic_ids.Ids | None = None
    ) -> topic_ids.Ids:
        """Return the ids of the topics that are read, as far as brokers tell (topic_ids.py).

        `noted`: before a query starts, what its shards have noted.
        """
        return self._topics.ask(inputs, self._options(inputs), noted)

    def kafka_clients(self, metadata: PeMetadata) -> kafka_clients.Clients:
        """Return what clients of a PE's brokers are told. Blocks."""
        options = self._options(metadata.inputs)
        return kafka_clients.clients(self._session._jvm, metadata, options)

    def ledgers(self, metadata: PeMetadata) -> Ledgers:
        """Return what looks into the ledgers of a stage."""
        operators = {operator.name: operator for operator in self._adl.operators}
        return Ledgers(self._session, metadata, operators)

    def may_lose(self, port: InputPort) -> bool:
        """Return whether an input goes on behind records that are deleted before it reads them."""
        options = endpoint.options if (endpoint := self._endpoint(port)) else {}
        said = ((name.lower(), value.lower()) for name, value in options.items())
        return port.may_lose or ("failondataloss", "false") in said

    def _options(self, inputs: Sequence[InputPort]) -> dict[str, dict[str, str]]:
        """Return the options of sources, by operator."""
        endpoints = {port.operator: self._endpoint(port) for port in inputs if port.external}
        return {name: found.options for name, found in endpoints.items() if found}

    def _endpoint(self, port: InputPort) -> KafkaEndpoint | None:
        operators = {operator.name: operator for operator in self._adl.operators}
        operator = operators.get(port.operator)  # an edit may be under way
        return operator.kafka if operator and port.external else None

    def start(
        self, shards: Sequence[int], checkpoint: Path, names: Iterable[Path], *, joint: bool
    ) -> ShardQuery:
        """Start the query of shards on its checkpoint, which writes for as long as these names of
        the shards are there; `joint`: made to keep several apart."""
        with self._compiling:
            planned = self._planned
            assert planned is not None
            self.read_on()
            prepared = None if joint else planned.prepared.pop(shards[0], None)
            if any(port.imported for port in planned.metadata.inputs):
                prepared = None  # it may have an earlier filter
            plan = prepared or self._plan(planned, shards, joint=joint)
        metadata = planned.metadata
        name = f"{metadata.stage_name}-{'-'.join(map(str, shards))}"
        stagger = Stagger(shards[0], metadata.shard_count)
        seconds = real_time.BATCH_SECONDS if plan.real_time else metadata.trigger_seconds
        repeats.keep_notes(self._session, query.stage_of(checkpoint), metadata.inputs)
        shard_names.hold(self._session, checkpoint, names)
        return query.start(plan, checkpoint, seconds, name, stagger)

    def set_log_level(self, level: str) -> None:
        """Set the level of Spark's own log."""
        self._session.sparkContext.setLogLevel(level)

    def busy_seconds(self) -> float:
        """Return the time of all tasks that have ended, summed over slots.

        In real-time mode, where tasks don't end: their CPU time.
        """
        if self._planned is not None and self._planned.metadata.real_time:
            return real_time.task_cpu_seconds(self._jvm.pid)
        context: Any = self._session.sparkContext._jsc
        return float(context.sc().statusStore().executorSummary("driver").totalDuration()) / 1000

    def malformed(self) -> dict[tuple[str, str], int]:
        """Return how many malformed records were met, by source operator and topic."""
        return malformed.counts(self._session)

    @property
    def _adl(self) -> Adl:
        """The description that belongs to the plan that was applied."""
        return self._planned.code.adl if self._planned else self.code.adl

    def _load(self, bundle: bytes, metadata: PeMetadata) -> None:
        """Take up other code. Queries that run keep theirs, in Python workers of their own."""
        code = Code.unpack(bundle, self.code.folder.parent)
        if not code.fits(metadata):
            raise OtherCode(metadata)
        code.remove_earlier(self.code)
        self._use(code, exchanged(self.code, code))
        self._rehearsed.clear()

    def _use(self, code: Code, application: LoadedApplication) -> None:
        self.code, self._application = code, application
        if self._listeners is not None:
            on_stream_change, on_cut_request = self._listeners
            application.on_stream_change(on_stream_change)
            application.on_cut_request(on_cut_request)

    def _warmed_up(self, metadata: PeMetadata, starts: Sequence[int] = warm_up.STARTS) -> _Planned:
        planned = self._bound(metadata)
        compiler = planned.compiler
        warm_up.warm_up(
            self._session, compiler, metadata, self.code.adl, starts, joint=planned.joint
        )
        return planned

    def _newly_planned(self, plan: str, metadata: PeMetadata) -> _Planned:
        """Return the plan; what can't be compiled fails here, before any query stops for it."""
        if rehearsed := self._rehearsed.get(plan):
            self._bind(metadata)
            planned = replace(rehearsed, metadata=metadata)
        else:
            known = self._planned and self._planned.code is self.code
            planned = self._bound(metadata) if known else self._warmed_up(metadata)
        if not planned.prepared and not planned.joint:  # a joint one was compiled before
            planned.compiler.compile((0,), EmptyInputs(self._session, metadata, self.code.adl))
        return planned

    def _bound(self, metadata: PeMetadata) -> _Planned:
        self._bind(metadata)
        compiler = Compiler(self._application, self.code.adl, metadata, lambda: self._filters)
        joint, obstacle = apart(metadata, self.code.adl.operators) is None, ""
        if joint:
            inputs = RealInputs(self._session, metadata, self.code.adl)
            plan = compiler.compile_joint(range(metadata.shard_count), inputs)
            found = self._unknown_state(plan) or alignment.obstacle(plan.frame, plan.states)
            obstacle = found or ""
            joint = not obstacle
        return _Planned(metadata, self.code, compiler, joint, obstacle)

    def _unknown_state(self, plan: Plan) -> str | None:
        """Return what keeps its state, if that was not tried with several shards in a query."""
        known = not plan.states or self._state_provider in (HDFS, ROCKSDB)
        return None if known else f"its state is kept by {self._state_provider}"

    def _plan(self, planned: _Planned, shards: Sequence[int], *, joint: bool = False) -> Plan:
        self._bind(planned.metadata)  # a rehearsal of another plan may have come between
        inputs = RealInputs(self._session, planned.metadata, self.code.adl)
        compiler = planned.compiler
        plan = (compiler.compile_joint if joint else compiler.compile)(shards, inputs)
        if plan.real_time:
            check_slots(plan, planned.metadata, self.kafka_clients(planned.metadata))
        return plan

    def _bind(self, metadata: PeMetadata) -> None:
        self._application.bind(_values(self.code, metadata))
        workers.use(self._session, _environment(self.code, metadata))


def _values(code: Code, metadata: PeMetadata) -> dict[str, str]:
    return {**code.adl.parameters, **metadata.parameters}


def _environment(code: Code, metadata: PeMetadata) -> workers.Environment:
    return workers.environment(code.folder, code.adl.name, _values(code, metadata))
