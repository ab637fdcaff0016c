"""Sends what an example generates to Kafka."""

import argparse
import json
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import KafkaError, Producer

Record = tuple[str, dict[str, Any]]
"""A topic, and a value."""


def send(generate: Callable[[int], Iterable[Record]], arguments: list[str] | None = None) -> None:
    """Send so many generated records as the command line says. SystemExit if one is lost."""
    parser = argparse.ArgumentParser(description="Send generated records to Kafka.")
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--count", type=int, default=10_000, help="default: %(default)s")
    chosen = parser.parse_args(arguments)
    producer = Producer({"bootstrap.servers": chosen.bootstrap_servers})
    errors: list[str] = []

    def arrived(error: KafkaError | None, _: object) -> None:
        if error is not None:
            errors.append(error.str())

    for topic, value in generate(chosen.count):
        while True:
            try:
                producer.produce(topic, json.dumps(value), on_delivery=arrived)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush()
    if errors:
        raise SystemExit(f"{len(errors)} of {chosen.count} records were not sent: {errors[0]}")
