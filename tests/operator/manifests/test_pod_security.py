"""By default, who may create Jobs can't have pods with more rights than the restricted standard."""

from typing import Any

import pytest
from tests.operator.manifests.pod_templates import (
    ALLOWED,
    FORBIDDEN,
    MALFORMED,
    MISSHAPEN,
    NULLS,
)
from tests.operator.manifests.test_manifests import IN_CONFIG_MAP, OWNER, SETTINGS, pod

from streamgraft_common.resources import JobSpec, PodSettings
from streamgraft_operator.manifests import PodForbidden, check_pods
from streamgraft_operator.manifests.pod_security import check


def settings(template: dict[str, Any]) -> PodSettings:
    """Return settings with a template."""
    return PodSettings.model_validate({"podTemplate": template})


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed(name: str) -> None:
    check(settings(ALLOWED[name]), "restricted")


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_is_forbidden_unless_the_installation_allows_it(name: str) -> None:
    with pytest.raises(PodForbidden, match="`restricted` does not allow"):
        check(settings(FORBIDDEN[name]), "restricted")
    check(settings(FORBIDDEN[name]), "privileged")


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("level", ["restricted", "privileged"])
def test_what_is_no_template(name: str, level: str) -> None:
    with pytest.raises(PodForbidden, match="is no PodTemplateSpec"):
        check(settings(MALFORMED[name]), level)


def of_job(template: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a job whose pods have a template."""
    return {**IN_CONFIG_MAP, "processingElement": {"podTemplate": template}}


@pytest.mark.parametrize("name", MISSHAPEN)
def test_what_no_pod_can_be_written_into_is_refused_with_the_job(name: str) -> None:
    """And where it is a PE's own, with its pod."""
    spec = of_job(MISSHAPEN[name])
    with pytest.raises(PodForbidden, match="is no PodTemplateSpec"):
        check_pods(OWNER, JobSpec.model_validate(spec), SETTINGS)
    with pytest.raises(PodForbidden, match="is no PodTemplateSpec"):
        pod(IN_CONFIG_MAP, {"podTemplate": MISSHAPEN[name]})


@pytest.mark.parametrize("name", NULLS)
def test_what_is_null_is_not_there(name: str) -> None:
    spec = of_job(NULLS[name])
    check_pods(OWNER, JobSpec.model_validate(spec), SETTINGS)
    made = pod(spec)["spec"]
    counts = len(made["containers"]), len(made["tolerations"])
    assert (*counts, len(made["topologySpreadConstraints"])) == (1, 2, 1)


def test_all_that_is_wrong_is_said_at_once() -> None:
    template = {"spec": {"hostNetwork": True, "hostPID": True}}
    with pytest.raises(PodForbidden, match="hostNetwork, hostPID: leave it out of podTemplate"):
        check(settings(template), "restricted")


def test_ptrace_is_a_capability_that_the_installation_must_allow() -> None:
    own = PodSettings(allow_ptrace=True)
    check(own, "privileged")
    with pytest.raises(PodForbidden, match="capability SYS_PTRACE"):
        check(own, "restricted")


def test_pods_are_made_by_the_standard() -> None:
    spec = pod(IN_CONFIG_MAP, {})["spec"]
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "fsGroup": 10001,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_a_pe_whose_own_template_is_too_much_gets_no_pod() -> None:
    with pytest.raises(PodForbidden, match="hostNetwork"):
        pod(IN_CONFIG_MAP, {"podTemplate": {"spec": {"hostNetwork": True}}})
