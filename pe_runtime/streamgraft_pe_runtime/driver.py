"""The Spark side of a PE: session, application, compiled plan. All calls block."""

import logging
import threading
import time
from pathlib import Path
from typing import Any

from streamgraft_common.adl import Adl
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.spark_jvm import SparkJvm
from streamgraft_pe_runtime import application, query, restricted
from streamgraft_pe_runtime.plan import Compiler, RealInputs
from streamgraft_pe_runtime.query import ShardQuery
from streamgraft_pe_runtime.warm_up import warm_up

log = logging.getLogger(__name__)


class Driver:
    """A warm driver: the PE's plan has run once on no rows.

    `properties`: folder of the restricted properties, if the PE has any.
    """

    def __init__(
        self, jvm: SparkJvm, metadata: PeMetadata, adl: Adl, properties: Path | None = None
    ) -> None:
        began = time.monotonic()
        functions = application.load(adl, metadata.parameters)
        self._metadata = metadata
        self._compiler = Compiler(functions, adl, metadata)
        self._session = jvm.attach()
        if properties:
            restricted.apply(self._session, restricted.read(properties))
        self._inputs = RealInputs(self._session, metadata, adl)
        self._compiling = threading.Lock()
        attached = time.monotonic() - began
        warm_up(self._session, self._compiler, metadata, adl)
        log.info("session after %.1f s, warm after %.1f s", attached, time.monotonic() - began)

    def start(self, shard: int, checkpoint: Path) -> ShardQuery:
        """Start the query of a shard on its checkpoint."""
        with self._compiling:  # user functions need not be safe for threads
            plan = self._compiler.compile(shard, self._inputs)
        name = f"{self._metadata.stage_name}-{shard}"
        return query.start(plan, checkpoint, self._metadata.trigger_seconds, name)

    def set_log_level(self, level: str) -> None:
        """Set the level of Spark's own log."""
        self._session.sparkContext.setLogLevel(level)

    def busy_seconds(self) -> float:
        """Return the time of all tasks that have ended, summed over slots."""
        context: Any = self._session.sparkContext._jsc
        return float(context.sc().statusStore().executorSummary("driver").totalDuration()) / 1000
