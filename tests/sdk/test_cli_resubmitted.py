"""What `submit` says of a job that was there before."""

from dataclasses import replace
from typing import Any

from tests.sdk.test_cli_plan import application, running, submission

from streamgraft.cli._plan_state import RunningJob
from streamgraft.cli._resubmitted import submitted, warnings
from streamgraft_common.adl import Adl
from streamgraft_operator.graph.stages import saved_stages

PLACE = "namespace default of context prod"


def job(**spec: Any) -> RunningJob:
    """Return a job that runs: the operators read, clean, work and show."""
    before = submission(**spec)
    noted = saved_stages(before.topology({"work": 2}), application())
    return replace(running(before), stages=tuple(noted))


def renamed(*names: str) -> Adl:
    """Return the application with other names of its first operators."""
    adl = application()
    operators = [
        item.model_copy(update={"name": name})
        for name, item in zip(names, adl.operators, strict=False)
    ]
    return adl.model_copy(update={"operators": [*operators, *adl.operators[len(names) :]]})


def test_it_says_whether_a_job_is_new_the_same_or_another() -> None:
    new = f"Job flights submitted to {PLACE}"
    assert submitted("flights", PLACE, None, application()) == new
    # One that was submitted a moment ago has noted no operators yet.
    assert submitted("flights", PLACE, running(submission()), application()) == new
    again = f"Job flights submitted again to {PLACE}"
    assert submitted("flights", PLACE, job(), application()) == again
    changed = f"Job flights changed in {PLACE}: 2 operators added, 2 operators removed"
    assert submitted("flights", PLACE, job(), renamed("a", "b")) == changed
    less = application().model_copy(update={"operators": application().operators[:3]})
    changed = f"Job flights changed in {PLACE}: 1 operator removed"
    assert submitted("flights", PLACE, job(), less) == changed


def test_another_application_under_the_name_of_a_job_is_warned_about() -> None:
    """Without state nothing refuses it."""
    assert list(warnings("flights", job(), renamed("a", "b", "c"), {})) == []
    (warning,) = warnings("flights", job(), renamed("a", "b", "c", "d"), {})
    assert "none of its operators (clean, read, show, work) is left; --name" in warning


def test_a_value_that_was_set_does_not_go_silently() -> None:
    before = job(parameters={"speed": "3"})
    (warning,) = warnings("flights", before, application(), {})
    assert warning.startswith("parameter speed was set to '3' and has its default again, '1'")
    assert list(warnings("flights", before, application(), {"speed": "2"})) == []
    without = application().model_copy(update={"parameters": {}})
    assert list(warnings("flights", before, without, {})) == []
    assert list(warnings("flights", None, application(), {})) == []
