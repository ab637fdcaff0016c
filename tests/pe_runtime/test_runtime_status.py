"""The patch of the PE's own part of the status."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.simulation.fake_patches import merged

from streamgraft_common.resources import Release, RuntimeStatus, ShardStatus
from streamgraft_pe_runtime.protocol.runtime_status import applied, merge_patch

shards = st.builds(
    ShardStatus,
    state=st.sampled_from(["Starting", "Running", "Stopping", "Failed"]),
    epoch=st.integers(0, 3),
    started_at=st.none() | st.just("2026-01-01T00:00:00.000Z"),
    message=st.sampled_from(["", "broken"]),
)
releases = st.builds(Release, epoch=st.integers(0, 3), released_at=st.just("t"))
numbers = st.integers(0, 3).map(str)
statuses = st.builds(
    RuntimeStatus,
    pod=st.just("p"),
    ready=st.booleans(),
    shards=st.dictionaries(numbers, shards),
    releases=st.dictionaries(numbers, releases),
)


@given(statuses, statuses)
def test_the_patch_leads_from_any_status_to_any_other(
    old: RuntimeStatus, new: RuntimeStatus
) -> None:
    """Shards that are gone disappear, and so do fields that are None."""
    known = old.to_wire()
    patched = merged({"status": {"runtime": known}}, merge_patch(known, new))
    assert patched["status"]["runtime"] == new.to_wire()


@given(statuses, statuses, statuses, st.booleans())
def test_a_patch_that_may_be_lost(
    old: RuntimeStatus, lost: RuntimeStatus, new: RuntimeStatus, arrived: bool
) -> None:
    """The next patch is right whether the one before arrived or not."""
    known = old.to_wire()
    first = merge_patch(known, lost)
    server: Any = {"status": {"runtime": known}}
    server = merged(server, first) if arrived else server
    second = merge_patch(applied(known, first), new)
    assert merged(server, second)["status"]["runtime"] == new.to_wire()
