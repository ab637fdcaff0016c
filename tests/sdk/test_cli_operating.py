"""`doctor`, `top`, output for programs, and completion: what they make of what they see."""

import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamgraft.cli import _output as output
from streamgraft.cli._doctor_autoscaling import Scaling
from streamgraft.cli._doctor_checks import (
    RIGHTS,
    Facts,
    checks,
)
from streamgraft.cli._installation import Unseen, settings_of, system_namespace
from streamgraft.cli._top import loads_of
from streamgraft.cli._watch import Snapshot
from streamgraft_common.resources import KINDS

BIN = Path(sys.executable).parent
PAGE = Path(__file__).parents[2] / "docs/operate/command-line.md"


def condition(kind: str, status: str, **more: str) -> dict[str, str]:
    """Return a condition."""
    return {
        "type": kind,
        "status": status,
        "reason": "Any",
        "message": "why",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        **more,
    }


def deployment(released: str = version("streamgraft"), tag: str = "") -> dict[str, Any]:
    """Return the operator's Deployment, as the chart makes it."""
    image = f"registry:5000/streamgraft:{tag or released}"
    volume = '--checkpoint-volume={"persistentVolumeClaim": {"claimName": "c"}}'
    command = ["python", "-m", "streamgraft_operator", volume, "--lease=own"]
    container = {"image": image, "command": command}
    return {
        "metadata": {"labels": {"app.kubernetes.io/version": released}},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


def region(created: str) -> dict[str, Any]:
    """Return region r of job j."""
    return {"metadata": {"name": "j-r", "creationTimestamp": created}, "spec": {"job": "j"}}


def facts(**changes: Any) -> Facts:
    """Return a cluster in which all is well."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    service = {"spec": {"service": {"namespace": "s", "name": "adapter"}}}
    autoscaler = {
        "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": {"kind": "ParallelRegion", "name": "j-r"}},
        "status": {"desiredReplicas": 3, "conditions": [condition("ScalingActive", "True")]},
    }
    job = {
        "metadata": {"name": "j"},
        "status": {"phase": "Healthy", "conditions": [condition("KafkaAvailable", "True")]},
    }
    good: dict[str, Any] = {
        "version": "v1.34.1",
        "namespace": "n",
        "kinds": frozenset(kind.plural for kind in KINDS),
        "definitions": {"jobs.streamgraft.io": "1"},
        "helm": "",
        "released": {"jobs.streamgraft.io": "1"},
        "system": "s",
        "deployment": deployment(),
        "lease": {"spec": {"holderIdentity": "one", "renewTime": now}},
        "claims": {"c": {"status": {"phase": "Bound"}}},
        "api_services": {
            "custom.metrics.k8s.io": {
                **service,
                "status": {"conditions": [condition("Available", "True")]},
            }
        },
        "allowed": dict.fromkeys(RIGHTS, True),
        "forwards": True,
        "jobs": [job],
        "regions": [region("2026-01-01T00:00:00Z")],
        "autoscalers": [autoscaler],
        "signals": {"j-r": None},
        "scaling": Scaling(zero=True, tolerance=True, flags={}),
    }
    return Facts(**{**good, **changes})


def test_all_is_well() -> None:
    found = checks(facts())
    assert [(check.state, check.mend) for check in found] == [("good", "")] * 14
    assert settings_of(deployment())["lease"] == "own"


def test_the_page_has_a_row_for_each_check() -> None:
    section = PAGE.read_text().partition("**When something is wrong.**")[2]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines()]
    listed = {part.lower() for row in rows for part in row.split(", ")}
    found = {check.name.lower() for check in checks(facts())}
    named = {"hpas of regions" if name.startswith("hpa a") else name for name in found}
    named = {"metrics apis" if name.endswith("metrics.k8s.io") else name for name in named}
    renamed = {"small steps of hpas": "small steps"}
    assert {renamed.get(name, name) for name in named} - listed == set()


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        ({"version": "v1.30.9"}, "Kubernetes", "1.31 or newer"),
        ({"kinds": None}, "Resource definitions", "streamgraft up"),
        ({"kinds": frozenset({"jobs"})}, "Resource definitions", "deploy/crds"),
        (
            {"definitions": {"jobs.streamgraft.io": "0"}},
            "Resource definitions",
            "kubectl apply --server-side -f deploy/crds",
        ),
        (
            {"definitions": {"jobs.streamgraft.io": "0"}, "helm": "mine -n ours"},
            "Resource definitions",
            "helm upgrade mine -n ours, with the chart of this release",
        ),
        (
            {"lease": {"spec": {"holderIdentity": "x", "renewTime": "2026-01-01T00:00:00Z"}}},
            "Operator",
            "kubectl logs",
        ),
        (
            {"api_services": {"custom.metrics.k8s.io": Unseen.ABSENT}},
            "custom.metrics.k8s.io",
            "APIServices",
        ),
        (
            {
                "api_services": {
                    "external.metrics.k8s.io": {
                        "spec": {},
                        "status": {"conditions": [condition("Available", "False")]},
                    }
                }
            },
            "external.metrics.k8s.io",
            "caBundle",
        ),
        ({"claims": {}}, "Checkpoint volume", "ReadWriteMany"),
        ({"allowed": {RIGHTS[0]: True, RIGHTS[-1]: False}}, "Your rights", "streamgraft-edit"),
        (
            {
                "jobs": [
                    {
                        "metadata": {"name": "j"},
                        "status": {"conditions": [condition("SourcesAvailable", "False")]},
                    }
                ]
            },
            "Kafka of job j",
            "--create-topics",
        ),
        ({"signals": {"j-r": "no data"}}, "Prometheus", "scrape"),
        (
            {
                "autoscalers": [
                    {
                        "metadata": {"name": "a"},
                        "spec": {"scaleTargetRef": {"kind": "ParallelRegion", "name": "j-r"}},
                        "status": {"conditions": [condition("ScalingActive", "False")]},
                    }
                ]
            },
            "HPA a",
            "describe hpa a",
        ),
    ],
)
def test_each_fault_is_shown_with_its_remedy(change: dict[str, Any], name: str, words: str) -> None:
    (bad,) = [check for check in checks(facts(**change)) if check.state == "bad"]
    assert bad.name == name
    assert words in bad.mend


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"deployment": deployment("9.9")}, "Version"),
        ({"deployment": deployment(tag="9.9")}, "Version"),
        ({"claims": {"c": {"status": {"phase": "Pending"}}}}, "Checkpoint volume"),
        ({"api_services": {"external.metrics.k8s.io": Unseen.ABSENT}}, "external.metrics.k8s.io"),
        ({"api_services": {"custom.metrics.k8s.io": Unseen.HIDDEN}}, "custom.metrics.k8s.io"),
        ({"definitions": None}, "Resource definitions"),
        ({"signals": None}, "Prometheus"),
        ({"forwards": False}, "Console"),
    ],
)
def test_what_may_be_right_is_no_fault(change: dict[str, Any], name: str) -> None:
    """Above all what the caller may not see: tenants see little of a healthy cluster."""
    assert [(c.name, c.state) for c in checks(facts(**change)) if c.state != "good"] == [
        (name, "unknown")
    ]


def test_who_applies_what_is_not_there_yet_creates_it() -> None:
    """To the API server a server-side apply is both."""
    asked = {str(right) for right in RIGHTS}
    applied = [right for right in RIGHTS if right.verb == "patch" and not right.subresource]
    assert {f"create {right.resource}" for right in applied} <= asked
    # `cancel` and `plan`.
    assert {"delete configmaps", "list configmaps"} <= asked


def test_definitions_of_the_operators_other_release_are_for_its_command_line() -> None:
    change = {"definitions": {"jobs.streamgraft.io": "0"}, "deployment": deployment("9.9")}
    found = {check.name: check for check in checks(facts(**change))}
    assert found["Resource definitions"].state == "unknown"
    assert "command line of 9.9" in found["Resource definitions"].mend


def test_a_job_that_has_just_begun_has_no_samples() -> None:
    """Neither Prometheus nor its autoscaler is at fault."""
    silent: dict[str, Any] = {"signals": {"j-r": "no data"}, "autoscalers": facts().autoscalers}
    silent["autoscalers"][0]["status"]["conditions"] = [condition("ScalingActive", "False")]
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    starting = {"metadata": {"name": "j"}, "status": {"phase": "Submitted"}}
    for change in ({"regions": [region(now)]}, {"jobs": [starting]}):
        states = {check.name: check.state for check in checks(facts(**silent, **change))}
        assert (states["Prometheus"], states["HPA a"]) == ("unknown", "unknown")
    states = {check.name: check.state for check in checks(facts(**silent))}
    assert (states["Prometheus"], states["HPA a"]) == ("bad", "bad")


def test_external_metrics_are_a_fault_where_an_autoscaler_wants_them() -> None:
    autoscaler = facts().autoscalers[0]
    autoscaler["spec"]["metrics"] = [{"type": "External"}]
    services = {"external.metrics.k8s.io": Unseen.ABSENT}
    found = checks(facts(api_services=services, autoscalers=[autoscaler]))
    assert [c.name for c in found if c.state == "bad"] == ["external.metrics.k8s.io"]


def test_the_installation_is_where_the_adapter_is() -> None:
    assert system_namespace(None) == "streamgraft-system"
    service = {"spec": {"service": {"namespace": "own", "name": "a"}}}
    assert system_namespace(service) == "own"


def test_a_tag_that_an_upgrade_has_kept_is_told() -> None:
    """The label is the chart's; what runs is the image's."""
    (told,) = [c for c in checks(facts(deployment=deployment(tag="0.0.9"))) if c.name == "Version"]
    assert "image is 0.0.9" in told.text
    assert "--set image.tag=" in told.mend
    pinned = deployment(tag=f"{version('streamgraft')}@sha256:{'0' * 64}")
    assert all(check.state == "good" for check in checks(facts(deployment=pinned)))


def test_an_operator_that_leads_while_a_definition_is_missing_is_not_called_good() -> None:
    states = {check.name: check.state for check in checks(facts(kinds=frozenset({"jobs"})))}
    assert states["Operator"] == "unknown"


def test_a_lease_that_may_not_be_read_is_no_fault() -> None:
    assert [c.name for c in checks(facts(lease=None)) if c.state == "unknown"] == ["Operator"]


def element(number: int, *shards: tuple[float | None, int | None]) -> dict[str, Any]:
    """Return a processing element with shards of such (busy, lag)."""
    held = {
        str(index): {"state": "Running", "epoch": 1, "busy": busy, "lag": lag}
        for index, (busy, lag) in enumerate(shards)
    }
    return {
        "metadata": {"name": f"f-{number}"},
        "spec": {"job": "f", "peId": number, "stageName": "s"},
        "status": {"phase": "Running", "launchCount": 1, "runtime": {"shards": held}},
    }


def test_top_has_the_busiest_first() -> None:
    """A PE is as busy as its busiest shard; one that has reported nothing is last."""
    elements = [element(0), element(1, (0.2, 5), (0.9, 7)), element(2, (0.9, 40))]
    found = loads_of(Snapshot(jobs=[], regions=[], elements=elements))
    assert [(load.pe, load.busy, load.waiting) for load in found] == [
        ("f-2", 0.9, 40),
        ("f-1", 0.9, 12),
        ("f-0", None, None),
    ]


def test_documents(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("json", "yaml"):
        output.document([{"name": "ü", "none": None}], form)
        assert yaml.safe_load(capsys.readouterr().out) == [{"name": "ü", "none": None}]


def test_kubectl_completes_the_last_word() -> None:
    """In the form that kubectl reads: a choice a line, then a directive."""

    def completed(*words: str) -> list[str]:
        program = BIN / "kubectl_complete-streamgraft"
        result = subprocess.run([program, *words], capture_output=True, text=True, check=True)
        *choices, directive = result.stdout.split()
        assert directive == ":4"
        return choices

    assert completed("savepoint", "cr") == ["create"]
    assert {"top", "test"} <= {*completed("t")}
    assert "--create-topics" in completed("submit", "--cr")
