"""Kubernetes objects that an application declares beside its graph: Services and host pools."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from streamgraft_common.adl_model import AdlModel, Name, PartName, Token
from streamgraft_common.names import CONTROL_PORT

Port = Annotated[int, Field(ge=1, le=65535)]


class ServiceDeclaration(AdlModel):
    """A TCP port that an operator's code listens at, as a Kubernetes Service (cloud native Streams,
    section 5.1): in a region one for the PEs of all channels."""

    name: PartName
    operator: Name
    """Its PE has the port."""
    port: Port
    """Of the Service."""
    target_port: Port | None = None
    """Of the PE. Default: the same."""

    @model_validator(mode="after")
    def _is_free(self) -> Self:
        if (self.target_port or self.port) == CONTROL_PORT:
            raise ValueError(f"port {CONTROL_PORT} of each PE is the runtime's own: use another")
        return self


class HostPoolDeclaration(AdlModel):
    """A host pool of the job's own (cloud native Streams, section 6.2)."""

    name: PartName
    """What placements call it."""
    tags: list[Token] = Field(default=[], max_length=64)
    """Its nodes have all of these tags."""
    hosts: list[Annotated[str, Field(min_length=1, max_length=253)]] = Field(
        default=[], max_length=1024
    )
    """Names of its nodes, instead of tags."""
    size: int | None = Field(default=None, ge=1)
    """Nodes that PEs use at most. Default: all."""
    exclusive: bool = False
    """Whether PEs of other pools and jobs stay off its nodes."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if bool(self.tags) == bool(self.hosts):
            raise ValueError("a host pool has either tags or hosts")
        return self
