"""When a stage has nothing left that would run again from a savepoint."""

from dataclasses import replace

import pytest

from streamgraft_operator.pe.view import ReleaseView
from streamgraft_operator.savepoint.stages import is_clean

EPOCH = 4
STOPPED = ReleaseView(epoch=EPOCH, released_at=0.0, last_batch_at=None, clean=True)


def test_shards_that_stopped_between_two_batches_are_clean() -> None:
    assert is_clean([STOPPED, replace(STOPPED, epoch=EPOCH + 1)], EPOCH)


@pytest.mark.parametrize(
    "other",
    [
        replace(STOPPED, clean=False),
        replace(STOPPED, resumed=True),
        replace(STOPPED, epoch=EPOCH - 1),
        None,
    ],
    ids=["cut off", "taken up since", "of an earlier assignment", "never said"],
)
def test_one_that_may_have_run_since_is_not(other: ReleaseView | None) -> None:
    """Its pod has died."""
    assert not is_clean([STOPPED, other], EPOCH)
