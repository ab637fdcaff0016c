"""What Prometheus reads of a job's health: from pods, through all controllers, to metrics."""

from collections import Counter

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.simulation.applications import Submission
from tests.simulation.faults import crash_pod, submit
from tests.simulation.world import World

from streamgraft_common.resources import JOB, PROCESSING_ELEMENT
from streamgraft_operator.kit import metrics

NAME = "told"
SECONDS = 120.0


def told(metric: str, **labels: str) -> list[float]:
    """Return the values of all series of the job, as Prometheus reads them."""
    wanted = {"streams_job": NAME, **labels}.items()
    return [
        sample.value
        for family in text_string_to_metric_families(generate_latest(metrics.REGISTRY).decode())
        for sample in family.samples
        if sample.name == metric and wanted <= sample.labels.items()
    ]


def test_pods_that_never_run_and_pods_that_fail_are_told() -> None:
    world = World(1)
    with world.surroundings():
        soon = world.nodes.delay
        world.nodes.delay = 1e6
        submit(world, Submission(NAME, stages=1, max_width=2, width=1))
        world.operators.start()
        world.run(SECONDS)
        pes = len(world.objects(PROCESSING_ELEMENT))
        assert told("streamgraft_job_phase", phase="Healthy") == [0]
        assert told("streamgraft_job_pes", kind="ready") == [0]
        assert told("streamgraft_operator_pe_ready") == [0] * pes
        assert told("streamgraft_operator_pe_failures_total") == [0] * pes

        world.nodes.delay = soon
        for item in world.objects(PROCESSING_ELEMENT):
            world.request("DELETE", PROCESSING_ELEMENT, item["metadata"]["name"])
        world.run(SECONDS)
        assert told("streamgraft_job_phase", phase="Healthy") == [1]
        assert told("streamgraft_job_pes", kind="ready") == [pes]
        assert told("streamgraft_operator_pe_ready") == [1] * pes

        crash_pod(world)
        world.run(SECONDS)
        failures = Counter(told("streamgraft_operator_pe_failures_total"))
        assert failures == {0: pes - 1, 1: 1}

        world.request("DELETE", JOB, NAME)
        world.run(SECONDS)
        for metric in ("job_phase", "job_pes", "operator_pe_ready", "operator_pe_failures_total"):
            assert told(f"streamgraft_{metric}") == []
