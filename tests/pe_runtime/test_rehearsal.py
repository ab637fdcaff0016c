"""Which plans a pod of the warm pool rehearses before it is ready."""

from typing import Any

from streamgraft_pe_runtime.rehearsal import first_and_later


def pe(region: str | None) -> dict[str, Any]:
    """Return as much of a PE as decides."""
    return {"spec": {"region": region} if region else {}}


def test_plans_of_channels_come_first() -> None:
    plans = {"source": pe(None), "channel": pe("work"), "sink": pe(None)}
    first, later = first_and_later(plans)
    assert [*first] == ["channel"]
    assert [*later] == ["source", "sink"]


def test_without_regions_all_plans_come_first() -> None:
    plans = {"source": pe(None), "sink": pe(None)}
    assert first_and_later(plans) == (plans, {})
