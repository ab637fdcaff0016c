"""Hostile objects: whatever a ParallelRegion says, the adapter goes on, and others keep their
signals."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.adapter_world import BAD, JSON, TEXTS, Tenants, region
from tests.fuzz.cases import CASES

from streamgraft_common.adl import Autoscaling, Period
from streamgraft_common.resources import ParallelRegionSpec, ParallelRegionStatus, WidthChange
from streamgraft_metrics_adapter.status import StatusError


def fields(*models: Any) -> list[str]:
    """Return the names of the models' fields, as they are written."""
    return [field.alias for model in models for field in model.model_fields.values()]


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 2000)
VALUES = JSON | NUMBERS | st.sampled_from(["America", "UTC", "00:00", "demand", "scale", "True"])
CHANGES = st.lists(st.dictionaries(st.sampled_from(fields(WidthChange)), VALUES), max_size=2)
AUTOSCALING = st.dictionaries(
    st.sampled_from(fields(Autoscaling)),
    VALUES | st.lists(st.dictionaries(st.sampled_from(fields(Period)), VALUES), max_size=2),
)
SPEC = st.dictionaries(st.sampled_from(fields(ParallelRegionSpec)), VALUES)
STATUS = st.dictionaries(st.sampled_from(fields(ParallelRegionStatus)), VALUES | CHANGES)


@settings(max_examples=CASES)
@given(SPEC, AUTOSCALING | st.none(), STATUS | JSON, st.dictionaries(TEXTS, TEXTS) | JSON)
def test_any_object_is_its_own_error(
    spec: dict[str, Any], autoscaling: dict[str, Any] | None, status: Any, labels: Any
) -> None:
    tenants = Tenants()
    before = tenants.refresh()
    odd = region(BAD)
    odd["spec"] |= {**({"autoscaling": autoscaling} if autoscaling is not None else {}), **spec}
    odd["status"], odd["metadata"]["labels"] = status, labels
    tenants.regions.tell(odd)
    assert tenants.refresh() == before
    try:
        found = tenants.provider.region(BAD, "j-r")
    except StatusError:
        return
    assert tenants.provider.read_all(found)
