"""Which plans a pod of the warm pool rehearses before it is ready."""

import asyncio
from typing import Any, cast

import pytest

from streamgraft_pe_runtime import rehearsal
from streamgraft_pe_runtime.rehearsal import Rehearsal, first_and_later


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


class RehearsalOfNames(Rehearsal):
    """Notes which plans it would rehearse; behind `last`, a PE has named the pod."""

    def __init__(self, later: list[str], last: str = "") -> None:
        nothing = cast("Any", None)
        super().__init__(nothing, nothing, nothing, lambda: last in self.done)
        self._later = {plan: {} for plan in later}
        self.done: list[str] = []

    async def _rehearsed(self, plan: str, pe: Any) -> None:
        self.done.append(plan)


@pytest.mark.parametrize("pressure", [0.0, 0.5])
def test_other_plans_follow_even_if_cpu_is_never_free(
    monkeypatch: pytest.MonkeyPatch, pressure: float
) -> None:
    monkeypatch.setattr(rehearsal, "_IDLE_SECONDS", 0.01)
    monkeypatch.setattr(rehearsal, "_PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(rehearsal, "cpu_pressure", lambda: pressure)
    patient = RehearsalOfNames(["source", "sink"])
    asyncio.run(patient.others())
    assert patient.done == ["source", "sink"]
    named = RehearsalOfNames(["source", "sink"], last="source")
    asyncio.run(named.others())
    assert named.done == ["source"]
