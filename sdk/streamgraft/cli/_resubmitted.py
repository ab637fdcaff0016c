"""What `submit` says of a job that was there before: what changes, and what is no longer set."""

from collections.abc import Collection, Iterator, Mapping

from streamgraft.cli._plan_state import RunningJob
from streamgraft_common.adl import Adl
from streamgraft_operator.graph.logical import logical_model
from streamgraft_operator.graph.transforms import without_dead_operators


def submitted(job: str, place: str, before: RunningJob | None, adl: Adl) -> str:
    """Return the line that says what was submitted; `before`: the job as it was, if it is known."""
    if not (old := before.operators if before else frozenset()):
        return f"Job {job} submitted to {place}"
    new = _running_operators(adl)
    counts = {"added": len(new - old), "removed": len(old - new)}
    changes = [f"{_operators_of(count)} {what}" for what, count in counts.items() if count]
    if not changes:
        return f"Job {job} submitted again to {place}"
    return f"Job {job} changed in {place}: {', '.join(changes)}"


def warnings(
    job: str, before: RunningJob | None, adl: Adl, values: Mapping[str, str]
) -> Iterator[str]:
    """Yield what is probably not meant; `values`: those that are set from now on."""
    if before is None:
        return
    if others := others_operators(before.operators, adl):
        yield (
            f"job {job} was another application: none of its operators ({', '.join(others)})"
            " is left; --name gives this one a job of its own"
        )
    for name, value in before.spec.parameters.items():
        if name in adl.parameters and name not in values:
            yield (
                f"parameter {name} was set to {value!r} and has its default again,"
                f" {adl.parameters[name]!r}: every submit names what is not to be a default"
            )


def others_operators(old: Collection[str], adl: Adl) -> list[str]:
    """Return the operators that a job had if none of them is left: it was another application."""
    return sorted(old) if old and _running_operators(adl).isdisjoint(old) else []


def _running_operators(adl: Adl) -> set[str]:
    """Return the operators that run: from others no sink can be reached."""
    return set(without_dead_operators(logical_model(adl)).operators)


def _operators_of(count: int) -> str:
    return f"{count} operator" if count == 1 else f"{count} operators"
