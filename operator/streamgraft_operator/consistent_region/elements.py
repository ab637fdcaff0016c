"""What the PEs say to a consistent region: failures, and cuts that functions ask for. Pure."""

from collections.abc import Collection, Iterable, Iterator

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_common.resources import ConsistentRegionSpec
from streamgraft_operator.kit.parsed import pe_spec, pe_status

_ENDED = ("PodFailed", "PodCompleted", "PodDeleted")
"""Reasons of launches that a PE's pod, and no edit, has led to."""
_DAMAGED = "CheckpointDamaged"


def failures(
    spec: ConsistentRegionSpec, stages: Collection[str], elements: Iterable[Object]
) -> dict[str, str]:
    """Return the failures that a region goes back for, each with what it is.

    `stages`: those that are in its cuts. The same failure has the same name as long as it is there,
    another one of the same PE another.
    """
    if spec.roll_back_on == "never":
        return {}
    return _of_stages(stages, elements, every=spec.roll_back_on == "failure")


def let_pass(
    spec: ConsistentRegionSpec, stages: Collection[str], elements: Iterable[Object]
) -> frozenset[str]:
    """Return the names of failures that the region does not go back for, but might by another
    policy: an edit of the policy must not make it go back for them."""
    elements = list(elements)
    every = _of_stages(stages, elements, every=True)
    return frozenset(every) - frozenset(failures(spec, stages, elements))


def _of_stages(
    stages: Collection[str], elements: Iterable[Object], *, every: bool
) -> dict[str, str]:
    ours = (element for element in elements if pe_spec(element).stage_name in stages)
    return dict(item for element in ours for item in _failures(element, every=every))


def _failures(element: Object, *, every: bool) -> Iterator[tuple[str, str]]:
    (_, name), status, launch = key_of(element), pe_status(element), _launch(element)
    if every and status.launch_reason in _ENDED:
        yield launch, f"{name} had to be launched again ({status.launch_reason})"
    for shard, said in sorted((status.runtime.shards if status.runtime else {}).items()):
        if said.state == "Failed" and (every or said.reason == _DAMAGED):
            yield f"{launch}:{shard}:{said.started_at}", f"shard {shard} of {name}: {said.message}"
    for failure, shard in _over(element) if every else ():
        yield failure, f"shard {shard} of {name} failed, and was started again"


def _launch(element: Object) -> str:
    return f"{element['metadata']['uid']}:{pe_status(element).launch_count}"


def _over(element: Object) -> Iterator[tuple[str, str]]:
    """Return the names of failures that are over, perhaps since before an operator was there to see
    them, each with its shard."""
    status = pe_status(element)
    if status.runtime and status.runtime.launch_count == status.launch_count:
        for shard, said in sorted(status.runtime.shards.items()):
            if said.state != "Failed" and said.failed_run:
                yield f"{_launch(element)}:{shard}:{said.failed_run}", shard


def over(elements: Iterable[Object]) -> frozenset[str]:
    """Return the names of failures that are over."""
    return frozenset(failure for element in elements for failure, _ in _over(element))


def unheld(elements: Iterable[Object]) -> frozenset[str]:
    """Return the names of failures of PEs that have no shard: no record has come to them."""
    return frozenset(_launch(element) for element in elements if not pe_spec(element).shards)


def requests(spec: ConsistentRegionSpec, elements: Iterable[Object]) -> dict[str, str]:
    """Return the last cut that functions of each PE asked for, by PE."""
    runtimes = {key_of(item)[1]: pe_status(item).runtime for item in elements}
    asked = {name: said.cut_requests.get(spec.region) for name, said in runtimes.items() if said}
    return {name: request for name, request in asked.items() if request}


def matters(old: Object | None, new: Object | None) -> bool:
    """Return whether a PE says something else than before that may matter to a region."""
    return _words(old) != _words(new)


def _words(element: Object | None) -> object:
    status = (element or {}).get("status") or {}
    runtime = status.get("runtime") or {}
    shards = (runtime.get("shards") or {}).items()
    failed = {
        number: (shard.get("startedAt"), shard.get("reason"))
        for number, shard in shards
        if shard.get("state") == "Failed"
    }
    runs = {number: run for number, shard in shards if (run := shard.get("failedRun"))}
    return status.get("launchCount"), failed, runs, runtime.get("cutRequests")
