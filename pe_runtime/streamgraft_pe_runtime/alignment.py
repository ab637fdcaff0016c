"""Whether Spark can run a plan over several shards as if each had a query of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamgraft_pe_runtime import joint_state
from streamgraft_pe_runtime.conf import ALIGN_SHARDS, SEND_TABLES

_REFUSED = "STREAMGRAFT_NOT_ALIGNED: "
_ALIGNED = "ShardTasks"
"""Name of the node that our planner rule (scala/shards) puts on top of a plan."""


_lock = threading.Lock()


@contextmanager
def alignment(
    session: SparkSession, *, wanted: bool, states: int = 0, tables: bool = False
) -> Iterator[None]:
    """Have the queries that are started inside keep their shards apart, or not.

    `states`: number of shards whose state is to be kept apart, too; `tables`: whether tables are
    sent to streams even if Spark would not do that. A query takes the session's settings with it
    when it starts, so one starts after the other.
    """
    ours = {ALIGN_SHARDS: wanted, SEND_TABLES: tables}
    with _lock:
        changed = joint_state.settings(states) if states else {}
        before = {name: session.conf.get(name, None) for name in changed}
        for name, value in {
            **changed,
            **{name: str(on).lower() for name, on in ours.items()},
        }.items():
            session.conf.set(name, value)
        try:
            yield
        finally:
            for name in ours:
                session.conf.set(name, "false")
            for name, earlier in before.items():
                if earlier is None:
                    session.conf.unset(name)
                else:
                    session.conf.set(name, earlier)


def obstacle(frame: DataFrame, states: int = 0) -> str | None:
    """Return why rows of several shards could mix in a streaming plan; None if they can't.

    `states`: as in `alignment`. Spark plans it as for a batch, which it does not run. Tables are
    sent only if they are small now: they are kept in memory.
    """
    session = frame.sparkSession
    jvm: Any = session._jvm
    mode = jvm.org.apache.spark.sql.execution.ExplainMode.fromString("simple")
    try:
        with alignment(session, wanted=True, states=states):
            physical = str(frame._jdf.queryExecution().explainString(mode))
    except Exception as error:  # Py4J's, of whatever the planner raises
        return refusal(str(error)) or str(error).partition("\n")[0]
    return None if _ALIGNED in physical else "the planner rule was not asked"


def refusal(error: str) -> str:
    """Return why a plan did not keep its shards apart, by what an exception says; '' if it does
    not say so. Pure."""
    return error.partition(_REFUSED)[2].partition("\n")[0]
