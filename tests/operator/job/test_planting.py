"""What of a consistent region follows the application when that is edited."""

from streamgraft_common.resources import CONSISTENT_REGION
from streamgraft_operator.job.planting import FROM_APPLICATION

ITS_OWN = {"job", "region"}
ASKED_FOR = {"requested", "rollbackRequested"}
"""Fields that others write: an edit must leave them alone."""


def test_all_that_an_application_says_of_a_consistent_region_follows_an_edit() -> None:
    fields = {item.alias or name for name, item in CONSISTENT_REGION.spec.model_fields.items()}
    assert {*FROM_APPLICATION} == fields - ITS_OWN - ASKED_FOR
