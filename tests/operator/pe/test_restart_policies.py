"""Restart policies: which ends of a pod are followed by a launch, and what stays of failed pods."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.pe.test_pod_step import CONTENT, OLDER, PE, POD, STATUS

from streamgraft_common.resources import ProcessingElementSpec, Stopped
from streamgraft_operator.pe.launches import Relaunch, RestartPolicy, raised, relaunch, resumed
from streamgraft_operator.pe.step import KEPT_FAILED_PODS, step

FAILED = Relaunch("PodFailed", failed=True)
COMPLETED = Relaunch("PodCompleted", failed=True)
DELETED = Relaunch("PodDeleted")


def policy(
    own: dict[str, Any] | None = None,
    job: dict[str, Any] | None = None,
    restartable: bool = True,
) -> RestartPolicy:
    """Return the policy of a PE with settings of its own and of its job."""
    spec = {"job": "j", "peId": 0, "stageName": "pe-0", "restartable": restartable}
    return RestartPolicy.of(
        ProcessingElementSpec.model_validate(
            {**spec, "settings": own or {}, "inherited": job or {}}
        )
    )


def test_by_default_everything_is_launched_again() -> None:
    assert all(map(policy().allows, (FAILED, COMPLETED, DELETED)))


@pytest.mark.parametrize(
    ("setting", "cause"),
    [
        ("restartFailedPod", FAILED),
        ("restartCompletedPod", COMPLETED),
        ("restartDeletedPod", DELETED),
    ],
)
def test_each_policy_is_about_one_end(setting: str, cause: Relaunch) -> None:
    off = policy({setting: False})
    refused = [item for item in (FAILED, COMPLETED, DELETED) if not off.allows(item)]
    assert refused == [cause]


def test_the_pe_falls_through_to_its_job() -> None:
    job = {"restartFailedPod": False, "restartDeletedPod": False}
    falling = policy({"restartDeletedPod": True}, job)
    assert not falling.allows(FAILED)
    assert falling.allows(DELETED)


@pytest.mark.parametrize(("own", "expected"), [(None, False), (True, True), (False, False)])
def test_failed_pods_fall_through_to_what_the_application_says(
    own: bool | None, expected: bool
) -> None:
    settings = {} if own is None else {"restartFailedPod": own}
    assert policy(settings, restartable=False).allows(FAILED) is expected


@pytest.mark.parametrize("cause", [FAILED, COMPLETED])
@pytest.mark.parametrize("deleted", [True, False])
def test_pods_that_are_being_deleted_fall_through(cause: Relaunch, deleted: bool) -> None:
    both = {"restartFailedPod": False, "restartCompletedPod": False}
    falling = policy({**both, "restartDeletedPod": deleted})
    assert not falling.allows(cause)
    assert falling.allows(replace(cause, deleting=True)) is deleted


def test_graph_and_settings_always_launch_again() -> None:
    never = {f"restart{end}Pod": False for end in ("Failed", "Completed", "Deleted")}
    assert policy(never).allows(Relaunch("GraphChanged"))
    assert policy(never).allows(Relaunch("SettingsChanged"))


def test_deletion_is_not_an_end() -> None:
    pod = replace(POD, phase="Failed", deleting=True)
    cause = relaunch(STATUS, CONTENT, [pod], "u")
    assert cause == replace(FAILED, deleting=True)


def test_own_settings_that_changed_take_a_new_pod() -> None:
    pod = replace(POD, settings_id="old")
    assert relaunch(STATUS, CONTENT, [pod], "u", "new") == Relaunch("SettingsChanged")
    assert relaunch(STATUS, CONTENT, [pod], "u", "old") is None


def test_stopped_pe_stays_until_something_changes() -> None:
    stopped = Stopped(reason="PodFailed", version="c/s")
    off = policy({"restartFailedPod": False})
    assert resumed(stopped, off, "c/s") is None
    assert resumed(stopped, policy(), "c/s") == Relaunch("PodFailed")
    assert resumed(stopped, off, "other/s") == Relaunch("GraphChanged")
    status = STATUS.model_copy(update={"stopped": stopped})
    assert raised(status, Relaunch("PodFailed"), 0.0, 0.0).stopped is None


def test_stopped_pe_gets_no_pod() -> None:
    stopped = replace(PE, stopped=True)
    assert not step(stopped, (), 0.0).create
    failed = replace(POD, phase="Failed")
    assert step(stopped, (failed,), 0.0).delete == (POD.name,)
    assert step(replace(stopped, keep_failed=True), (failed,), 0.0).delete == ()
    assert step(stopped, (replace(POD, phase="Succeeded"),), 0.0).delete == ()


def test_failed_pods_that_stay_hold_up_nothing() -> None:
    keeping = replace(PE, keep_failed=True, launch_count=10)
    failed = tuple(
        replace(OLDER, name=f"j-0-{launch}", launch=launch, phase="Failed")
        for launch in range(1, 10)
    )
    decision = step(keeping, failed[-KEPT_FAILED_PODS:], 0.0)
    assert decision.create
    assert decision.delete == ()
    assert step(keeping, failed, 0.0).delete == tuple(
        pod.name for pod in failed[:-KEPT_FAILED_PODS]
    )
    assert step(replace(PE, launch_count=10), failed[-1:], 0.0).delete == (failed[-1].name,)
