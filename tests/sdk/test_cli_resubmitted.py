"""What `submit` says of a job that was there before."""

from dataclasses import replace
from typing import Any

from tests.sdk.test_cli_plan import application, running, submission

from streamgraft.cli._plan_state import RunningJob
from streamgraft.cli._resubmitted import submitted, warnings
from streamgraft_common.adl import Adl, Operator
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
    new = {item.name: name for name, item in zip(names, adl.operators, strict=False)}

    def called(name: str) -> str:
        return new.get(name, name)

    operators = [item.model_copy(update={"name": called(item.name)}) for item in adl.operators]
    streams = [item.model_copy(update={"producer": called(item.producer)}) for item in adl.streams]
    return adl.model_copy(update={"operators": operators, "streams": streams})


def test_it_says_whether_a_job_is_new_the_same_or_another() -> None:
    new = f"Job flights submitted to {PLACE}"
    assert submitted("flights", PLACE, None, application()) == new
    # One that was submitted a moment ago has noted no operators yet.
    assert submitted("flights", PLACE, running(submission()), application()) == new
    again = f"Job flights submitted again to {PLACE}"
    assert submitted("flights", PLACE, job(), application()) == again
    changed = f"Job flights changed in {PLACE}: 2 operators added, 2 operators removed"
    assert submitted("flights", PLACE, job(), renamed("a", "b")) == changed


def test_an_operator_that_leads_to_no_sink_is_none() -> None:
    """The job has it neither before nor behind a submission."""
    adl = application()
    dead = Operator(name="dead", kind="function", inputs=["raw"], outputs=["nothing"])
    stream = adl.streams[0].model_copy(update={"name": "nothing", "producer": "dead"})
    more = {"operators": [*adl.operators, dead], "streams": [*adl.streams, stream]}
    again = f"Job flights submitted again to {PLACE}"
    assert submitted("flights", PLACE, job(), adl.model_copy(update=more)) == again
    read = Operator(name="copy", kind="sink", inputs=["nothing"])
    more["operators"] = [*adl.operators, dead, read]
    changed = f"Job flights changed in {PLACE}: 2 operators added"
    assert submitted("flights", PLACE, job(), adl.model_copy(update=more)) == changed
    changed = f"Job flights changed in {PLACE}: 1 operator added, 1 operator removed"
    assert submitted("flights", PLACE, job(), renamed("a")) == changed


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
