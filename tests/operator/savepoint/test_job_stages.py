"""What a savepoint sees of a job whose resources are in the caches."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_common.resources import SavedStage
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.savepoint.part import Part
from streamgraft_operator.savepoint.stages import JobStages, job_stages

BORN = "2026-01-01T00:00:00Z"
JOB: Object = {
    "metadata": {"namespace": "n", "name": "j", "creationTimestamp": BORN},
    "spec": {},
}
CUT = {"metadata": {"namespace": "n", "name": "c", "uid": "u", "creationTimestamp": BORN}}
SINK = SavedStage(name="write", shards=1, operators=["write"])


class Found:
    """An index or a cache of which everything is asked."""

    def __init__(self, *items: Object) -> None:
        self._items = items

    def get(self, _: Key) -> tuple[Object, ...]:
        return self._items


def asleep(name: str) -> Object:
    """Return a parallel region without channels."""
    return {
        "metadata": {"namespace": "n", "name": f"j-{name}"},
        "spec": {"job": "j", "region": name, "key": ["k"], "width": 0, "maxWidth": 1},
        "status": {"epoch": 2, "width": 0, "assignment": {}},
    }


def caches(*pes: Object, regions: Sequence[Object] = ()) -> Caches:
    nothing = {
        "config_maps": {},
        "regions_by_job": Found(*regions),
        "pods_by_job": Found(),
        "pods_by_pe": Found(),
        "savepoints_by_job": Found(),
        "savepoints": {},
    }
    found = SimpleNamespace(**{**nothing, "processing_elements_by_job": Found(*pes)})
    return cast(Caches, found)


def element(**saved: Any) -> Object:
    """Return the PE of the sink; `saved`: what it says of the cut."""
    return {
        "metadata": {"namespace": "n", "name": "j-0", "creationTimestamp": BORN},
        "spec": {"job": "j", "peId": 0, "stageName": "write", "shards": []},
        "status": {"runtime": {"saved": {"savepoint": "c", "uid": "u", "shards": [0], **saved}}},
    }


def seen(
    *pes: Object, stages: tuple[SavedStage, ...] = (SINK,), regions: Sequence[Object] = ()
) -> JobStages:
    part = Part(stages=stages, bundle_digest="d", commits=frozenset({"write"}))
    savepoint = {**CUT, "spec": {"job": "j", "consistentRegion": "all", "operators": ["write"]}}
    return job_stages(caches(*pes, regions=regions), JOB, part, savepoint)


def test_a_sink_has_committed_when_its_pe_says_so() -> None:
    assert seen(element(committed=True)).stages[0].committed
    assert not seen(element()).stages[0].committed


def test_a_sink_whose_pe_is_gone_has_not_committed() -> None:
    """It comes anew, and does it then."""
    assert not seen().stages[0].committed


def test_a_region_that_sleeps_matters_to_what_is_in_it_alone() -> None:
    """One beside a consistent region may fall asleep amid a rollback."""
    inside = SavedStage(name="count", shards=1, operators=["count"], region="r")
    found = seen(element(), stages=(SINK, inside), regions=[asleep("beside"), asleep("r")])
    assert found.waiting_for == "region r to be woken (set its width to 1)"
    assert found.abandoned == "region r fell asleep while it was saved"
    found = seen(element(), regions=[asleep("beside")])
    assert "beside" not in found.waiting_for
    assert found.abandoned == ""
