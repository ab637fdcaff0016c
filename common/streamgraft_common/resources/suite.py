"""TestSuite: a run of system tests, each in a pod of its own (cloud native Streams, 6.7)."""

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from streamgraft_common import names
from streamgraft_common.resources.base import CelRule, Condition, CustomKind, Model, PrinterColumn

_OPEN = Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
Manifest = Annotated[dict[str, Any], _OPEN]
ScenarioName = Annotated[
    str, Field(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=names.MAX_NAME)
]

MAX_SUITE_NAME = 63
"""Longest name of a TestSuite: it is the value of a label, by which its pods are found."""


class Target(Model):
    """An object in the suite's namespace."""

    api_version: str = names.API_VERSION
    """Its API version. Default: that of our own kinds."""
    kind: str
    """Its kind."""
    name: str
    """Its name."""


class Probe(Target):
    """A state to wait for."""

    field: str = "status.phase"
    """Path of a field, as `status.width`; `[type=Ready]` or `[0]` chooses the entry of a list, and
    `['a.b/c']` is for names with dots."""
    equals: str | None = None
    """What the field must be, as text: 2, true, Healthy. Default: anything."""
    absent: bool = False
    """Wait until there is no such object."""
    for_seconds: Annotated[float, Field(ge=0)] = 0.0
    """How long it must hold without a break. Default: at one look."""


class Kill(Model):
    """Pods to kill, chosen at random."""

    selector: str
    """Label selector of the pods to choose from; only those that run are chosen."""
    count: Annotated[int, Field(ge=1)] = 1
    """How many."""
    seed: int | None = None
    """Makes the same choice among the same pods. Default: a new one, which the log tells."""


class PatchOf(Target):
    """A change of an object."""

    patch: Manifest
    """JSON merge patch."""


class Step(Model):
    """One action: exactly one of its fields besides `timeoutSeconds`."""

    apply: Annotated[dict[str, Any] | None, _OPEN] = None
    """Object to create or change, by server-side apply."""
    patch: PatchOf | None = None
    """Object to change: the width of a region, say."""
    delete: Target | None = None
    """Object to delete; one that is absent is fine."""
    kill: Kill | None = None
    """Pods to kill; the step ends when they are gone."""
    wait: Probe | None = None
    """State to wait for."""
    run: list[str] | None = None
    """Command to run in the test's pod; it must end with exit code 0."""
    sleep_seconds: Annotated[float, Field(ge=0)] | None = None
    """Time to let pass."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 60.0
    """The step fails if it takes longer."""


class Scenario(Model):
    """One test: steps that our runner takes one after the other, or a command of your own."""

    name: ScenarioName
    """Its name in the suite."""
    steps: list[Step] | None = None
    """What to do; the first step that fails ends it."""
    clean_up: list[Step] = []
    """What to do afterwards in any case."""
    command: list[str] | None = None
    """Command that is the whole test, in place of steps; exit code 0 is a success."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 600.0
    """The test is aborted if its pod has not ended so long after it was created."""
    env: dict[str, str] = {}
    """Environment variables."""
    node_selector: dict[str, str] = {}
    """Labels of the nodes that it may run on."""

    def as_variable(self) -> str:
        """Return it as JSON in the form in which Kubernetes leaves the value of an environment
        variable as it is: it expands `$(NAME)`, and makes one dollar of two."""
        return json.dumps(self.to_wire(), ensure_ascii=False).replace("$", "$$")


class SuiteSpec(Model):
    """Which tests to run, and how."""

    scenarios: list[Scenario]
    """The tests."""
    include: list[str] = ["*"]
    """Patterns of the names of tests to run (`*` for anything)."""
    exclude: list[str] = []
    """Patterns of the names of tests that are left out."""
    image: str | None = None
    """Image of the tests' pods. Default: the operator's for PEs, which has our runner."""
    concurrency: Annotated[int, Field(ge=1)] = 1
    """Tests that run at the same time."""
    failure_threshold: Annotated[int, Field(ge=1)] | None = None
    """Failed and aborted tests after which those that have not begun are aborted. Default: all
    are run."""
    artifacts: Literal["Keep", "KeepFailed", "Delete"] = "KeepFailed"
    """What becomes of the pods of tests that have ended, and of their logs."""
    pod_template: Annotated[dict[str, Any] | None, _OPEN] = None
    """A PodTemplateSpec into which the pod of each test is written; its container is `test`."""


class ScenarioRun(Model):
    """The run of one test."""

    name: str
    """The test's name."""
    pod_uid: str | None = None
    """metadata.uid of its pod, as soon as that was seen."""
    started_at: str | None = None
    """When its pod was created (RFC 3339)."""
    seconds: float | None = None
    """How long it took, once it has ended."""
    message: str = ""
    """Why it failed or was aborted."""


class SuiteStatus(Model):
    """How far it is: the names of the tests in each state."""

    phase: Literal["Pending", "Running", "Passed", "Failed"] = "Pending"
    """The suite as a whole; Passed if every test passed."""
    pending: list[str] = []
    """Tests that have not begun."""
    running: list[str] = []
    """Tests that run."""
    passed: list[str] = []
    """Tests that passed."""
    failed: list[str] = []
    """Tests that failed."""
    aborted: list[str] = []
    """Tests that did not come to an end, or never began."""
    runs: list[ScenarioRun] = []
    """What is known of each test that has begun or was aborted."""
    completed_at: str | None = None
    """When the last test ended (RFC 3339)."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    conditions: list[Condition] = []
    """Accepted: whether the spec makes sense, or came when the suite had ended; Ready: whether its
    pods can be created."""


TEST_SUITE = CustomKind(
    kind="TestSuite",
    plural="testsuites",
    short_names=["ts"],
    spec=SuiteSpec,
    status=SuiteStatus,
    rules=[
        CelRule(
            rule="size(self.scenarios) > 0",
            message="a test suite needs at least one scenario",
        )
    ],
    object_rules=[
        CelRule(
            rule=f"size(self.metadata.name) <= {MAX_SUITE_NAME}",
            message=f"the name of a test suite has at most {MAX_SUITE_NAME} characters",
        )
    ],
    columns=[
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        PrinterColumn(name="Running", type="string", json_path=".status.running", priority=1),
        PrinterColumn(name="Failed", type="string", json_path=".status.failed", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)
