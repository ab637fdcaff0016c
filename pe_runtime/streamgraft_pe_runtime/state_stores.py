"""State stores on files: by what their rows are keyed, and the rows of one key group. Blocks.

Spark's own offline repartitioning takes RocksDB only, and divides one checkpoint. So this uses what
it is made of, the interface of all state stores. The loop over rows must run in the JVM.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from streamgraft_common.key_groups import Split, key_columns
from streamgraft_common.resources import SavedState
from streamgraft_common.restore import NotRestorable
from streamgraft_pe_runtime import java_classes
from streamgraft_pe_runtime.checkpoint_files import entries
from streamgraft_pe_runtime.expressions import key_expression
from streamgraft_pe_runtime.stream_columns import floating

_COPY = """
import org.apache.kafka.common.utils.Utils;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.ReadStateStore;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair;

public class KeyGroups {
    /** Copies the rows of one of `news` key groups; false if a row is in the wrong old one. */
    public boolean copy(ReadStateStore from, StateStore to, UnsafeProjection key,
                        int olds, int old, int news, int wanted) {
        scala.collection.Iterator rows = from.iterator("default");
        while (rows.hasNext()) {
            UnsafeRowPair row = (UnsafeRowPair) rows.next();
            UnsafeRow text = (UnsafeRow) key.apply(row.key());
            int hash = Utils.toPositive(Utils.murmur2(text.getBinary(0)));
            if (hash % olds != old) return false;
            if (hash % news == wanted) to.put(row.key(), row.value(), "default");
        }
        return true;
    }
}
"""
_VERSIONED = 2
"""Version of the operator metadata of stores with several tables, which are not read here."""


@dataclass(frozen=True)
class _Store:
    """One state store of a checkpoint: all its partitions."""

    operator: str
    operator_id: int
    name: str
    partitions: int
    encoder: Any
    key_schema: Any
    value_schema: Any

    @property
    def columns(self) -> list[str]:
        return list(self.key_schema.fieldNames())


class StateStores:
    """Reads and writes the state of checkpoints that no query runs on."""

    def __init__(self, session: SparkSession) -> None:
        jvm: Any = session._jvm
        self._jvm = jvm
        self._python_session = session
        self._session: Any = session._jsparkSession
        self._state = jvm.org.apache.spark.sql.execution.streaming.state
        self._hadoop = self._session.sessionState().newHadoopConf()
        self._none = jvm.scala.Option.empty()
        self._one_at_a_time = threading.Lock()

    def describe(self, checkpoint: Path) -> list[SavedState]:
        """Return the stateful parts of a query, by one of its checkpoints."""
        return [self._described(checkpoint, item) for item in self._operators(checkpoint)]

    def _described(self, checkpoint: Path, operator: Any) -> SavedState:
        readable = operator.version() < _VERSIONED
        key = self._stores_of(checkpoint, operator)[0].columns if readable else []
        return SavedState(operator=operator.operatorInfo().operatorName(), key=key)

    def gather(self, sources: Mapping[int, Path], target: Path, split: Split) -> None:
        """Write the first version of a checkpoint's state: the rows of a group out of old ones.

        `sources`: old group → its checkpoint. `target` has the metadata of the state and the first
        entry of the offset log. Raises NotRestorable if the rows aren't keyed as `split` says.
        """
        with self._one_at_a_time:  # stores may need much memory
            for store in self._stores(target):
                for partition in range(store.partitions):
                    self._gather(sources, target, split, store, partition)

    def _gather(
        self,
        sources: Mapping[int, Path],
        target: Path,
        split: Split,
        store: _Store,
        partition: int,
    ) -> None:
        key = self._projection(store, split.key)
        with self._opened(target, store, partition) as provider:
            into = provider.getStore(0, self._none, False, False)
            try:
                for old, source in sources.items():
                    with self._opened(source, store, partition) as origin:
                        if not self._copy(origin, _last_batch(source) + 1, into, key, old, split):
                            raise _misplaced(store.operator, old, split)
                into.commit()
            finally:
                if not into.hasCommitted():
                    into.abort()

    def _copy(self, origin: Any, version: int, into: Any, key: Any, old: int, split: Split) -> bool:
        rows = origin.getReadStore(version, self._none)
        try:
            numbers = split.old_groups, old, split.new_groups, split.group
            return bool(self._copier.copy(rows, into, key, *numbers))
        finally:
            rows.abort()

    def _operators(self, checkpoint: Path) -> list[Any]:
        if not (checkpoint / "state").is_dir():
            return []
        metadata = self._jvm.org.apache.spark.sql.execution.datasources.v2.state.metadata
        conf = self._jvm.org.apache.spark.util.SerializableConfiguration(self._hadoop)
        reader = metadata.StateMetadataPartitionReader(
            checkpoint.as_uri(), conf, _last_batch(checkpoint)
        )
        return list(reader.allOperatorStateMetadata())

    def _stores(self, checkpoint: Path) -> Iterator[_Store]:
        for operator in self._operators(checkpoint):
            yield from self._stores_of(checkpoint, operator)

    def _stores_of(self, checkpoint: Path, operator: Any) -> list[_Store]:
        info, stores = operator.operatorInfo(), operator.stateStoresMetadata()
        return [
            self._store(checkpoint, info.operatorName(), info.operatorId(), stores.apply(number))
            for number in range(stores.size())
        ]

    def _store(self, checkpoint: Path, operator: str, operator_id: int, metadata: Any) -> _Store:
        """Return a store, with the newest of its schemas."""
        provider = self._provider_id(checkpoint, operator_id, 0, metadata.storeName())
        empty = self._jvm.PythonUtils.toList([])
        checker = self._state.StateSchemaCompatibilityChecker
        schema = checker(provider, self._hadoop, empty, self._none, False).readSchemaFile().apply(0)
        if metadata.numColsPrefixKey():
            encoder = self._state.PrefixKeyScanStateEncoderSpec(
                schema.keySchema(), metadata.numColsPrefixKey()
            )
        else:
            encoder = self._state.NoPrefixKeyStateEncoderSpec(schema.keySchema())
        return _Store(
            operator=operator,
            operator_id=operator_id,
            name=metadata.storeName(),
            partitions=metadata.numPartitions(),
            encoder=encoder,
            key_schema=schema.keySchema(),
            value_schema=schema.valueSchema(),
        )

    def _provider_id(self, checkpoint: Path, operator_id: int, partition: int, name: str) -> Any:
        place = (checkpoint / "state").as_uri()
        store = self._state.StateStoreId(place, operator_id, partition, name)
        return self._state.StateStoreProviderId(store, self._jvm.java.util.UUID.randomUUID())

    @contextmanager
    def _opened(self, checkpoint: Path, store: _Store, partition: int) -> Iterator[Any]:
        provider = self._state.StateStoreProvider.createAndInit(
            self._provider_id(checkpoint, store.operator_id, partition, store.name),
            store.key_schema,
            store.value_schema,
            store.encoder,
            False,
            self._conf(checkpoint),
            self._hadoop,
            False,
            self._none,
        )
        with closing(provider):
            yield provider

    def _conf(self, checkpoint: Path) -> Any:
        """Return the settings that a query's state was, or is to be, written with."""
        streaming = self._jvm.org.apache.spark.sql.execution.streaming
        logs = streaming.runtime.StreamingQueryCheckpointMetadata
        log = logs(self._session, checkpoint.as_uri(), False).offsetLog()
        metadata = log.get(_last_batch(checkpoint)).get().metadataOpt().get()
        conf = self._session.sessionState().conf().clone()
        streaming.checkpointing.OffsetSeqMetadata.setSessionConf(metadata, conf)
        return self._state.StateStoreConf.apply(conf)

    def _projection(self, store: _Store, key: Sequence[str]) -> Any:
        """Return what makes the record key out of a store's key, as Kafka's partitioner saw it."""
        columns = key_columns(SavedState(operator=store.operator, key=store.columns), key)
        assert columns is not None, f"checked when the savepoint was matched: {store}"
        rows = self._session.createDataFrame(self._jvm.java.util.ArrayList(), store.key_schema)
        floats = floating(StructType.fromJson(json.loads(store.key_schema.json())))
        texts = self._jvm.PythonUtils.toSeq([key_expression(columns, floats, external=False)])
        plan = rows.selectExpr(texts).queryExecution().analyzed()
        catalyst = self._jvm.org.apache.spark.sql.catalyst
        plan = catalyst.optimizer.ReplaceExpressions.apply(plan)
        return catalyst.expressions.UnsafeProjection.create(
            plan.projectList(), plan.child().output()
        )

    @cached_property
    def _copier(self) -> Any:
        return java_classes.instance(self._python_session, _COPY, "KeyGroups")


def _misplaced(operator: str, old: int, split: Split) -> NotRestorable:
    return NotRestorable(
        f"the state of Spark's {operator} has keys in key group {old} that belong to another one:"
        f" {', '.join(split.key)} changed on the way to it. It can only be restored with"
        f" {split.old_groups} key groups"
    )


def _last_batch(checkpoint: Path) -> int:
    return entries(checkpoint / "commits")[-1]
