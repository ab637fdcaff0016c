"""What an application asks the cluster for, beside its graph: Services and host pools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from streamgraft._declaring import Declaring
from streamgraft._errors import ApplicationError, InvalidArgument
from streamgraft._graph import Graph
from streamgraft._location import caller
from streamgraft._streams import Stream
from streamgraft_common.declared_objects import HostPoolDeclaration, ServiceDeclaration


class ClusterObjects(Declaring):
    """Services and host pools: Kubernetes objects that come and go with the job."""

    def service(
        self,
        name: str,
        *,
        of: Stream | str | Callable[..., Any],
        port: int,
        target_port: int | None = None,
    ) -> None:
        """Have a Kubernetes Service for a TCP port at which an operator's code listens.

        `of`: the operator, by its stream, its function or its name. `port`: the Service's;
        `target_port`: the PE's, default the same. In a region the Service has the PEs of all
        channels. Its DNS name is `<job>-<name>.<namespace>.svc`. Code listens at the address in
        the environment variable STREAMGRAFT_BIND_ADDRESS.
        """
        self._note(
            self.graph.services,
            ServiceDeclaration,
            name=name,
            operator=self._operator_name(of),
            port=port,
            target_port=target_port,
        )

    def host_pool(
        self,
        name: str,
        *,
        tags: Sequence[str] = (),
        hosts: Sequence[str] = (),
        size: int | None = None,
        exclusive: bool = False,
    ) -> str:
        """Have a HostPool of the job's own, and return its name for placements.

        Its nodes carry all `tags`, or are `hosts`. PEs use at most `size` of them; of an
        `exclusive` pool PEs of other pools and jobs stay off.
        """
        self._note(
            self.graph.host_pools,
            HostPoolDeclaration,
            name=name,
            tags=list(tags),
            hosts=list(hosts),
            size=size,
            exclusive=exclusive,
        )
        return name

    def _note(self, noted: list[Any], model: Any, **fields: Any) -> None:
        declared = self._declared(model, **fields)
        if declared is not None:
            noted.append((caller(), declared))


def cluster_object_errors(graph: Graph) -> Iterator[ApplicationError]:
    """Yield what is wrong with Services and host pools."""
    known = [operator.name for operator in graph.operators]
    for location, service in graph.services:
        if service.operator not in known:
            yield InvalidArgument(
                location,
                f"service {service.name!r} is of operator {service.operator!r}, which does not"
                " exist",
                f"there are {', '.join(known) or 'none'}",
            )
        elif not graph.leads_to_a_sink(service.operator):
            yield InvalidArgument(
                location,
                f"service {service.name!r} is of operator {service.operator!r}, which leads to no"
                " sink: it runs nowhere",
                "add a sink behind it",
            )
