"""Which parallel regions hold up cuts and rollbacks of a consistent region."""

from typing import Any

from streamgraft_common.kube.client import Object
from streamgraft_common.resources import SavedStage
from streamgraft_operator.consistent_region.controller import held_up_by

STAGES = [
    SavedStage(name="read", shards=1, operators=["read"]),
    SavedStage(name="count", shards=2, operators=["count"], region="inside"),
]


def region(name: str, **status: Any) -> Object:
    return {
        "metadata": {"namespace": "n", "name": f"j-{name}"},
        "spec": {"job": "j", "region": name, "key": ["k"], "width": 1, "maxWidth": 2},
        "status": status,
    }


def asleep(name: str) -> Object:
    return region(name, epoch=2, width=0, assignment={})


def test_one_that_sleeps_does_if_it_has_a_stage_of_the_consistent_region() -> None:
    assert held_up_by([asleep("beside")], STAGES) == ""
    both = held_up_by([asleep("beside"), asleep("inside")], STAGES)
    assert both == "region inside to be woken (set its width to 1)"


def test_any_that_sleeps_does_while_the_stages_are_not_known() -> None:
    assert held_up_by([asleep("beside")], None)


def test_any_whose_width_changes_does() -> None:
    resizing = {
        "type": "Resizing",
        "status": "True",
        "reason": "WarmingUp",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    found = held_up_by([region("beside", conditions=[resizing])], STAGES)
    assert found == "the width change of region beside to end"
