"""Producers whose records come once and in their order, whatever is sent again."""

from collections.abc import Mapping

from confluent_kafka import Producer


def idempotent(servers: str, settings: Mapping[str, str | int] | None = None) -> Producer:
    """Return a producer that numbers what it sends.

    Another one may put a record behind its successor, or write it twice, where a request is
    answered late or not at all: as by a broker that has just made a topic.
    """
    return Producer({**(settings or {}), "bootstrap.servers": servers, "enable.idempotence": True})
