"""Streams for and of other jobs, in the application language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from streamgraft._arguments import StreamLike, stream_names
from streamgraft._declaring import Declaring
from streamgraft._processes import is_worker
from streamgraft._streams import Stream
from streamgraft_common.shared_streams import check_properties, parse
from streamgraft_common.shared_streams.declarations import ExportDeclaration, ImportDeclaration

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


StreamListener = Callable[[str, str, Any], None]
"""Takes operator, field and new value."""


class SharedStreams(Declaring):
    """Exports and imports: declared when the module is run, changed by functions while it runs."""

    _listener: StreamListener | None = None

    def export(
        self,
        input: StreamLike,
        *,
        name: str | None = None,
        properties: Mapping[str, Any] | None = None,
        allow_filter: bool = True,
        namespaces: Sequence[str] = (),
        partitions: int = 1,
        uid: str | None = None,
    ) -> None:
        """Publish a stream for other jobs, under a name or properties, or both.

        Properties are integers, floats, texts, or lists of them. `allow_filter`: whether imports
        may have a filter. Jobs of other `namespaces` ("*": all) may import it as well. `uid`: the
        operator's name; None: that of the stream and `-export`.
        """
        inputs = stream_names(input)
        exported = self._declared(
            ExportDeclaration,
            name=name,
            properties=dict(properties or {}),
            allow_filter=allow_filter,
            namespaces=list(namespaces),
            partitions=partitions,
        )
        name = uid or "-".join((*inputs, "export"))
        self._add(name, "export", inputs=inputs, exported=exported)

    def import_stream(
        self,
        stream: str,
        *,
        schema: str | StructType,
        name: str | None = None,
        subscription: str | None = None,
        filter: str | None = None,
        from_job: str | None = None,
        namespaces: Sequence[str] = (),
        starting_offsets: Literal["earliest", "latest"] = "earliest",
    ) -> Stream:
        """Read what other jobs export: the export of a `name`, or all whose properties meet the
        `subscription`. Of their columns those of `schema` are read, of rows those that the
        `filter` is true of. `starting_offsets`: where an export begins that is new to this import.
        """
        imported = self._declared(
            ImportDeclaration,
            name=name,
            subscription=subscription,
            filter=filter,
            from_job=from_job,
            namespaces=list(namespaces),
            starting_offsets=starting_offsets,
        )
        return self._add(stream, "import", outputs=(stream,), imported=imported, schema=schema)

    def set_properties(self, export: str, properties: Mapping[str, Any]) -> None:
        """Publish an export under other properties from now on. For functions of this application:
        call it in a sink's function, which is called with each batch, in the driver.

        Like `kubectl edit`, in a moment, and of equal calls in a row the first counts. Outside of a
        PE it does nothing. Raises ValueError, and RuntimeError in a Python worker of Spark.
        """
        if problem := check_properties(properties):
            raise ValueError(problem)
        self._tell(export, "export", "properties", dict(properties))

    def set_subscription(self, stream: StreamLike, subscription: str) -> None:
        """Have an import read all exports whose properties meet the subscription, from now on; as
        `set_properties`. Raises ExpressionError, which is a ValueError, too.
        """
        parse(subscription)
        (name,) = stream_names(stream)
        self._tell(name, "import", "subscription", subscription)

    def set_filter(self, stream: StreamLike, filter: str) -> None:
        """Have an import read the rows that the filter is true of, from now on; empty: all rows. As
        `set_subscription`.
        """
        if filter:
            parse(filter)
        (name,) = stream_names(stream)
        self._tell(name, "import", "filter", filter)

    def on_stream_change(self, listener: StreamListener) -> None:
        """Tell a listener of all changes from now on: that of the PE."""
        self._listener = listener

    def _tell(self, name: str, kind: str, field: str, value: Any) -> None:
        found = sorted(item.name for item in self.graph.operators if item.kind == kind)
        if name not in found:
            there = ", ".join(found) or "none"
            raise ValueError(f"there is no {kind} {name!r}; there are {there}")
        if is_worker():
            raise RuntimeError("only the driver can change streams: call this in a sink's function")
        if self._listener is not None:
            self._listener(name, field, value)
