"""Changes of exports and imports that functions of the application ask for."""

from typing import Any

from streamgraft_common.resources import RuntimeStatus, StreamChange
from streamgraft_pe_runtime.protocol.clock import now


class StreamChanges:
    """The last change of each field, of earlier launches too: it may still have to be applied."""

    def __init__(self, launch: str) -> None:
        """`launch`: tells ours from each before, and from each time that our pod was this PE's."""
        self._launch = launch
        self._count = 0
        self._ours: dict[tuple[str, str], StreamChange] = {}

    def add(self, known: RuntimeStatus | None, operator: str, field: Any, value: Any) -> bool:
        """Take in a change; return whether it is one. `known`: what the API server has of us."""
        before = self._by_field(known).get((operator, field))
        if before is not None and before.value == value:
            return False
        self._count += 1
        name = f"{self._launch}.{self._count}"
        change = StreamChange(operator=operator, field=field, value=value, id=name, at=now())
        self._ours[operator, field] = change
        return True

    def all(self, known: RuntimeStatus | None) -> list[StreamChange]:
        """Return what is to be said."""
        return list(self._by_field(known).values())

    def _by_field(self, known: RuntimeStatus | None) -> dict[tuple[str, str], StreamChange]:
        before = known.stream_changes if known else []
        return {(change.operator, change.field): change for change in before} | self._ours
