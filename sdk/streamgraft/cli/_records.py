"""`streamgraft records`: write records to a topic and read those of one, for a first try."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from confluent_kafka import KafkaException

from streamgraft import _records as records
from streamgraft.cli import _output as output
from streamgraft.cli._embedded import running_kafka
from streamgraft.cli._options import Target
from streamgraft.cli._output import CommandError


def settings(target: Target, servers: str | None, properties: list[str]) -> dict[str, str]:
    """Return the client's properties. Raises CommandError where no brokers are known."""
    chosen = servers or (running_kafka() if target.may_be_embedded else None)
    if chosen is None:
        raise CommandError(
            "say where Kafka is: --bootstrap-servers HOST:PORT; or run `streamgraft up`"
            if target.may_be_embedded
            else "say where that cluster's Kafka is: --bootstrap-servers HOST:PORT"
        )
    pairs = [text.partition("=") for text in properties]
    if wrong := next((name for name, equals, _ in pairs if not equals), None):
        raise CommandError(f"{wrong} is not a property: write NAME=VALUE, as for librdkafka")
    quiet = {"log_level": "2"}  # what goes wrong is in the error
    return {"bootstrap.servers": chosen, **quiet, **{name: value for name, _, value in pairs}}


def write(
    client: dict[str, str],
    topic: str,
    lines: Iterable[bytes],
    key: str | None,
    partitions: int | None,
) -> None:
    """Write each line, a JSON object, as a record. `partitions`: of a topic that is missing."""
    try:
        if partitions is not None:
            records.create(client, topic, partitions)
        elif not records.exists(client, topic):
            raise CommandError(f"there is no topic {topic}: --create N makes it, with N partitions")
        written = records.write(client, topic, _parsed(lines, key), key)
    except (KafkaException, TimeoutError) as error:
        raise CommandError(f"topic {topic} can't be written: {error}") from error
    output.say(f"{written} records written to {topic}")


def read(client: dict[str, str], topic: str, count: int | None, follow: bool) -> None:
    """Print each record as a line."""

    def tell(rows: int) -> None:
        output.note(f"{rows} of {count} records so far; waiting up to a minute for the next one")

    try:
        for row in records.read(client, topic, count=count, follow=follow, tell=tell):
            output.say(json.dumps(row))
    except (KafkaException, TimeoutError, ValueError) as error:
        raise CommandError(f"topic {topic} can't be read: {error}") from error


def _parsed(lines: Iterable[bytes], key: str | None) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except UnicodeDecodeError as error:
            raise CommandError(
                f"line {number} is not UTF-8; those before it are written"
            ) from error
        except ValueError as error:
            row = error
        if not isinstance(row, dict):
            raise CommandError(f"line {number} is not a JSON object; those before it are written")
        if key is not None and key not in row:
            raise CommandError(f"line {number} has no {key!r}; those before it are written")
        yield row
