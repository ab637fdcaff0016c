"""What of a region follows the application when that is edited."""

from streamgraft_common.resources import CONSISTENT_REGION, PARALLEL_REGION
from streamgraft_operator.job.planting import FROM_APPLICATION, FROM_JOB

ITS_OWN = {"job", "region"}
ASKED_FOR = {"requested", "rollbackRequested"}
"""Fields that others write: an edit must leave them alone."""


def test_all_that_an_application_says_of_a_consistent_region_follows_an_edit() -> None:
    fields = {item.alias or name for name, item in CONSISTENT_REGION.spec.model_fields.items()}
    assert {*FROM_APPLICATION} == fields - ITS_OWN - ASKED_FOR


def test_all_that_an_application_says_of_a_parallel_region_follows_an_edit() -> None:
    """But for the width, which users and autoscalers set, and what can't be edited."""
    fields = {item.alias or name for name, item in PARALLEL_REGION.spec.model_fields.items()}
    assert {*FROM_JOB} == fields - ITS_OWN - {"width", "maxWidth", "key"}
