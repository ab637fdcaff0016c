"""The replayer: sends flights to Kafka by the clock, and loses none.

It is a process of its own. It tells its progress as JSON lines on stdout, one a second, and ends
with exit code 0 only if the brokers have acknowledged every flight.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import pandas as pd
from confluent_kafka import KafkaError, Message, Producer

from examples.flights import dataset
from examples.flights.clock import Clock, Seconds, schedule

TICK_SECONDS = 0.02
REPORT_SECONDS = 1.0
FLUSH_SECONDS = 60.0


@dataclass(frozen=True)
class Progress:
    """How far the replay is. `rate`: flights a second since the last report."""

    elapsed_seconds: float
    total: int
    sent: int
    acknowledged: int
    rate: float


def encoded(flights: pd.DataFrame) -> Iterator[bytes]:
    """Yield the record of each flight: a JSON object of its id and COLUMNS."""
    lines = flights[["id", *dataset.COLUMNS]].to_json(orient="records", lines=True)
    for line in str(lines).splitlines():
        yield line.encode()


class Replay:
    """Sends records to a topic, each when it is due (seconds from the start)."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,  # acks=all, order kept, no duplicates by retries
                "linger.ms": 50,
                "delivery.timeout.ms": 300_000,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        self._acknowledged = 0
        self._errors: list[str] = []

    def run(self, records: list[bytes], due: Seconds, report: Callable[[Progress], None]) -> bool:
        """Send everything; return whether every record was acknowledged."""
        start = reported = time.monotonic()
        sent = sent_before = 0
        report(Progress(0.0, len(records), 0, 0, 0.0))
        while sent < len(records) and not self._errors:
            now = time.monotonic()
            while sent < len(records) and due[sent] <= now - start:
                self._producer.produce(self._topic, records[sent], on_delivery=self._delivered)
                sent += 1
            self._producer.poll(0)
            if now - reported >= REPORT_SECONDS:
                rate = (sent - sent_before) / (now - reported)
                report(Progress(now - start, len(records), sent, self._acknowledged, rate))
                reported, sent_before = now, sent
            time.sleep(TICK_SECONDS)
        self._producer.flush(FLUSH_SECONDS)
        elapsed = time.monotonic() - start
        report(Progress(elapsed, len(records), sent, self._acknowledged, 0.0))
        for error in self._errors[:3]:
            print(f"not delivered: {error}", file=sys.stderr)
        return self._acknowledged == len(records)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._acknowledged += 1
        else:
            self._errors.append(str(error))


def main() -> None:
    """Replay: see `--help`. SIGTERM ends it at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", default="flights")
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--cycles", type=int, default=1)
    parser.add_argument("--cycle-seconds", type=float, required=True)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    clock = Clock(arguments.days, arguments.cycles, arguments.cycle_seconds)
    flights, due = schedule(dataset.flights(arguments.days), clock)
    replay = Replay(arguments.bootstrap_servers, arguments.topic)
    complete = replay.run(
        list(encoded(flights)),
        due,
        lambda progress: print(json.dumps(asdict(progress)), flush=True),
    )
    sys.exit(0 if complete else 1)


if __name__ == "__main__":
    main()
