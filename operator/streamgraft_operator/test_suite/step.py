"""One step of a test suite, as a pure function of what is there (cloud native Streams, 6.7).

Five lists say where each test is. A test that is put on the list of those that run gets a pod; the
pod's uid is noted as soon as it is seen, so that a pod that is gone later is no reason for another.

A suite that has ended stays as it ended, whatever is edited: pods of that run may still be there,
and would be taken for those of the next one. What it says then is that it has to be deleted.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from streamgraft_common.field_paths import NoPath, check
from streamgraft_common.resources import Scenario, ScenarioRun, Step, SuiteSpec, SuiteStatus
from streamgraft_common.text import listed
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.kit.conditions import ACCEPTED, READY, State, merged

OVER = ("Passed", "Failed")
ENDED = ("Succeeded", "Failed")
"""Phases of a pod whose test has ended."""
MOST_BYTES = 100_000
"""Of a scenario as JSON: Linux takes no environment variable of more than 128 KiB."""
LOST_SECONDS = 60.0
"""So long after its containers were to be killed a pod is taken for one of a node that is gone."""
_ACTIONS = ("apply", "patch", "delete", "kill", "wait", "run", "sleep_seconds")

Ending = Literal["passed", "failed", "aborted"]


@dataclass(frozen=True)
class ScenarioPod:
    """What is seen of the pod of a test. Times in Unix seconds."""

    name: str
    uid: str
    phase: str
    created: float
    ended: float | None = None
    """When its test ended, once it has."""
    deleted: float | None = None
    """When its deletion began."""
    killed: float | None = None
    """When its containers are killed, if its deletion began and they have not ended by then."""
    exited: bool = False
    """Whether its container ended by itself: an eviction says nothing about the test."""
    message: str = ""

    @property
    def cut_short(self) -> bool:
        """Whether its deletion began before its test had ended: how that ends says nothing.

        Times are whole seconds, so an end in the second of the deletion may be its consequence.
        """
        return self.deleted is not None and (self.ended is None or self.ended >= self.deleted)


@dataclass(frozen=True)
class SuiteView:
    """What is there of a suite; `pods` by the names of their tests."""

    spec: SuiteSpec
    status: SuiteStatus
    generation: int
    pods: Mapping[str, ScenarioPod]
    now: float


@dataclass(frozen=True)
class SuiteDecision:
    """The status that is to be, tests that need a pod then, and pods that must go."""

    status: SuiteStatus
    create: list[str] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)


def step(view: SuiteView) -> SuiteDecision:
    """Return what to do next."""
    if view.status.phase in OVER:
        return SuiteDecision(_as_it_ended(view), delete=_surplus(view, view.status))
    if problem := problem_of(view.spec):
        return SuiteDecision(_refused(view, problem))
    status = _filled(view, _settled(view))
    over = not status.running and not status.pending
    bad = status.failed or status.aborted
    waiting = [run.name for run in status.runs if run.name in status.running and not run.pod_uid]
    states = [State(ACCEPTED, "True", "Valid")]
    if not waiting:
        states.append(State(READY, "True", "PodsCreated"))
    update: dict[str, Any] = {
        "phase": ("Failed" if bad else "Passed") if over else "Running",
        "completed_at": to_rfc3339(view.now) if over else None,
        "observed_generation": view.generation,
        "conditions": merged(status.conditions, states, view.now, view.generation),
    }
    status = status.model_copy(update=update)
    return SuiteDecision(status, create=waiting, delete=_surplus(view, status))


def _as_it_ended(view: SuiteView) -> SuiteStatus:
    """Return the status of a suite that has ended, which says so if it was edited since."""
    status = view.status
    if view.generation == status.observed_generation:
        return status
    why = "the suite has ended, so an edit runs nothing: delete it to run it again"
    edited = State(ACCEPTED, "False", "Ended", why)
    conditions = merged(status.conditions, [edited], view.now, view.generation)
    return status.model_copy(update={"conditions": conditions})


def selected(spec: SuiteSpec) -> list[str]:
    """Return the names of the tests to run, in the order of the scenarios."""
    return [
        scenario.name
        for scenario in spec.scenarios
        if any(fnmatchcase(scenario.name, pattern) for pattern in spec.include)
        and not any(fnmatchcase(scenario.name, pattern) for pattern in spec.exclude)
    ]


def problem_of(spec: SuiteSpec) -> str:
    """Return what makes no sense in a suite, '' if all does."""
    counts = Counter(scenario.name for scenario in spec.scenarios)
    if twice := [name for name, count in counts.items() if count > 1]:
        return f"several scenarios have the name {listed(twice)}: give each its own"
    for scenario in spec.scenarios:
        if problem := _problem_of(scenario):
            return f"scenario {scenario.name}: {problem}"
    if not selected(spec):
        return "include and exclude leave no scenario: there are " + listed(counts)
    return ""


def _problem_of(scenario: Scenario) -> str:
    if (scenario.steps is None) == (scenario.command is None):
        return "it needs either steps or a command"
    if scenario.command is not None and scenario.clean_up:
        return "cleanUp belongs to steps; a command cleans up by itself"
    if len(scenario.as_variable().encode()) > MOST_BYTES:
        return f"it is larger than {MOST_BYTES:,} bytes: move what is large into a ConfigMap"
    for number, item in enumerate([*(scenario.steps or []), *scenario.clean_up], 1):
        if problem := _problem_of_step(item):
            return f"step {number} {problem}"
    return ""


def _problem_of_step(item: Step) -> str:
    given = [name for name in _ACTIONS if getattr(item, name) is not None]
    if len(given) != 1:
        return f"needs exactly one of {listed(_ACTIONS)}; it has {listed(given)}"
    if item.apply is not None:
        metadata = item.apply.get("metadata")
        named = isinstance(metadata, dict) and metadata.get("name")
        if not (named and item.apply.get("kind") and item.apply.get("apiVersion")):
            return "applies an object without apiVersion, kind or metadata.name"
    if item.run is not None and not item.run:
        return "runs an empty command"
    if item.wait is not None:
        try:
            check(item.wait.field)
        except NoPath as error:
            return f"waits for a field that can't be: {error}"
    return ""


def _settled(view: SuiteView) -> SuiteStatus:
    """Take tests that have ended off the list of those that run."""
    scenarios = {scenario.name: scenario for scenario in view.spec.scenarios}
    status = view.status
    lists: dict[str, list[str]] = {
        "running": [],
        "passed": [*status.passed],
        "failed": [*status.failed],
        "aborted": [*status.aborted],
    }
    runs = {run.name: run for run in status.runs}
    for name in status.running:
        pod = view.pods.get(name)
        run = _noted(runs[name], pod)
        ending = _ending(run, pod, scenarios.get(name), view.now)
        if ending is not None:
            end = pod.ended if pod and pod.ended else view.now
            seconds = round(max(0.0, end - pod.created), 3) if pod else None
            run = run.model_copy(update={"seconds": seconds, "message": ending[1]})
        lists[ending[0] if ending else "running"].append(name)
        runs[name] = run
    return status.model_copy(update={**lists, "runs": list(runs.values())})


def _noted(run: ScenarioRun, pod: ScenarioPod | None) -> ScenarioRun:
    if run.pod_uid or pod is None:
        return run
    return run.model_copy(update={"pod_uid": pod.uid, "started_at": to_rfc3339(pod.created)})


def _ending(
    run: ScenarioRun, pod: ScenarioPod | None, scenario: Scenario | None, now: float
) -> tuple[Ending, str] | None:
    """Return how a test ended and why, None if it has not."""
    if run.pod_uid and (pod is None or pod.uid != run.pod_uid):
        return "aborted", "its pod was deleted"
    if pod is not None and (ending := _ending_of(pod)):
        return ending
    if scenario is None:  # nothing says any more of what its pod is made, or how long it may take
        return "aborted", "an edit took it out of the suite"
    if pod is not None and now - pod.created > scenario.timeout_seconds:
        late = f"it did not end within {scenario.timeout_seconds:g} s"
        return "aborted", f"{late}: {pod.message}" if pod.message else late
    return None


def _ending_of(pod: ScenarioPod) -> tuple[Ending, str] | None:
    if pod.cut_short:
        return "aborted", "its pod was deleted"
    if pod.phase == "Succeeded":
        return "passed", ""
    if pod.phase == "Failed":
        return ("failed" if pod.exited else "aborted"), pod.message or "its pod failed"
    return None


def _filled(view: SuiteView, status: SuiteStatus) -> SuiteStatus:
    """Let tests begin as far as the concurrency allows; beyond the threshold abort the rest."""
    wanted = selected(view.spec)
    known = {*status.running, *status.passed, *status.failed, *status.aborted}
    pending = [name for name in wanted if name not in known]
    runs = [*status.runs]
    threshold = view.spec.failure_threshold
    bad = len(status.failed) + len(status.aborted)
    if threshold is not None and bad >= threshold:
        why = f"it did not begin: {bad} tests had failed or were aborted"
        runs += [ScenarioRun(name=name, message=why) for name in pending]
        update = {"pending": [], "aborted": [*status.aborted, *pending], "runs": runs}
        return status.model_copy(update=update)
    room = max(0, view.spec.concurrency - len(status.running) - _cleaning_up(view, status))
    begun, pending = pending[:room], pending[room:]
    runs += [ScenarioRun(name=name) for name in begun]
    update = {"pending": pending, "running": [*status.running, *begun], "runs": runs}
    return status.model_copy(update=update)


def _cleaning_up(view: SuiteView, status: SuiteStatus) -> int:
    """Return how many pods of tests that do not run any more have not ended: what they clean up may
    be what the next test has just made."""
    return sum(
        name not in status.running
        and pod.phase not in ENDED
        and (pod.killed is None or view.now <= pod.killed + LOST_SECONDS)
        for name, pod in view.pods.items()
    )


def _surplus(view: SuiteView, status: SuiteStatus) -> list[str]:
    """Return the pods that must go: of tests that have ended, and such as nobody asked for."""
    uids = {run.name: run.pod_uid for run in status.runs}
    return [
        pod.name
        for name, pod in view.pods.items()
        if pod.deleted is None
        and (
            uids.get(name) != pod.uid
            or (name not in status.running and not _kept(view.spec, status, name, pod))
        )
    ]


def _kept(spec: SuiteSpec, status: SuiteStatus, name: str, pod: ScenarioPod) -> bool:
    if pod.phase not in ENDED:
        return False
    return spec.artifacts == "Keep" or (
        spec.artifacts == "KeepFailed" and name not in status.passed
    )


def _refused(view: SuiteView, problem: str) -> SuiteStatus:
    """End a suite that makes no sense: all tests that have not ended are aborted, those that run as
    well, if it was edited. Its results say so of each."""
    state = State(ACCEPTED, "False", "Invalid", problem)
    status = view.status
    wanted = selected(view.spec) or [scenario.name for scenario in view.spec.scenarios]
    ended = {*status.passed, *status.failed, *status.aborted}
    left = [name for name in dict.fromkeys([*status.running, *wanted]) if name not in ended]
    runs = {run.name: run for run in status.runs}
    runs |= {
        name: runs.get(name, ScenarioRun(name=name)).model_copy(update={"message": problem})
        for name in left
    }
    return status.model_copy(
        update={
            "phase": "Failed",
            "pending": [],
            "running": [],
            "aborted": [*status.aborted, *left],
            "runs": list(runs.values()),
            "completed_at": to_rfc3339(view.now),
            "observed_generation": view.generation,
            "conditions": merged(status.conditions, [state], view.now, view.generation),
        }
    )
