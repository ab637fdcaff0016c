"""TestSuite: a run of system tests, each in a pod of its own."""

from typing import Annotated, Any, Literal

from pydantic import Field

from streamgraft_common.resources.base import CelRule, Condition, CustomKind, Model, PrinterColumn


class TestSuiteSpec(Model):
    """Which tests to run, and how."""

    tests: list[str] | None = None
    """Names of the tests to run. Default: all that `include` matches."""
    include: list[str] | None = None
    """Patterns of the names of tests to run (`*` for anything)."""
    exclude: list[str] = []
    """Patterns of the names of tests that are left out."""
    image: str
    """Image with the tests and their runner."""
    concurrency: Annotated[int, Field(ge=1)] = 1
    """Tests that run at the same time."""
    failure_threshold: Annotated[int, Field(ge=1)] | None = None
    """Failed and aborted tests after which no further test is started. Default: all are run."""
    artifacts: Literal["Keep", "KeepFailed", "Delete"] = "KeepFailed"
    """What becomes of the pods of tests that have ended, and of their logs."""
    pod_template: Annotated[
        dict[str, Any] | None,
        Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}),
    ] = None
    """A PodTemplateSpec into which the pod of each test is written."""


class TestSuiteStatus(Model):
    """How far it is: the names of the tests in each state."""

    phase: Literal["Pending", "Running", "Passed", "Failed"] = "Pending"
    """The suite as a whole."""
    pending: list[str] = []
    """Tests that have not begun."""
    running: list[str] = []
    """Tests that run."""
    passed: list[str] = []
    """Tests that passed."""
    failed: list[str] = []
    """Tests that failed."""
    aborted: list[str] = []
    """Tests that did not come to an end."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    conditions: list[Condition] = []
    """Ready: False with reason NotSupported, since this version does nothing with it."""


TEST_SUITE = CustomKind(
    kind="TestSuite",
    plural="testsuites",
    short_names=["ts"],
    spec=TestSuiteSpec,
    status=TestSuiteStatus,
    rules=[
        CelRule(
            rule="has(self.tests) != has(self.include)",
            message="a test suite needs either tests or include",
        )
    ],
    columns=[
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        PrinterColumn(name="Running", type="string", json_path=".status.running", priority=1),
        PrinterColumn(name="Failed", type="string", json_path=".status.failed", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)
