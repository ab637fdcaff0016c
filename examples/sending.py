"""Sends what an example generates to Kafka."""

import argparse
import json
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Producer

Record = tuple[str, dict[str, Any]]
"""A topic, and a value."""


def send(generate: Callable[[int], Iterable[Record]], arguments: list[str] | None = None) -> None:
    """Send so many generated records as the command line says."""
    parser = argparse.ArgumentParser(description="Send generated records to Kafka.")
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--count", type=int, default=10_000, help="default: %(default)s")
    chosen = parser.parse_args(arguments)
    producer = Producer({"bootstrap.servers": chosen.bootstrap_servers})
    for topic, value in generate(chosen.count):
        producer.produce(topic, json.dumps(value))
        producer.poll(0)
    producer.flush()
