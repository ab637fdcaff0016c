"""What `doctor` says of the control plane's part in autoscaling."""

from typing import Any

import pytest

from streamgraft.cli._check import Check
from streamgraft.cli._cluster import Cluster
from streamgraft.cli._doctor import _scaling
from streamgraft.cli._doctor_autoscaling import Scaling, flags_of, probe, scaling_checks
from streamgraft.cli._installation import Unseen
from streamgraft_common import names
from streamgraft_common.kinds import AUTOSCALER
from streamgraft_common.kube import KubeClient
from streamgraft_operator.manifests.autoscaler import without_tolerance

GATE = {"feature-gates": "HPAScaleToZero=true"}
SLEEPER = {"metadata": {"name": "j-r"}, "spec": {"autoscaling": {"minWidth": 0}}}
AWAKE = {"metadata": {"name": "j-r"}, "spec": {"autoscaling": {}}}
MADE = {**probe("n", 1), "metadata": {"name": "j-r", "labels": {names.LABEL_REGION: "r"}}}


def told(
    seen: Scaling, region: dict[str, Any] = AWAKE, *autoscalers: dict[str, Any]
) -> dict[str, Check]:
    """Return the checks by name."""
    return {item.name: item for item in scaling_checks(seen, [region], autoscalers)}


@pytest.mark.parametrize(
    ("zero", "flags", "state", "words"),
    [
        (False, GATE, "bad", "they keep one channel"),
        (False, Unseen.HIDDEN, "bad", "they keep one channel"),
        (True, {}, "bad", "nothing would wake them"),
        (True, {"feature-gates": "HPAScaleToZero=false"}, "bad", "nothing would wake them"),
        (True, Unseen.ABSENT, "unknown", "it is not to be seen"),
        (None, Unseen.HIDDEN, "unknown", "you may not try"),
        (True, GATE, "good", "and kube-controller-manager has it"),
    ],
)
def test_a_region_that_is_to_sleep_needs_the_gate_in_both(
    zero: bool | None, flags: Any, state: str, words: str
) -> None:
    found = told(Scaling(zero, tolerance=True, flags=flags), SLEEPER)["Scale to zero"]
    assert found.state == state
    assert words in found.text
    assert ("HPAScaleToZero" in found.mend) == (state != "good")


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("flags", [{}, Unseen.ABSENT])
def test_where_no_region_is_to_sleep_nothing_is_wrong(zero: bool, flags: Any) -> None:
    """It still says what a region could ask for."""
    assert told(Scaling(zero, tolerance=True, flags=flags))["Scale to zero"].state == "good"


@pytest.mark.parametrize(
    ("tolerance", "flags", "state"),
    [
        (True, Unseen.HIDDEN, "good"),
        (True, {"feature-gates": "HPAConfigurableTolerance=false"}, "unknown"),
        (False, {"horizontal-pod-autoscaler-tolerance": "0"}, "good"),
        (False, {}, "unknown"),
        (False, Unseen.ABSENT, "unknown"),
    ],
)
def test_small_steps_take_a_tolerance_of_the_hpa_or_none_at_all(
    tolerance: bool, flags: Any, state: str
) -> None:
    found = told(Scaling(zero=False, tolerance=tolerance, flags=flags))["Small steps of HPAs"]
    assert found.state == state
    assert ("1.35" in found.mend) == (state == "unknown")


def test_who_may_not_try_sees_it_by_what_the_operator_has_made() -> None:
    hidden = Scaling(zero=None, tolerance=None, flags=Unseen.HIDDEN)
    name = "Small steps of HPAs"
    assert name not in told(hidden)
    assert told(hidden, AWAKE, MADE)[name].state == "good"
    assert told(hidden, AWAKE, without_tolerance(MADE))[name].state == "unknown"
    by_another_metric = {**without_tolerance(MADE), "metadata": {"name": "own"}}
    assert name not in told(hidden, AWAKE, by_another_metric)


@pytest.mark.parametrize(
    ("flags", "state", "words"),
    [
        ({}, "good", "every 15s"),
        ({"horizontal-pod-autoscaler-sync-period": "5s"}, "good", "every 5s"),
        ({"horizontal-pod-autoscaler-sync-period": "1m0s"}, "unknown", "every 1m0s only"),
        (Unseen.HIDDEN, "unknown", "you may not see"),
        (Unseen.ABSENT, "unknown", "managed clusters"),
    ],
)
def test_how_often_the_controller_looks(flags: Any, state: str, words: str) -> None:
    found = told(Scaling(zero=True, tolerance=True, flags=flags))["HPA controller"]
    assert found.state == state
    assert words in found.text


def test_flags_of_a_static_pod() -> None:
    """In either form, and gates from several flags."""
    command = ["kube-controller-manager", "--leader-elect", "--feature-gates=A=true"]
    arguments = [
        "--horizontal-pod-autoscaler-tolerance",
        "0",
        "--feature-gates=HPAScaleToZero=true",
    ]
    pod = {"spec": {"containers": [{"command": command, "args": arguments}]}}
    found = flags_of([pod])
    assert found == {
        "feature-gates": "A=true,HPAScaleToZero=true",
        "horizontal-pod-autoscaler-tolerance": "0",
    }
    assert flags_of([]) is Unseen.ABSENT


@pytest.mark.integration
async def test_the_api_server_shows_its_gates_and_keeps_nothing(
    kube: KubeClient, namespace: str
) -> None:
    """That of the embedded environment has both; its controller manager is no pod."""
    seen = await _scaling(Cluster(kube, namespace))
    assert seen == Scaling(zero=True, tolerance=True, flags=Unseen.ABSENT)
    assert (await kube.get(AUTOSCALER.path(namespace)))["items"] == []
