"""The Lease that replicas compete for. Pure; the rules are those of Kubernetes' own components.

Clocks of machines are never compared: a replica waits until it has itself seen a lease unchanged
for as long as the lease lasts. Each write names the version that it replaces, so of two replicas
that try at once one fails.
"""

from dataclasses import dataclass

from streamgraft_common.kube.client import Object
from streamgraft_common.timestamps import to_rfc3339


@dataclass(frozen=True)
class Term:
    """How long a lease lasts, in seconds; the ratios are those of client-go."""

    seconds: int = 15

    @property
    def renew_within(self) -> float:
        """Return the time after its last renewal at which a leader stops writing.

        Shorter than the lease, so that it has stopped when the next leader starts.
        """
        return self.seconds * 2 / 3

    @property
    def renew_every(self) -> float:
        """Return the time between two renewals."""
        return self.seconds * 2 / 15


def holder(lease: Object) -> str:
    """Return who holds a lease; '' if nobody does."""
    identity: str = lease.get("spec", {}).get("holderIdentity") or ""
    return identity


def free_in(lease: Object, unchanged_seconds: float) -> float:
    """Return the seconds until a lease may be taken that was seen unchanged for some seconds."""
    if not holder(lease):
        return 0.0
    duration = lease["spec"].get("leaseDurationSeconds") or 0
    return max(0.0, float(duration) - unchanged_seconds)


def claimed(known: Object, identity: str, term: Term, now: float) -> Object:
    """Return the lease as `identity` writes it over `known`; `now` in Unix seconds."""
    spec = known.get("spec", {})
    stamp = to_rfc3339(now, "microseconds")  # a MicroTime has always six digits
    claim = {
        "holderIdentity": identity,
        "leaseDurationSeconds": term.seconds,
        "renewTime": stamp,
    }
    if holder(known) != identity:
        transitions = spec.get("leaseTransitions")
        claim["acquireTime"] = stamp
        claim["leaseTransitions"] = 0 if transitions is None else transitions + 1
    return {**known, "spec": {**spec, **claim}}


def released(known: Object) -> Object:
    """Return the lease as its holder gives it up: the next may take it at once."""
    return {**known, "spec": {**known["spec"], "holderIdentity": ""}}
