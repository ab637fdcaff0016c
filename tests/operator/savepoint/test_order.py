"""Which savepoint of a job has to wait for which."""

import pytest

from streamgraft_common.kube.client import Object
from streamgraft_operator.savepoint.stages import goes_first


def savepoint(
    name: str, phase: str = "Pending", *, second: int = 0, region: str | None = None
) -> Object:
    return {
        "metadata": {
            "namespace": "n",
            "name": name,
            "creationTimestamp": f"2026-01-01T00:00:{second:02}Z",
        },
        "spec": {"job": "j", **({"region": region} if region else {})},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize("phase", ["Draining", "Saving", "Committing", "RollingBack"])
def test_any_that_is_under_way_goes_first(phase: str) -> None:
    """A creation time has no parts of a second: the names don't say which was there first."""
    own = savepoint("before-upgrade")
    assert goes_first(savepoint("j-all-cut-7", phase), own)
    assert goes_first(savepoint("j-all-cut-7", phase, second=9), own)
    assert goes_first(savepoint("j-all-cut-7", phase), savepoint("r", region="r"))


@pytest.mark.parametrize("phase", ["Completed", "Failed"])
def test_none_that_is_over(phase: str) -> None:
    assert not goes_first(savepoint("a", phase), savepoint("b", second=9))
    gone = savepoint("a", "Saving")
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not goes_first(gone, savepoint("b", second=9))


def test_of_those_that_wait_the_older_one() -> None:
    older, newer = savepoint("b"), savepoint("a", second=1)
    assert goes_first(older, newer)
    assert not goes_first(newer, older)
    assert not goes_first(older, older)


def test_a_width_change_waits_for_none_that_may_wait_for_it() -> None:
    own = savepoint("j-r-change", second=9, region="r")
    assert not goes_first(savepoint("a"), own)
