"""Whether an import is connected to an export. Pure; each pair by itself."""

from dataclasses import dataclass, field
from functools import lru_cache

from streamgraft_common.brokers import addresses
from streamgraft_common.resources import ExportSpec, ImportSpec
from streamgraft_common.shared_streams import (
    Expression,
    ExpressionError,
    check_properties,
    meets,
    misfit,
    parse,
    read_schema,
    to_sql,
)

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True)
class Offer:
    """An Export; `problem`: what is wrong with it, '' if nothing is."""

    key: Key
    spec: ExportSpec
    problem: str = ""

    @classmethod
    def of(cls, key: Key, spec: ExportSpec) -> "Offer":
        """Return the offer that an Export makes."""
        problem = check_properties(spec.properties)
        if spec.name is None and not spec.properties:  # no CEL rule can look at such a map
            problem = "it has neither a name nor properties, by which imports find it"
        try:
            _schema(spec.stream_schema)
        except ValueError as error:
            problem = str(error)
        return cls(key, spec, problem)


@dataclass(frozen=True)
class Subscriber:
    """An Import; `problem`: what is wrong with it, '' if nothing is."""

    key: Key
    spec: ImportSpec
    subscription: Expression | None = None
    row_filter: str = ""
    """Spark expression of its filter."""
    problem: str = ""

    @classmethod
    def of(cls, key: Key, spec: ImportSpec) -> "Subscriber":
        """Return the subscriber that an Import is."""
        subscription, row_filter, problem = None, "", ""
        try:
            schema = _schema(spec.stream_schema)
            what = "subscription"
            subscription = None if spec.subscription is None else parse(spec.subscription)
            if spec.filter:
                what = "filter"
                row_filter = to_sql(parse(spec.filter), schema)
        except ExpressionError as error:
            problem = f"its {what} is not valid, {error}"
        except ValueError as error:
            problem = str(error)
        return cls(key, spec, subscription, row_filter, problem)


@dataclass(frozen=True)
class Pair:
    """An import that wants an export. `obstacle`: why they are not connected, '' if they are."""

    export: Key
    topic: str
    obstacle: str = field(default="")


def pair(subscriber: Subscriber, offer: Offer) -> Pair | None:
    """Return how an import stands to an export; None if it does not want it, or may not see it."""
    if (
        subscriber.problem
        or offer.problem
        or not _sees(subscriber, offer)
        or not _wants(subscriber, offer)
    ):
        return None
    return Pair(offer.key, offer.spec.topic, _obstacle(subscriber, offer))


def _sees(subscriber: Subscriber, offer: Offer) -> bool:
    here, there = subscriber.key[0], offer.key[0]
    if here == there:
        return True
    looks, allows = subscriber.spec.namespaces, offer.spec.namespaces
    return bool({there, "*"} & {*looks}) and bool({here, "*"} & {*allows})


def _wants(subscriber: Subscriber, offer: Offer) -> bool:
    if subscriber.spec.from_job not in (None, offer.spec.job):
        return False
    if subscriber.subscription is None:
        return subscriber.spec.name == offer.spec.name
    return meets(offer.spec.properties, subscriber.subscription)


def _obstacle(subscriber: Subscriber, offer: Offer) -> str:
    if subscriber.spec.filter and not offer.spec.allow_filter:
        return "it allows no filter"
    ours, theirs = subscriber.spec, offer.spec
    if (addresses(ours.bootstrap_servers), ours.tls) != (
        addresses(theirs.bootstrap_servers),
        theirs.tls,
    ):
        return "its job has other brokers"
    return misfit(_schema(subscriber.spec.stream_schema), _schema(offer.spec.stream_schema))


_schema = lru_cache(4096)(read_schema)
