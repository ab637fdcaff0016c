"""Whether a job's checkpoints stay where they are."""

import pytest

from streamgraft_operator.graph import GraphError
from streamgraft_operator.pe.volumes import check_same_volume

ONE = {"persistentVolumeClaim": {"claimName": "one"}}
OTHER = {"persistentVolumeClaim": {"claimName": "other"}}


def test_the_same_volume_is_no_change_nor_is_one_that_was_never_noted() -> None:
    check_same_volume(ONE, ONE)
    check_same_volume({}, ONE)


@pytest.mark.parametrize("wanted", [OTHER, {**ONE, "subPath": "folder"}])
def test_another_volume_is_refused_with_both_names(wanted: dict[str, object]) -> None:
    with pytest.raises(GraphError, match=r'"claimName": "one".*would begin anew'):
        check_same_volume(ONE, wanted)
