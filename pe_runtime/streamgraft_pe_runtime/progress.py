"""What the queries did: read from Spark once a second, into metrics and the consumer group."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_pe_runtime import real_time
from streamgraft_pe_runtime.beyond import Beyond
from streamgraft_pe_runtime.brokers import Bounds, Brokers, KafkaException
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged
from streamgraft_pe_runtime.connections import Connections, connected
from streamgraft_pe_runtime.driver_counts import DriverCounts
from streamgraft_pe_runtime.joint_checkpoints import is_joint
from streamgraft_pe_runtime.left_out import LeftOut
from streamgraft_pe_runtime.log_starts import note_read_up
from streamgraft_pe_runtime.losses import Gap
from streamgraft_pe_runtime.markers import Markers
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.pacing import Pace, Work, fill_a_batch
from streamgraft_pe_runtime.plan import batch_limit
from streamgraft_pe_runtime.positions import Positions, merged, place_in, read_checkpoint
from streamgraft_pe_runtime.pressure import cpu_pressure
from streamgraft_pe_runtime.protocol import Load
from streamgraft_pe_runtime.query import ShardQuery
from streamgraft_pe_runtime.reports import (
    batch_seconds,
    ended_at,
    owned_partitions,
    shares,
)
from streamgraft_pe_runtime.scan_order import topic_of
from streamgraft_pe_runtime.settings import consumer_group
from streamgraft_pe_runtime.topic_ids import Topics
from streamgraft_pe_runtime.watched import Watched

log = logging.getLogger(__name__)

_PERIOD_SECONDS = 1.0
_CUT_SECONDS = 0.2
"""How often positions are told by who is cut: whoever comes next stops once they are the ends."""
_CALM_PERIODS = 30


class Progress:
    """Follows the shards' queries. Calls to Spark and Kafka run in worker threads."""

    def __init__(self, metadata: PeMetadata, metrics: PeMetrics, driver: DriverCounts) -> None:
        self._metadata = metadata
        self._metrics = metrics
        self._driver = driver
        self._busy_before = driver.busy_seconds()
        self._shards: dict[int, Watched] = {}
        self._published: Positions = {}
        self._known: dict[tuple[str, str], list[int]] = {}
        self._shown: set[tuple[str, int]] = set()
        """Partitions that have gauges."""
        self._brokers = connected(metadata, {}, driver.kafka_clients(metadata))
        self._failing: set[str] = set()
        self.left_out, self.connections = LeftOut(metrics, driver), Connections()
        self._markers, self._beyond = Markers(), Beyond()
        self._pace = Pace(metadata.trigger_seconds)

    def replan(self, metadata: PeMetadata) -> None:
        """Follow other inputs from now on. Blocks."""
        gone = [port for port in self._metadata.inputs if port not in metadata.inputs]
        known = self._brokers
        if consumer_group(metadata) != consumer_group(self._metadata):
            known, self._published = {}, {}  # our pod is another stage's now
        self._brokers = connected(metadata, known, self._driver.kafka_clients(metadata))
        if metadata.real_time != self._metadata.real_time:  # it is measured in another way now
            self._busy_before = self._driver.busy_seconds()
        self._metadata = metadata
        self._pace = Pace(metadata.trigger_seconds)
        for watched in list(self._shards.values()):
            for port in gone:
                watched.partitions.pop(port, None)

    def brokers(self, bootstrap_servers: str) -> Brokers:
        """Return those of an input, or of a stream to another PE. Raises KafkaException."""
        if (found := self._brokers.get(bootstrap_servers)) is None:
            raise KafkaException(f"brokers at {bootstrap_servers} are not watched: see the log")
        return found

    def watch(
        self,
        shards: Sequence[int],
        query: ShardQuery,
        checkpoint: Path,
        topics: Topics | None = None,
    ) -> None:
        """Follow the query of shards, instead of earlier ones. `topics`: what it reads. Blocks."""
        found = read_checkpoint(checkpoint)
        scans = [*dict.fromkeys(found.scans)]
        unclean = not found.clean
        watched = Watched(shards, query, checkpoint, found.positions, unclean, scans, topics)
        for shard in shards:
            if before := self._shards.get(shard):
                self._collect(before)
                if before.checkpoint == checkpoint:  # a restart: batches go on to be counted
                    watched.batch = before.batch
            self._metrics.add_shard(shard)
            self._shards[shard] = watched
        self.left_out.begin(self._metadata.inputs)
        for port in self._metadata.inputs:
            watched.partitions[port] = self._partitions(watched, port)
        if not query.real_time:
            self._set_pace(watched, cpu_pressure())

    def _collect(self, watched: Watched) -> None:
        """Read what a query has done since the last call. Blocks."""
        with watched.collecting:
            for report in watched.query.reports(watched.batch):
                self._record(watched, report)

    @property
    def _queries(self) -> list[Watched]:
        return list({id(watched): watched for watched in list(self._shards.values())}.values())

    def release(self, shard: int, checkpoint: Path, *, publish: bool) -> str | None:
        """Take the last reports of a stopped query and forget it. Blocks.

        `publish`: where it ended; not if a new owner surely waits for it, which does it from the
        same checkpoint. Returns when its last batch with data ended.
        """
        watched = self._shards.get(shard)
        if watched is None:
            return None
        self._collect(watched)
        self.left_out.count()  # the next round may be another PE's
        if publish:
            watched.positions |= read_checkpoint(checkpoint).positions
            # An earlier owner's last word may have come behind ours. To a region that sleeps it
            # would be lag, and wake it up.
            for key in watched.positions:
                self._published.pop(key, None)
            self._publish()
        del self._shards[shard]
        self._metrics.drop_shard(shard)
        for port in watched.partitions:
            for place in self._places(port):
                for number in self._numbers(port, place, shard):
                    self._metrics.drop_partition(place, number)
        return watched.last_batch_at

    def loads(self) -> dict[int, Load]:
        """Return the load of each shard over the last period, once there was one."""
        watched = dict(self._shards)
        return {shard: item.loads[shard] for shard, item in watched.items() if shard in item.loads}

    def behind(self) -> bool:
        """Return whether what waits for a query would fill half a batch or more; never so in
        real-time mode, whose batches have no limit."""
        return any(watched.behind for watched in list(self._queries))

    async def run(self) -> None:
        """Follow all shards until cancelled."""
        rounds, clock = 0, asyncio.get_running_loop().time
        while True:
            following = clock() + _PERIOD_SECONDS
            await asyncio.to_thread(self._follow, rounds)
            rounds += 1
            while self._driver.is_cut() and clock() + _CUT_SECONDS < following:
                await asyncio.sleep(_CUT_SECONDS)
                await asyncio.to_thread(self._tell)
            await asyncio.sleep(max(following - clock(), 0.1))

    def _tell(self) -> None:
        """Tell where the queries have come to."""
        for watched in self._queries:
            try:
                self._collect(watched)
            except Exception as error:  # a query may end, or be released, between two calls
                log.debug("progress of shards %s: %r", watched.shards, error)
        self._publish()

    def _follow(self, rounds: int) -> None:
        calm = rounds % _CALM_PERIODS == 0
        if calm:  # brokers drop what is old, and a former owner's last word may have come late
            self._published = {}
            now = self._driver.ids_of(self._metadata.inputs)
            for watched in self._queries:
                watched.check_topics(now)
        self._tell()
        self._count_busy_seconds()
        self.left_out.count()
        for name, brokers in self._brokers.items():  # which another thread replaces as a whole
            self._ask(name, brokers, calm=calm)
        self._forget()
        self._measure_loads()
        pressure = cpu_pressure()
        for watched in self._queries:
            if not watched.query.real_time:  # after an edit that of before may still run
                self._set_pace(watched, pressure)
            elif self._metadata.real_time:
                self._check_slots(watched)

    def _count_busy_seconds(self) -> None:
        try:
            busy = self._driver.busy_seconds()
        except Exception as error:  # the session may have ended
            log.debug("busy seconds of the driver: %r", error)
            return
        spent, self._busy_before = max(busy - self._busy_before, 0), busy
        self._metrics.busy_seconds.inc(self._pace.needed(spent))

    def _check_slots(self, watched: Watched) -> None:
        """Let a real-time query start again, and say so, if topics have outgrown its slots."""
        counts = {topic: len(numbers) for topic, numbers in self._known.items()}
        slots, scans = self._metadata.slots, watched.query.scans
        if reason := real_time.starvation(self._metadata, counts, scans, slots):
            watched.query.give_up(reason)

    def _set_pace(self, watched: Watched, pressure: float) -> None:
        """Let a shard's query look for records as often as the PE can afford."""
        now = watched.query.interval_seconds
        lag, limit = sum(watched.lags.values()), batch_limit(self._metadata)
        watched.behind = self._pace.is_behind(lag, limit)
        queries, slots = len(self._queries), self._metadata.slots
        shards = len(watched.shards)
        work = Work(queries, slots, shards, watched.stateful, fill_a_batch(lag, limit), pressure)
        seconds = self._pace.interval(now, work)
        self._metrics.trigger_seconds.set(seconds)
        if seconds == now:
            return
        try:
            watched.query.set_interval(seconds)
        except Exception as error:  # the query may have ended
            log.debug("trigger interval: %r", error)

    def _measure_loads(self) -> None:
        now = time.monotonic()
        for watched in self._queries:
            watched.measure_load(now)

    def _record(self, watched: Watched, report: Mapping[str, Any]) -> None:
        watched.batch = report["batchId"]
        watched.unclean = False
        watched.last_batch_at = ended_at(report)
        ends = (source["endOffset"] for source in report["sources"])
        watched.positions |= merged(ends, watched.scans)
        watched.stateful = bool(report["stateOperators"])
        self._pace.took(
            batch_seconds(report), report["numInputRows"], batch_seconds(report, "addBatch")
        )
        found = shares(report, watched.shards)
        self._metrics.count(report, found)
        for shard, share in found.items():
            self._count(watched, shard, report, share)

    def _count(self, watched: Watched, shard: int, report: Mapping[str, Any], share: float) -> None:
        """Note how long a shard's share of a batch took, and what state it has."""
        metrics, label = self._metrics, str(shard)
        before = watched.batch_seconds.get(shard, 0.0)
        watched.batch_seconds[shard] = before + batch_seconds(report) * share
        if operators := report["stateOperators"]:
            if is_joint(watched.checkpoint):  # Spark tells the sums over shards with records
                rows, memory = watched.query.state_sizes(shard)
            else:
                rows = sum(operator["numRowsTotal"] for operator in operators)
                memory = sum(operator["memoryUsedBytes"] for operator in operators)
            metrics.state_rows.labels(label).set(rows)
            metrics.state_bytes.labels(label).set(memory)

    def _publish(self) -> None:
        """Commit new positions to the consumer group; what fails is tried again next time."""
        current: Positions = {}
        for watched in self._queries:
            current |= self._past_markers(watched.positions)
        for name, brokers in self._brokers.items():
            topics = {
                topic
                for port in self._metadata.inputs
                if port.bootstrap_servers == name
                for topic in self._places(port)
            }
            fresh = {
                key: offset
                for key, offset in current.items()
                if key[0] in topics and self._published.get(key) != offset
            }
            if not fresh:
                continue
            try:
                brokers.publish(fresh)
                self._published |= fresh
            except KafkaException as error:
                log.warning("positions not published: %s", error)

    def _ask(self, name: str, brokers: Brokers, *, calm: bool) -> None:
        """Read the bounds of the logs of one set of brokers."""
        ports = [port for port in self._metadata.inputs if port.bootstrap_servers == name]
        failed: dict[str, str] = {}
        for port in ports:
            try:
                self._know(brokers, port, calm=calm)
            except KafkaException as error:  # what was known of the topic still counts
                failed[port.topic] = str(error)
        bounds = brokers.bounds(key for port in ports for key in self._owned(port))
        if self._metadata.real_time:
            self._look_for_records(brokers, bounds)
        self._show(bounds)
        for (topic, number), why in bounds.failed.items():
            failed[topic] = f"partition {number}: {why}"
        if failed and name not in self._failing:
            more = f", and of {len(failed) - 1} more topics" if len(failed) > 1 else ""
            first = next(f"{topic}: {why}" for topic, why in failed.items())
            log.warning("positions not read from Kafka at %s: %s%s", name, first, more)
        self.connections.look(self._metadata, name, brokers, failed, calm=calm)
        (self._failing.add if failed else self._failing.discard)(name)

    def _look_for_records(self, brokers: Brokers, bounds: Bounds) -> None:
        """Find out whether there are records where positions have stood still before the end."""
        for watched in self._queries:
            for key, position in list(watched.positions.items()):
                end = bounds.found.get(key, (0, 0))[1]
                if not self._markers.wants_look(key, position, end):
                    continue
                try:
                    found = brokers.has_records(key, position)
                    self._markers.looked(key, position, end, records=found)
                    if not found:
                        note_read_up(watched.checkpoint, key, position, end)
                except (KafkaException, CheckpointDamaged, OSError) as error:
                    log.debug("records of %s: %s", key, error)

    def _past_markers(self, positions: Positions) -> Positions:
        return {key: self._markers.past(key, at) for key, at in list(positions.items())}

    def _know(self, brokers: Brokers, port: InputPort, *, calm: bool) -> None:
        outside = self._metadata.region is None and port.partitions is None
        for topic in map(topic_of, self._places(port)) if outside else ():
            if calm or not self._known.get((port.bootstrap_servers, topic)):
                self._known[port.bootstrap_servers, topic] = brokers.partitions(topic)

    def _places(self, port: InputPort) -> Sequence[str]:
        if port.imported:
            return self._driver.imported_topics(port.operator)
        return [place_in(self._metadata.inputs, port)]

    def _owned(self, port: InputPort) -> list[tuple[str, int]]:
        queries = self._queries
        for watched in queries:
            watched.partitions[port] = self._partitions(watched, port)
        return [key for watched in queries for key in watched.partitions.get(port, ())]

    def _partitions(self, watched: Watched, port: InputPort) -> list[tuple[str, int]]:
        """Return what a query reads of an input, for the shards that it still has."""
        return [
            (place, number)
            for place in self._places(port)
            for shard in watched.shards
            if self._shards.get(shard) is watched
            for number in self._numbers(port, place, shard)
        ]

    def _numbers(self, port: InputPort, place: str, shard: int) -> list[int]:
        known = self._known.get((port.bootstrap_servers, topic_of(place)), ())
        return owned_partitions(port, self._metadata.region is not None, shard, known)

    def _forget(self) -> None:
        """Drop the gauges of partitions that no query reads any more: their age would hold the
        autoscaler for ever. A release drops them at once, but we may be about to set them then."""
        held: set[tuple[str, int]] = set()
        for watched in self._queries:
            read = watched.read()
            watched.lags = {key: lag for key, lag in watched.lags.items() if key in read}
            held |= read
        for topic, number in self._shown - held:
            self._metrics.drop_partition(topic, number)
        self._shown &= held

    def _show(self, bounds: Bounds) -> None:
        held: Positions = {}
        owners: dict[tuple[str, int], Watched] = {}
        for watched in self._queries:
            read = watched.read()
            held |= {key: watched.position(key) for key in read}
            owners |= dict.fromkeys(read, watched)
        self._beyond.sort_out(bounds, held)
        for key, (start, end) in bounds.found.items():
            if key not in held:
                continue  # released meanwhile
            topic, number = key
            labels = (topic, str(number))
            self._metrics.end_offset.labels(*labels).set(end)
            self._metrics.lost_records.labels(*labels)  # alerts need the 0 before
            position = self._markers.past(key, held[key])
            if 0 <= position < start and not owners[key].may_have_read:
                self.left_out.lose(Gap(key, position, start))
            # Without a position a query starts at the log's start, as it does behind retention.
            position = max(position, start)
            self._metrics.committed_offset.labels(*labels).set(position)
            self._metrics.lag.labels(*labels).set(max(end - position, 0))
            self._metrics.position_ages.read(topic, number, bounds.asked_at[key])
            self._shown.add(key)
            owners[key].lags[key] = max(end - position, 0)
