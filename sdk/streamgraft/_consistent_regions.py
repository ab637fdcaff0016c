"""What an application's module calls for its consistent regions, and for sinks that commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from streamgraft._arguments import StreamLike, stream_names
from streamgraft._declaring import Declaring
from streamgraft._graph import ConsistentRegionNode, CutFunctionNode
from streamgraft._location import caller
from streamgraft._processes import is_worker
from streamgraft_common.adl import ConsistentRegion
from streamgraft_common.batches import Cut

if TYPE_CHECKING:
    CutFunction = TypeVar("CutFunction", bound=Callable[[Cut], None])


class ConsistentRegions(Declaring):
    """The part of an application that is about consistent regions."""

    _on_cut_request: Callable[[str], None] | None = None

    @property
    def cut_functions(self) -> dict[str, dict[str, Callable[[Cut], None]]]:
        """What sinks do when a cut is prepared and when it is complete, by sink."""
        found: dict[str, dict[str, Callable[[Cut], None]]] = {}
        for item in self.graph.cut_functions:
            found.setdefault(item.sink, {})[item.moment] = item.function
        return found

    def consistent_region(
        self,
        name: str,
        *,
        start: StreamLike | Sequence[StreamLike],
        end: StreamLike | Sequence[StreamLike] = (),
        trigger: Literal["periodic", "operatorDriven"] = "periodic",
        period_seconds: float | None = None,
        drain_timeout_seconds: float = 180.0,
        retained_cuts: int = 3,
        repository: bool = True,
        roll_back_on: Literal["damage", "failure", "never"] | None = None,
        max_rollbacks: int = 5,
    ) -> None:
        """Have a part of the graph checkpointed together: no record is between two operators then.

        `start`: its first operators; `end`: its last ones, default the sinks. Cuts are taken every
        `period_seconds` (default 30), or with trigger operatorDriven whenever one is asked for. One
        that takes longer than `drain_timeout_seconds` is given up. With `repository=False` cuts are
        on the checkpoint volume only, though the job has a repository.

        `roll_back_on`: what has all of it go back to the last cut by itself. damage: a checkpoint
        that can't be read; failure: also a pod that ended or was deleted, and a query that failed;
        None: damage, or never if something leaves the region by other ways than sinks that commit.
        After `max_rollbacks` in a row, without a cut between them, it does so no more.
        """
        if trigger == "periodic" and period_seconds is None:
            period_seconds = 30.0
        settings: dict[str, Any] = {
            "trigger": trigger,
            "period_seconds": period_seconds,
            "drain_timeout_seconds": drain_timeout_seconds,
            "retained_cuts": retained_cuts,
            "repository": repository,
            "max_rollbacks": max_rollbacks,
        }
        if roll_back_on is not None:
            settings["roll_back_on"] = roll_back_on
        first, last = stream_names(start), stream_names(end)
        node = ConsistentRegionNode(name, caller(), first, last, settings)
        if self._declared(ConsistentRegion, name="r", operators=["o"], **settings):
            self.graph.consistent_regions.append(node)

    def request_cut(self, region: str) -> None:
        """Ask for a cut of a consistent region, whatever its clock says. For functions of this
        application: call it in a sink's function; the batch that it is called with is in the cut.

        Calls while a cut is under way lead to one more. It returns once the request is noted, or
        after ten seconds without an API server. Outside of a PE it does nothing. Raises ValueError,
        and RuntimeError in a Python worker of Spark.
        """
        found = sorted(item.name for item in self.graph.consistent_regions)
        if region not in found:
            there = ", ".join(found) or "none"
            raise ValueError(f"there is no consistent region {region!r}; there are {there}")
        if is_worker():
            raise RuntimeError("only the driver can ask for cuts: call this in a sink's function")
        if self._on_cut_request is not None:
            self._on_cut_request(region)

    def on_cut_request(self, listener: Callable[[str], None]) -> None:
        """Tell a listener of all requests from now on: that of the PE."""
        self._on_cut_request = listener

    def on_prepare(self, sink: Callable[..., None] | str) -> Callable[[CutFunction], CutFunction]:
        """Declare what a sink does when a shard stands still for a cut of its consistent region.

        The function gets the Cut. What it raises is tried again, and in the end fails the cut; once
        it has returned, the function of `on_commit`, without which the sink is refused, must come
        to its end, whatever dies.
        """
        return self._at_cut(sink, "prepare")

    def on_commit(self, sink: Callable[..., None] | str) -> Callable[[CutFunction], CutFunction]:
        """Declare how a sink makes final what is in a cut of its consistent region.

        The function gets the Cut of each shard when all of the region is copied: what batches of
        this writer and incarnation up to `last_batch` have left is final then. It may come again.
        """
        return self._at_cut(sink, "commit")

    def _at_cut(
        self, sink: Callable[..., None] | str, moment: Literal["prepare", "commit"]
    ) -> Callable[[CutFunction], CutFunction]:
        location, name = caller(), self._operator_name(sink)
        if callable(sink) and all(item.function != sink for item in self.graph.operators):
            self._reject(
                f"on_{moment} is given {name!r}, which is no sink's function",
                f"write @app.on_{moment}(SINK), with the function or the name of a sink above it",
            )

        def declare(function: CutFunction) -> CutFunction:
            node = CutFunctionNode(name, moment, function, location)
            self.graph.cut_functions.append(node)
            return function

        return declare
