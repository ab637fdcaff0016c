"""Where a Job's bundle comes from."""

from typing import Annotated, Literal

from pydantic import Field

from streamgraft_common import names
from streamgraft_common.resources.base import CelRule, Model, ObjectName


class ConfigMapBundle(Model):
    """A bundle in a ConfigMap of the job's namespace (binaryData), 1 MiB at most."""

    name: ObjectName
    """Name of the ConfigMap."""
    key: str = "bundle.zip"
    """Its key."""


class GitBundle(Model):
    """A bundle that is kept in a git repository, as built by `streamgraft build`."""

    url: Annotated[str, Field(pattern=r"^https?://.+")]
    """The repository, by HTTP."""
    ref: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")] = "HEAD"
    """Branch, tag or full commit id."""
    path: Annotated[str, Field(pattern=r"^[^/:-][^:]*$")] = "bundle.zip"
    """The bundle's path in the repository."""


class BundleSource(Model):
    """Exactly one of `configMap`, `file`, `url` and `git`."""

    name: str | None = None
    """Name of the application that the bundle must hold; another one is refused."""
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """sha256 of the bundle, in hexadecimal digits; with another one at its place the job waits.
    `streamgraft submit` sets it, so a new bundle is never planned with the spec of before."""
    config_map: ConfigMapBundle | None = None
    """A ConfigMap: what `streamgraft submit` uploads."""
    file: Annotated[str, Field(pattern=r"^/.+")] | None = None
    """Path that the operator and the PEs both see (a shared volume)."""
    url: Annotated[str, Field(pattern=r"^https?://.+")] | None = None
    """Address of the bundle; the operator fetches it, the pods get its copy."""
    git: GitBundle | None = None
    """A file in a git repository; the operator fetches it, the pods get its copy."""
    pull_policy: Literal["IfNotPresent", "Always"] = "IfNotPresent"
    """For url and git. Always: fetched anew with every edit of the Job. IfNotPresent: only if the
    source was edited."""
    secret: ObjectName | None = None
    """For url and git: Secret with the key `token` (sent as a bearer token, to git as a password),
    or with `username` and `password`; its key `hosts` lists the hosts that it may be sent to."""

    @property
    def fetched(self) -> bool:
        """Whether the operator fetches it into a ConfigMap of the job."""
        return self.url is not None or self.git is not None

    def mounted(self, job: str) -> ConfigMapBundle | None:
        """Return the ConfigMap in which the job's pods find it, unless it is a file they see."""
        if self.fetched:
            return ConfigMapBundle(name=names.fetched_config_map(job))
        return self.config_map


RULES = [
    CelRule(
        rule="[has(self.bundle.configMap), has(self.bundle.file), has(self.bundle.url),"
        " has(self.bundle.git)].filter(given, given).size() == 1",
        message="bundle needs exactly one of configMap, file, url and git",
    ),
    CelRule(
        rule="!has(self.bundle.secret) || has(self.bundle.url) || has(self.bundle.git)",
        message="bundle.secret is for url and git only",
    ),
]
