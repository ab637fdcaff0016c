"""What an Import or Export should say, and what a PE should read. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgraft_common.resources import MatchedImport
from streamgraft_common.text import listed
from streamgraft_operator.kit.conditions import READY, State
from streamgraft_operator.stream_broker.matching import Key, Offer, Pair, Subscriber

FITS = "Fits"
SHOWN = 3
"""Names in a message."""


@dataclass(frozen=True)
class ImportDecision:
    """What an import reads, and what its status says."""

    matched: MatchedImport
    exports: tuple[str, ...]
    states: tuple[State, ...]


@dataclass(frozen=True)
class ExportDecision:
    """What an export's status says."""

    imports: tuple[str, ...]
    states: tuple[State, ...]


def import_step(subscriber: Subscriber, pairs: Sequence[Pair]) -> ImportDecision:
    """Return what an import with such pairs reads."""
    connected = sorted((item for item in pairs if not item.obstacle), key=lambda item: item.export)
    obstacles = sorted((item for item in pairs if item.obstacle), key=lambda item: item.export)
    matched = MatchedImport(
        operator=subscriber.spec.operator,
        topics=sorted(item.topic for item in connected),
        filter=subscriber.row_filter,
    )
    exports = tuple(_text(item.export) for item in connected)
    return ImportDecision(
        matched, exports, (_ready(subscriber, exports), _fits(subscriber, obstacles))
    )


def export_step(offer: Offer, imports: Sequence[Key]) -> ExportDecision:
    """Return what an export with such imports says."""
    names = tuple(map(_text, imports))
    if offer.problem:
        return ExportDecision(names, (State(READY, "False", "Invalid", offer.problem),))
    message = f"{len(names)} imports read it"
    return ExportDecision(names, (State(READY, "True", "Exported", message),))


def _ready(subscriber: Subscriber, exports: Sequence[str]) -> State:
    if subscriber.problem:
        return State(READY, "False", "Invalid", subscriber.problem)
    if not exports:
        wanted = subscriber.spec.subscription or subscriber.spec.name
        return State(READY, "False", "NoExport", f"no export that fits is there for {wanted}")
    return State(READY, "True", "Connected", f"it reads {listed(exports, SHOWN)}")


def _fits(subscriber: Subscriber, obstacles: Sequence[Pair]) -> State:
    if subscriber.problem:
        return State(FITS, "False", "Invalid", subscriber.problem)
    if obstacles:
        texts = [f"{_text(item.export)}: {item.obstacle}" for item in obstacles]
        message = f"it takes nothing of {listed(texts, SHOWN)}"
        return State(FITS, "False", "DoesNotFit", message)
    return State(FITS, "True", "Fits", "all exports that it wants fit")


def _text(key: Key) -> str:
    return "/".join(key)
