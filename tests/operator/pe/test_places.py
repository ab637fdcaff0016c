"""A stage that comes to another PE waits for the pods of the one that had it."""

from typing import Any

import pytest

from streamgraft_common import names
from streamgraft_operator.pe.places import displaced, displaced_pods

STAGES = {"job-0": "new", "job-1": "read"}


def labels(pe: str, stage: str) -> dict[str, str]:
    return {names.LABEL_PE: pe, names.LABEL_STAGE_NAME: stage, names.LABEL_LAUNCH: "1"}


@pytest.mark.parametrize(
    ("pe", "stage", "expected"),
    [
        ("job-0", "read", True),
        ("job-1", "read", False),
        ("job-7", "read", True),
        ("job-1", "gone", False),
    ],
)
def test_who_had_a_stage_that_another_pe_has_now(pe: str, stage: str, expected: bool) -> None:
    assert displaced(labels(pe, stage), STAGES) == expected


def test_warm_pods_had_none() -> None:
    assert not displaced({names.LABEL_POOL: names.POOL_WARM}, STAGES)


@pytest.mark.parametrize(("phase", "expected"), [("Running", True), ("Failed", False)])
def test_pods_that_have_ended_hold_nobody_up(phase: str, expected: bool) -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "job-0-1", "uid": "u", "labels": labels("job-0", "read")},
        "spec": {"nodeName": "node"},
        "status": {"phase": phase},
    }
    assert displaced_pods([pod], STAGES) == expected
