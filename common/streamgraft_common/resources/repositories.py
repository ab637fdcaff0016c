"""Where copies of checkpoints are kept, besides the volume that the checkpoints are on."""

from typing import Annotated

from pydantic import Field

from streamgraft_common.resources.base import Model, ObjectName


class S3Repository(Model):
    """A bucket of S3, or of what speaks like it; it must honour conditional writes."""

    bucket: Annotated[str, Field(min_length=3, max_length=63)]
    """Name of the bucket."""
    prefix: str = ""
    """What all keys begin with."""
    endpoint: Annotated[str, Field(pattern=r"^https?://.+")] | None = None
    """Its address. Default: that of AWS."""
    region: str | None = None
    """Region of the bucket. Default: us-east-1."""
    secret: ObjectName | None = None
    """Secret with `access-key-id` and `secret-access-key`, `session-token` if there is one, and
    the authority that signed the certificate (`ca.crt`). Default: what the pod's environment has,
    such as the rights of its service account."""


class RedisRepository(Model):
    """Servers of Redis, found by a name of DNS."""

    service: Annotated[str, Field(min_length=1)]
    """Name of a headless Service, of the job's namespace unless it has dots; each address that DNS
    has for it is a server."""
    port: Annotated[int, Field(ge=1, le=65535)] = 6379
    """Port of the servers."""
    shard_count: Annotated[int, Field(ge=1)] = 1
    """Shards that what is kept is dealt to. There must be shardCount times replicaCount servers."""
    replica_count: Annotated[int, Field(ge=1)] = 1
    """Servers that each thing is kept on."""
    restricted_property: str | None = None
    """Key of the Secret `restrictedPropertiesSecret` with the servers' password."""
    authority: str | None = None
    """Key of that Secret with the authority (PEM) that signed the servers' certificates: they are
    spoken to by TLS. Default: no TLS."""
