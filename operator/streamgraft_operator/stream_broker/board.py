"""The subscription board: all Imports, all Exports, and how each pair of them stands. Pure.

A change of one object costs a look at each object of the other kind, whose expressions are parsed;
what it returns are the objects whose connections it changes. The board is lost with its process and
made again from the watches.
"""

from collections.abc import Mapping

from streamgraft_operator.stream_broker.matching import Key, Offer, Pair, Subscriber, pair


class Board:
    """Subscribers, offers, and the pairs among them."""

    def __init__(self) -> None:
        self._subscribers: dict[Key, Subscriber] = {}
        self._offers: dict[Key, Offer] = {}
        self._pairs: dict[Key, dict[Key, Pair]] = {}
        """By import, then by export."""
        self._imports: dict[Key, set[Key]] = {}
        """By export: the imports that are connected to it."""

    def subscriber(self, key: Key) -> Subscriber | None:
        """Return an import."""
        return self._subscribers.get(key)

    def offer(self, key: Key) -> Offer | None:
        """Return an export."""
        return self._offers.get(key)

    def pairs(self, subscriber: Key) -> Mapping[Key, Pair]:
        """Return the exports that an import wants."""
        return self._pairs.get(subscriber, {})

    def imports(self, offer: Key) -> list[Key]:
        """Return the imports that are connected to an export."""
        return sorted(self._imports.get(offer, ()))

    def set_subscriber(self, key: Key, subscriber: Subscriber | None) -> set[Key]:
        """Take in a changed import (None: it is gone); return the exports that are concerned."""
        after: dict[Key, Pair] = {}
        if subscriber is not None:
            found = ((offer.key, pair(subscriber, offer)) for offer in self._offers.values())
            after = {name: item for name, item in found if item is not None}
        before = self._pairs.pop(key, {})
        self._subscribers.pop(key, None)
        if subscriber is not None:
            self._subscribers[key], self._pairs[key] = subscriber, after
        concerned = {
            name
            for name in before.keys() | after.keys()
            if _connected(before.get(name)) != _connected(after.get(name))
        }
        for name in concerned:
            self._connect(key, name, connected=_connected(after.get(name)))
        return concerned

    def set_offer(self, key: Key, offer: Offer | None) -> set[Key]:
        """Take in a changed export (None: it is gone); return the imports that are concerned."""
        self._offers.pop(key, None)
        if offer is not None:
            self._offers[key] = offer
        concerned = set()
        for name, subscriber in self._subscribers.items():
            before = self._pairs[name].pop(key, None)
            after = pair(subscriber, offer) if offer is not None else None
            if after is not None:
                self._pairs[name][key] = after
            if before != after:
                concerned.add(name)
                self._connect(name, key, connected=_connected(after))
        return concerned

    def _connect(self, subscriber: Key, offer: Key, *, connected: bool) -> None:
        imports = self._imports.setdefault(offer, set())
        (imports.add if connected else imports.discard)(subscriber)
        if not imports:
            del self._imports[offer]


def _connected(found: Pair | None) -> bool:
    return found is not None and not found.obstacle
