"""Whether what a PE reads of itself has to be written."""

from dataclasses import replace
from typing import Any

from tests.sdk.test_cli_plan import submission

from streamgraft_operator.graph import PlannedPe
from streamgraft_operator.manifests import pe_config_map
from streamgraft_operator.manifests.metadata import Owner
from streamgraft_operator.pe.grafting import _is_written

OWNER = Owner("default", "flights", "u", 1)


def planned(*, restored: bool) -> PlannedPe:
    """Return a PE of a job that begins, or began, from a savepoint."""
    asked = submission(savepoint={"name": "s"})
    return replace(asked, restored=restored).topology({}).pes[0]


def written(pe: PlannedPe, content_id: str = "c") -> dict[str, Any]:
    """Return its ConfigMap as caches have it."""
    return {"metadata": pe_config_map(OWNER, pe, content_id)["metadata"]}


def test_a_savepoint_that_was_put_to_use_is_no_longer_named() -> None:
    """Else a pod that starts later would go back to it where a checkpoint is lost."""
    before, since = (planned(restored=restored) for restored in (False, True))
    assert before.metadata.savepoint
    assert not since.metadata.savepoint
    assert _is_written(written(before), before, "c")
    assert not _is_written(written(before), since, "c")
    assert _is_written(written(since), since, "c")
    assert not _is_written(written(since), since, "another")
    assert not _is_written(None, since, "c")
