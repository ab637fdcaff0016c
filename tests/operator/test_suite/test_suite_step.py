"""Test suites, step by step."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from streamgraft_common.conditions import find
from streamgraft_common.junit import junit
from streamgraft_common.resources import SuiteSpec, SuiteStatus
from streamgraft_operator.test_suite.step import (
    LOST_SECONDS,
    ScenarioPod,
    SuiteDecision,
    SuiteView,
    problem_of,
    step,
)

NOW = 1_700_000_000.0


def suite(*names: str, **spec: Any) -> SuiteSpec:
    """Return a suite of tests of these names."""
    scenarios = [{"name": name, "command": ["true"], "timeoutSeconds": 100} for name in names]
    return SuiteSpec.model_validate({"scenarios": scenarios, **spec})


def pod(name: str, phase: str = "Running", **more: Any) -> ScenarioPod:
    """Return the pod of a test; it was created ten seconds ago."""
    made = {"name": f"s--{name}", "uid": f"uid-{name}", "created": NOW - 10}
    return ScenarioPod(**{**made, "phase": phase, **more})


def taken(
    spec: SuiteSpec,
    status: SuiteStatus | None = None,
    *pods: ScenarioPod,
    now: float = NOW,
) -> SuiteDecision:
    """Take one step."""
    seen = {pod.name.removeprefix("s--"): pod for pod in pods}
    return step(SuiteView(spec, status or SuiteStatus(), 1, seen, now))


def lists(status: SuiteStatus) -> dict[str, Sequence[str]]:
    """Return the lists that have something."""
    states = ("pending", "running", "passed", "failed", "aborted")
    return {state: names for state in states if (names := getattr(status, state))}


def test_as_many_begin_as_may_run_at_a_time() -> None:
    first = taken(suite("a", "b", "c", concurrency=2))
    assert lists(first.status) == {"pending": ["c"], "running": ["a", "b"]}
    assert (first.status.phase, first.create) == ("Running", ["a", "b"])


def test_the_next_begins_when_one_has_ended() -> None:
    spec = suite("a", "b", "c")
    first = taken(spec).status
    ended = pod("a", "Succeeded", ended=NOW - 3, exited=True)
    second = taken(spec, first, ended)
    assert lists(second.status) == {"pending": ["c"], "running": ["b"], "passed": ["a"]}
    assert (second.create, second.delete) == (["b"], ["s--a"])
    (run, _) = second.status.runs
    assert (run.pod_uid, run.seconds) == ("uid-a", 7.0)


def test_all_passed_or_not() -> None:
    spec = suite("a", "b", concurrency=2)
    begun = taken(spec).status
    good = taken(spec, begun, pod("a", "Succeeded"), pod("b", "Succeeded")).status
    assert (good.phase, good.completed_at is None) == ("Passed", False)
    bad = taken(spec, begun, pod("a", "Succeeded"), pod("b", "Failed", exited=True)).status
    assert (bad.phase, lists(bad)) == ("Failed", {"passed": ["a"], "failed": ["b"]})


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (pod("a", "Failed", message="Evicted: the node was low on memory"), "low on memory"),
        (pod("a", deleted=NOW), "its pod was deleted"),
        (pod("a", "Succeeded", deleted=NOW - 5, ended=NOW - 5, exited=True), "was deleted"),
        (pod("a", "Failed", deleted=NOW - 5, ended=NOW - 3, exited=True), "was deleted"),
        (pod("a", "Failed", deleted=NOW - 5), "its pod was deleted"),
        (pod("a", uid="another"), "its pod was deleted"),
        (pod("a", created=NOW - 101, message="Unschedulable"), "within 100 s: Unschedulable"),
    ],
)
def test_what_came_to_no_end_is_aborted(seen: ScenarioPod, why: str) -> None:
    begun = taken(suite("a"), taken(suite("a")).status, pod("a")).status
    decision = taken(suite("a"), begun, seen)
    assert lists(decision.status) == {"aborted": ["a"]}
    assert why in decision.status.runs[0].message
    assert (decision.status.phase, decision.create) == ("Failed", [])


@pytest.mark.parametrize(
    ("phase", "ending"),
    [("Succeeded", {"passed": ["a"]}), ("Failed", {"failed": ["a"]})],
)
def test_what_had_ended_before_its_pod_was_deleted_counts(
    phase: str, ending: dict[str, list[str]]
) -> None:
    begun = taken(suite("a"), taken(suite("a")).status, pod("a")).status
    seen = pod("a", phase, ended=NOW - 6, deleted=NOW - 5, exited=True)
    decision = taken(suite("a"), begun, seen)
    assert lists(decision.status) == ending
    assert (decision.status.runs[0].seconds, decision.delete) == (4.0, [])


def test_a_pod_that_was_seen_is_not_made_again() -> None:
    begun = taken(suite("a"), taken(suite("a")).status, pod("a"))
    assert begun.create == []
    gone = taken(suite("a"), begun.status)
    assert (gone.create, lists(gone.status)) == ([], {"aborted": ["a"]})


def test_a_pod_that_nobody_has_seen_is_made_again() -> None:
    assert taken(suite("a"), taken(suite("a")).status).create == ["a"]


def test_the_threshold_aborts_what_has_not_begun() -> None:
    spec = suite("a", "b", "c", "d", concurrency=2, failureThreshold=1)
    begun = taken(spec).status
    status = taken(spec, begun, pod("a", "Failed", exited=True), pod("b")).status
    assert lists(status) == {"running": ["b"], "failed": ["a"], "aborted": ["c", "d"]}
    assert "1 tests had failed or were aborted" in status.runs[-1].message
    assert status.phase == "Running"
    assert taken(spec, status, pod("b", "Succeeded")).status.phase == "Failed"


@pytest.mark.parametrize(
    ("artifacts", "deleted"),
    [("Keep", []), ("KeepFailed", ["s--a"]), ("Delete", ["s--a", "s--b"])],
)
def test_pods_are_kept_as_wanted(artifacts: str, deleted: list[str]) -> None:
    spec = suite("a", "b", concurrency=2, artifacts=artifacts)
    pods = pod("a", "Succeeded"), pod("b", "Failed", exited=True)
    over = taken(spec, taken(spec).status, *pods)
    assert over.delete == deleted
    assert taken(spec, over.status, *pods).delete == deleted


def test_a_pod_that_comes_too_late_goes() -> None:
    over = taken(suite("a"), taken(suite("a")).status, pod("a", "Succeeded")).status
    assert taken(suite("a"), over, pod("a", uid="late")).delete == ["s--a"]


def test_tests_are_selected_by_patterns() -> None:
    spec = suite("kill-pe", "kill-pod", "width", include=["kill-*", "w*"], exclude=["*-pod"])
    assert taken(spec).status.running + taken(spec).status.pending == ["kill-pe", "width"]


def test_an_edit_while_it_runs_counts() -> None:
    begun = taken(suite("a", "b", "c")).status
    fewer = taken(suite("a", "c", "e", concurrency=3), begun, pod("a")).status
    assert lists(fewer) == {"running": ["a", "c", "e"]}


def test_a_test_that_an_edit_takes_out_leaves_its_place() -> None:
    """Without a pod, since none could be created, it would never end."""
    begun = taken(suite("a", "b")).status
    edited = taken(suite("renamed", "b"), begun)
    assert lists(edited.status) == {"pending": ["b"], "running": ["renamed"], "aborted": ["a"]}
    assert (edited.create, edited.status.runs[0].message) == (
        ["renamed"],
        "an edit took it out of the suite",
    )
    assert taken(suite("renamed", "b"), edited.status, pod("a")).delete == ["s--a"]


@pytest.mark.parametrize(
    ("phase", "ending", "deleted", "next_is"),
    [
        ("Running", "aborted", ["s--a"], "pending"),
        ("Failed", "failed", [], "running"),
        ("Succeeded", "passed", ["s--a"], "running"),
    ],
)
def test_the_pod_of_a_test_that_an_edit_takes_out_is_waited_for_no_longer_than_it_cleans_up(
    phase: str, ending: str, deleted: list[str], next_is: str
) -> None:
    begun = taken(suite("a"), taken(suite("a")).status, pod("a")).status
    edited = taken(suite("b"), begun, pod("a", phase, exited=True))
    assert lists(edited.status) == {next_is: ["b"], ending: ["a"]}
    assert edited.delete == deleted
    assert lists(taken(suite("b"), edited.status).status) == {"running": ["b"], ending: ["a"]}


def test_the_next_begins_when_one_that_was_aborted_has_cleaned_up() -> None:
    """It deletes what the next one would have made."""
    spec = suite("a", "b", "c", "d", concurrency=2)
    begun = taken(spec, taken(spec).status, pod("a"), pod("b")).status
    late = taken(spec, begun, pod("a"), pod("b", created=NOW), now=NOW + 100)
    assert lists(late.status) == {"pending": ["c", "d"], "running": ["b"], "aborted": ["a"]}
    assert (late.create, late.delete) == ([], ["s--a"])
    killed = NOW + 130
    told = pod("a", deleted=NOW + 100, killed=killed)
    waits = taken(spec, late.status, told, pod("b", created=NOW), now=killed)
    assert (waits.create, waits.status.phase) == ([], "Running")
    ended = replace(told, phase="Failed", ended=NOW + 120)
    assert taken(spec, late.status, ended, pod("b", created=NOW)).create == ["c"]
    assert taken(spec, late.status, pod("b", created=NOW)).create == ["c"]


def test_a_pod_of_a_node_that_is_gone_is_not_waited_for() -> None:
    """Nothing says any more that its containers have ended."""
    spec = suite("a", "b")
    begun = taken(spec, taken(spec).status, pod("a")).status
    lost = pod("a", deleted=NOW, killed=NOW + 30)
    assert taken(spec, begun, lost, now=NOW + 30 + LOST_SECONDS).create == []
    assert taken(spec, begun, lost, now=NOW + 31 + LOST_SECONDS).create == ["b"]


def waits(field: str) -> dict[str, Any]:
    """Return a step that waits for a field."""
    return {"wait": {"kind": "Job", "name": "j", "field": field}}


def scenario(**fields: Any) -> SuiteSpec:
    """Return a suite of one scenario."""
    return SuiteSpec.model_validate({"scenarios": [{"name": "a", **fields}]})


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (suite("a", "a"), "several scenarios have the name a"),
        (suite("a", exclude=["*"]), "leave no scenario: there are a"),
        (scenario(), "either steps or a command"),
        (scenario(steps=[], command=["true"]), "either steps or a command"),
        (scenario(command=["true"], cleanUp=[{"sleepSeconds": 1}]), "cleanUp belongs to steps"),
        (scenario(steps=[{}]), "step 1 needs exactly one of"),
        (scenario(steps=[{"sleepSeconds": 1, "run": ["x"]}]), "it has run, sleep_seconds"),
        (scenario(steps=[{"apply": {"kind": "Job"}}]), "without apiVersion, kind or metadata.name"),
        (scenario(steps=[{"run": []}]), "an empty command"),
        (scenario(steps=[waits("spec..width")]), "step 1 waits for a field that can't be"),
        (scenario(steps=[], cleanUp=[waits("a[-1]")]), "'a[-1]' is no path of a field"),
        (scenario(steps=[{"run": ["x" * 100_000]}]), "larger than 100,000 bytes"),
        (scenario(steps=[{"run": ["\u3042" * 40_000]}]), "larger than 100,000 bytes"),
    ],
)
def test_what_makes_no_sense_is_refused(spec: SuiteSpec, problem: str) -> None:
    assert problem in problem_of(spec)
    status = taken(spec).status
    accepted = find(status.conditions, "Accepted")
    assert accepted is not None
    assert (status.phase, accepted.status) == ("Failed", "False")
    assert problem in accepted.message
    assert status.aborted == ["a"]
    root = ElementTree.fromstring(junit("nightly", status).encode())
    assert (root.attrib["tests"], root.attrib["errors"]) == ("1", "1")
    error = root.find("testcase/error")
    assert error is not None
    assert problem in (error.text or "")


@pytest.mark.parametrize("field", ["spec.containers[0].image", "metadata.annotations['a.b/c']"])
def test_fields_in_lists_and_with_dots_make_sense(field: str) -> None:
    assert problem_of(scenario(steps=[waits(field)])) == ""


def test_an_edit_that_makes_no_sense_ends_all_tests_but_those_that_had_ended() -> None:
    spec = suite("a", "b", "c", "d", exclude=["d"])
    begun = taken(spec, taken(spec).status, pod("a", "Succeeded")).status
    assert lists(begun) == {"pending": ["c"], "running": ["b"], "passed": ["a"]}
    bad = suite("a", "b", "c", "d", "d", exclude=["d"])
    decision = taken(bad, begun, pod("b"))
    assert lists(decision.status) == {"passed": ["a"], "aborted": ["b", "c"]}
    messages = {run.name: run.message for run in decision.status.runs}
    assert "several scenarios have the name d" in messages["b"]
    assert messages["c"] == messages["b"]
    assert (messages["a"], decision.status.phase) == ("", "Failed")
    assert taken(bad, decision.status, pod("b")).delete == ["s--b"]


def test_a_suite_that_has_ended_says_that_an_edit_runs_nothing() -> None:
    spec = suite("a", artifacts="Keep")
    seen = pod("a", "Succeeded")
    over = taken(spec, taken(spec).status, seen).status
    assert taken(spec, over, seen).status == over
    edited = SuiteView(suite("a", "b", artifacts="Keep"), over, 2, {"a": seen}, NOW)
    decision = step(edited)
    assert (decision.create, decision.delete) == ([], [])
    assert (decision.status.phase, lists(decision.status)) == ("Passed", {"passed": ["a"]})
    assert decision.status.observed_generation == 1
    accepted = find(decision.status.conditions, "Accepted")
    assert accepted is not None
    assert (accepted.status, accepted.reason) == ("False", "Ended")
    assert accepted.observed_generation == 2
    assert "delete it to run it again" in accepted.message
    again = step(replace(edited, status=decision.status, now=NOW + 100))
    assert again.status == decision.status


def test_results_as_junit() -> None:
    spec = suite("a", "b", "c", concurrency=3)
    bell = "it rang\x07 <& in vain"
    pods = (
        pod("a", "Succeeded", ended=NOW),
        pod("b", "Failed", ended=NOW - 5, exited=True, message=bell),
        replace(pod("c"), deleted=NOW),
    )
    status = taken(spec, taken(spec).status, *pods).status
    root = ElementTree.fromstring(junit("nightly", status).encode())
    assert root.attrib == {
        "name": "nightly",
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "time": "25.000",
    }
    cases = {case.attrib["name"]: case for case in root}
    failure, error = cases["b"].find("failure"), cases["c"].find("error")
    assert failure is not None
    assert error is not None
    assert list(cases["a"]) == []
    assert (failure.text, cases["b"].attrib["time"]) == ("it rang\ufffd <& in vain", "5.000")
    assert error.attrib["message"] == "its pod was deleted"


def test_what_has_not_ended_is_an_error() -> None:
    """Somebody who waits no longer wants what is known."""
    spec = suite("a", "b", "c")
    status = taken(spec, taken(spec).status, pod("a", "Succeeded", ended=NOW)).status
    root = ElementTree.fromstring(junit("nightly", status).encode())
    assert (root.attrib["tests"], root.attrib["errors"]) == ("3", "2")
    errors = {case.attrib["name"]: case.find("error") for case in root}
    assert errors["a"] is None
    assert all(errors[name] is not None for name in ("b", "c"))
    nothing = ElementTree.fromstring(junit("nightly", SuiteStatus()).encode())
    assert (nothing.attrib["tests"], nothing.attrib["errors"]) == ("1", "1")
