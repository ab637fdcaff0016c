"""Run a plan as one Spark streaming query, and stop it at a batch boundary."""

import json
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streamgraft_common.batches import Batch
from streamgraft_pe_runtime import arrangement, modes, targets
from streamgraft_pe_runtime.alignment import alignment
from streamgraft_pe_runtime.batch_ends import BatchEnds, staggered
from streamgraft_pe_runtime.checkpoint_files import incarnation
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged
from streamgraft_pe_runtime.joint_checkpoints import is_joint
from streamgraft_pe_runtime.lost_checkpoints import life_of
from streamgraft_pe_runtime.plan import Plan, SinkCall
from streamgraft_pe_runtime.query_logs import newest
from streamgraft_pe_runtime.staggering import ALONE, Stagger
from streamgraft_pe_runtime.triggers import Triggers

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.003
_END_MILLISECONDS = 50
_LONGEST_ALIGNED_SECONDS = 5.0
"""A stop waits for the next batch unless triggers are farther apart than this."""
_IDLE_SECONDS = 0.3
"""A query that sleeps so long after its trigger had nothing to do then."""
_SLEEPING = "Clock.waitTillTime"
"""What a query's thread does between two triggers."""
_CALLING = "ForeachBatchSink.addBatch"
_RUNNING = ("org.apache.spark.sql.classic.Dataset.collect", _CALLING)
"""What it does while a batch's jobs run: into Kafka, into a sink function."""
_SILENT = ("CANNOT_LOAD_STATE_STORE", "CANNOT_WRITE_STATE_STORE", "(no cause message)")
_MOST_CAUSES = 20
_NO_BATCH = -2
"""Earlier than that before the first, -1."""


def start(
    plan: Plan, checkpoint: Path, seconds: float, name: str, stagger: Stagger = ALONE
) -> "ShardQuery":
    """Start the query of a plan on a checkpoint. Returns before its first batch.

    `seconds`: between triggers; in real-time mode the length of a batch. `stagger`: where in it
    its triggers are, or its batches end. Raises OtherMode, OtherTopics, OtherWays, EditedWays.
    """
    outputs = plan.output if isinstance(plan.output, list) else []
    loose = plan.real_time and not outputs[0].transactional_id
    if not loose:
        modes.check(checkpoint, real_time=plan.real_time)
    arrangement.arrange(checkpoint, plan.topics, plan.outputs, loose=loose)
    is_again = modes.comes_again(checkpoint)
    writer = _sink(plan, checkpoint).outputMode(plan.output_mode).queryName(name)
    writer = writer.option("checkpointLocation", str(checkpoint))
    interval = f"{round(seconds * 1000)} milliseconds"
    session = plan.frame.sparkSession
    try:
        if not plan.real_time:
            writer = writer.trigger(processingTime=interval)
            timing = Triggers(session, seconds, stagger.share)
            joint = plan.joint
            with alignment(session, wanted=joint, states=plan.states, tables=joint):
                started = writer.start()
            running = ShardQuery(session, started, timing, checkpoint)
            running.set_interval(seconds)
            running.give_up_others(loose=False)
            return running
        # PySpark's annotations leave this trigger out.
        writer = writer.trigger(realTime=interval)  # type: ignore[call-overload]
        aligned = alignment(session, wanted=False)
        with aligned, staggered(session, seconds, stagger, plan.scans) as ends:
            running = ShardQuery(session, writer.start(), ends, checkpoint)
        running.give_up_others(loose=loose)
        if loose:
            running.note_end(newest(checkpoint / "commits") if is_again else _NO_BATCH)
        return running
    except Exception:
        _close_sink(session, checkpoint)
        raise


def stage_of(checkpoint: Path) -> Path:
    """Return the folder of the stage that a query's checkpoint is of."""
    return checkpoint.parent.parent if is_joint(checkpoint) else checkpoint.parent


def _numbered(call: SinkCall, checkpoint: Path) -> Callable[[DataFrame, int], None]:
    """Return a function of foreachBatch that tells the application whose batch it is."""
    known = incarnation(checkpoint)

    def write(rows: DataFrame, number: int) -> None:
        batch = Batch(number, writer=call.writer, shard=call.shard, incarnation=known)
        call.function(rows, batch)

    return write


def _close_sink(session: SparkSession, checkpoint: Path, ended: str | None = None) -> bool:
    """End the producers of the query that has, or had, a checkpoint.

    `ended`: if that was between two batches, where, as arrangement.ended tells. Returns whether
    that ends a ledger of real-time mode, which is of no successor yet.
    """
    jvm: Any = session._jvm
    over = jvm.org.apache.spark.sql.kafka010.exactlyonce.Owners.close(str(checkpoint), ended)
    return bool(over)


def _sink(plan: Plan, checkpoint: Path) -> DataStreamWriter:
    if not isinstance(plan.output, list):
        return plan.frame.writeStream.foreachBatch(_numbered(plan.output, checkpoint))
    return plan.frame.writeStream.format(targets.FORMAT).options(
        **targets.options(
            plan.output,
            checkpoint,
            life_of(stage_of(checkpoint)),
            real_time=plan.real_time,
            told=plan.told,
            since=modes.loose_since(checkpoint),
        )
    )


class StillRuns(Exception):
    """A batch that was cut off does not end, so its process has to; the message says so."""


class ShardQuery:
    """A query that was started. All calls block."""

    def __init__(
        self,
        session: SparkSession,
        query: StreamingQuery,
        timing: Triggers | BatchEnds,
        checkpoint: Path,
    ) -> None:
        """`timing`: of triggers, or in real-time mode of the ends of batches."""
        self._session = session
        self._checkpoint = checkpoint
        self._triggers = timing if isinstance(timing, Triggers) else None
        self._ends = timing if isinstance(timing, BatchEnds) else None
        self._query = query
        # The JVM's own object: PySpark's properties parse and copy, and cost ten times as much.
        self._handle: Any = query._jsq
        self._given_up: str | None = None
        self._ended_after: int | None = None

    def first_trigger_done(self) -> bool:
        """Return whether the first trigger since the start has completed, with or without data."""
        return bool(
            self._handle.status().message() == "Waiting for next trigger"
            or self._handle.lastProgress() is not None
            or (self._triggers is None and _RUNNING[0] in self._stack(self._thread()))
        )

    def failure(self) -> str | None:
        """Return why the query ended by itself, None if it runs."""
        if self._handle.isActive():
            return self._given_up
        error = self._handle.exception()
        return self._told(error.get()) if error.isDefined() else "the query ended by itself"

    def give_up_others(self, *, loose: bool) -> None:
        """Leave what those have noted who wrote before with another delivery (`loose`: ours is at
        least once, in real-time mode): from now on it tells nothing."""
        try:
            (modes.give_up_ledger if loose else modes.end_loose)(self._checkpoint)
        except OSError:
            self.stop(0)
            raise

    def note_end(self, last: int) -> None:
        """Have a stop between two batches noted: then nothing comes again.

        `last`: a batch after this one must have ended, for one was cut off before.
        """
        self._ended_after = last

    def give_up(self, reason: str) -> None:
        """Have the query count as failed, though Spark goes on with it."""
        self._given_up = reason

    def reports(self, after: int) -> list[dict[str, Any]]:
        """Return Spark's progress of the batches with data that are newer than `after`."""
        recent = self._handle.recentProgress()
        found: list[dict[str, Any]] = []
        # Each look at one is a call into the JVM, and mostly there is nothing new.
        for index in range(len(recent) - 1, -1, -1):
            progress = recent[index]
            if progress.batchId() <= after:
                break
            found.insert(0, json.loads(progress.json()))
        return found

    def state_sizes(self, shard: int) -> tuple[int, int]:
        """Return rows and bytes of the state of a shard of several, as last written."""
        folder = self._checkpoint.parent.parent / str(shard) / "state"
        jvm: Any = self._session._jvm
        rows, size = jvm.org.apache.spark.sql.streamgraft.HeldState.sizes(str(folder))
        return rows, size

    @property
    def real_time(self) -> bool:
        """Whether it runs in real-time mode, and so has no triggers."""
        return self._triggers is None

    @property
    def scans(self) -> int:
        """How many times it reads an input, in real-time mode."""
        assert self._ends is not None, "it is not in real-time mode"
        return self._ends.scans

    @property
    def interval_seconds(self) -> float:
        """The time between two triggers."""
        assert self._triggers is not None, "a real-time query has none"
        return self._triggers.interval_seconds

    def set_interval(self, seconds: float) -> None:
        """Change the trigger interval of the running query, from its next trigger on."""
        assert self._triggers is not None, "a real-time query has none"
        if executor := self._trigger_executor():
            self._triggers.set(executor, seconds)

    def stop(self, deadline_seconds: float) -> bool:
        """Stop between two batches; False if the deadline passed and a batch was cut off.

        `StreamingQuery.stop()` interrupts a running batch. But the query's own thread looks at
        the query's state before each trigger: marked as terminated it finishes and commits the
        running batch and begins no other one, also under a backlog, where there is no pause
        between batches. Only before a batch's jobs start may the mark not be set: there Spark
        would give the batch up. Batches are planned and committed under a lock, so while we
        hold it, what the thread is seen to do stays true.

        A query that sleeps is let go on to its next batch, if that is near: then the output stops
        for no longer than its next owner takes to start. In real-time mode the running batch ends
        before its next record, if it may, when the batches of other shards leave time.

        Raises StillRuns if a batch that was cut off does not end, either.
        """
        execution, run = self._handle.streamingQuery(), str(self._query.runId)
        thread, lock = self._thread(), execution.awaitProgressLock()
        deadline = time.monotonic() + deadline_seconds
        trigger, batches = self._next_trigger(), self._batches()
        marked = False
        while not marked and thread.isAlive() and (now := time.monotonic()) < deadline:
            if lock.tryLock():
                try:
                    over = now > trigger + _IDLE_SECONDS or batches != self._batches()
                    marked = self._mark(execution, thread, asleep=over)
                finally:
                    lock.unlock()
                if not marked and self._sleeps(thread):
                    time.sleep(max(0.0, min(trigger, deadline) - time.monotonic()))
            time.sleep(_POLL_SECONDS)
        if marked and self._ends and self._ends.may_be_early:
            if seconds := self._ends.seconds_to_lull(time.time()):
                thread.join(math.ceil(seconds * 1000))
            self._ends.end(run)
        # It ends by itself after its batch; to look at its stack all the time would take CPU.
        while marked and thread.isAlive() and time.monotonic() < deadline:
            if self._sleeps(thread):
                break
            thread.join(_END_MILLISECONDS)
        in_time = marked or not thread.isAlive()
        in_time = in_time and time.monotonic() < deadline
        self._cut_off(thread)
        clean = in_time and self._handle.exception().isEmpty()
        ended = self._ended() if clean else None
        # A batch that runs again may end before what was written when it was cut off.
        if _close_sink(self._session, self._checkpoint, ended):
            modes.forget(self._checkpoint)
        if clean and self._is_over():
            modes.end_loose(self._checkpoint)
        self._ended_after = None  # who stops it again has not seen how it ended
        if self._ends:
            self._ends.forget(run)
        return in_time

    def _cut_off(self, thread: Any) -> None:
        """Stop the query, whatever it does. Raises StillRuns."""
        try:
            self._handle.stop()
        except (Py4JJavaError, PySparkException) as error:
            if not thread.isAlive():
                raise
            called = _CALLING in self._stack(thread)
            what = "its function does not return" if called else "its thread does not end"
            raise StillRuns(f"a batch of {self._query.name} can't be cut off: {what}") from error

    def _is_over(self) -> bool:
        """Return whether nothing comes again of what was written at least once."""
        after = self._ended_after
        return after is not None and newest(self._checkpoint / "commits") > after

    def _ended(self) -> str | None:
        """Return where the last batch ended, as a ledger in real-time mode tells it; None if that
        can't be read, so that the ledger stays."""
        try:
            return arrangement.ended(self._checkpoint) if self.real_time else ""
        except (CheckpointDamaged, OSError) as error:
            log.warning("where %s ended is not known: %s", self._checkpoint, error)
            return None

    def _told(self, error: Any) -> str:
        """Return what an exception says; of state that can't be loaded or written, why and where it
        is, which Spark leaves out."""
        text = str(error.toString())
        if not any(sign in text for sign in _SILENT):
            return text
        told, cause = text, error.getCause()
        for _ in range(_MOST_CAUSES):
            if cause is None:
                break
            told, cause = str(cause.toString()), cause.getCause()
        joint = is_joint(self._checkpoint)
        place = stage_of(self._checkpoint) if joint else self._checkpoint
        return f"{text}\nCaused by: {place}: {told}"

    def _trigger_executor(self) -> Any:
        """Return what triggers the query, which Spark makes soon after its start; None if the query
        ended before."""
        execution, thread = self._handle.streamingQuery(), self._thread()
        while (executor := execution.triggerExecutor()) is None and thread.isAlive():
            time.sleep(_POLL_SECONDS)
        return executor

    def _next_trigger(self) -> float:
        """Return the (monotonic) time of the next trigger; long ago if it is not worth a wait."""
        triggers = self._triggers
        if triggers is None or triggers.interval_seconds > _LONGEST_ALIGNED_SECONDS:
            return -math.inf
        return time.monotonic() + triggers.seconds_to_next(time.time())

    def _batches(self) -> int:
        """Return the number of the last batch that had data, -1 before the first."""
        progress = self._handle.lastProgress()
        return -1 if progress is None else int(progress.batchId())

    def _mark(self, execution: Any, thread: Any, *, asleep: bool) -> bool:
        """Mark the query as terminated if its thread runs jobs, or sleeps and `asleep` allows it.

        False if not. Waking up takes no lock: a thread that slept may have looked at the state just
        before.
        """
        stack = self._stack(thread)
        expected = (_SLEEPING, *_RUNNING) if asleep else _RUNNING
        if not any(frame in stack for frame in expected):
            return False
        execution.state().set(self._state("TERMINATED"))
        if _SLEEPING in stack and not self._sleeps(thread):
            execution.state().set(self._state("ACTIVE"))
            return False
        return True

    def _thread(self) -> Any:
        return self._handle.streamingQuery().queryExecutionThread()

    def _sleeps(self, thread: Any) -> bool:
        return _SLEEPING in self._stack(thread)

    def _stack(self, thread: Any) -> str:
        jvm: Any = self._session._jvm
        dump = jvm.org.apache.spark.util.Utils.getThreadDumpForThread(thread.getId())
        return str(dump.get().stackTrace().toString()) if dump.isDefined() else ""

    def _state(self, name: str) -> Any:
        jvm: Any = self._session._jvm
        states = jvm.org.apache.spark.sql.execution.streaming.runtime
        return getattr(getattr(states, f"{name}$"), "MODULE$")
