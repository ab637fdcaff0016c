"""Services that an application declares of an operator that runs nowhere, as earlier builds let
pass: the Job says so, and what runs of it goes on."""

import base64

from tests.operator.integration.world import application, bundle
from tests.simulation.applications import NAMESPACE, Submission
from tests.simulation.faults import apply
from tests.simulation.healthy import begin_healthy
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.test_edits import accepted
from tests.simulation.world import World

from streamgraft_common.bundle import read_bundle
from streamgraft_common.kinds import CONFIG_MAP
from streamgraft_common.resources import JOB, PROCESSING_ELEMENT

SUBMISSION = Submission("job", stages=1, max_width=2, width=1)


def lookup() -> bytes:
    """Return a bundle with a Service of an operator that nothing reads."""
    adl = application(NAMESPACE)
    seen = {"name": "seen", "kind": "function", "inputs": ["raw"], "outputs": ["seen"]}
    adl["operators"].append(seen)
    adl["streams"].append({**adl["streams"][0], "name": "seen", "producer": "seen"})
    adl["services"] = [{"name": "lookup", "operator": "seen", "port": 80}]
    return bundle(adl)


def submit_lookup(world: World) -> None:
    """Submit the job with that bundle."""
    content, carrier, job = lookup(), SUBMISSION.bundle_map(), SUBMISSION.manifest()
    carrier["binaryData"] = {"bundle.zip": base64.b64encode(content).decode()}
    job["spec"]["bundle"]["digest"] = read_bundle(content).digest
    apply(world, CONFIG_MAP, carrier)
    apply(world, JOB, job)


def is_refused(world: World) -> bool:
    condition = accepted(world)
    says = condition["reason"], "no sink can be reached" in condition["message"]
    return condition["status"] == "False" and says == ("GraphInvalid", True)


def test_a_job_is_refused() -> None:
    world = World(1)
    with world.surroundings():
        world.operators.start()
        submit_lookup(world)
        world.run(30.0)
        assert is_refused(world)
        assert not world.objects(PROCESSING_ELEMENT)


def test_an_edit_is_refused_and_what_runs_goes_on() -> None:
    world = World(1)
    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        submit_lookup(world)
        world.run(30.0)
        assert is_refused(world)
        element = world.objects(PROCESSING_ELEMENT)[0]["metadata"]
        world.request("DELETE", PROCESSING_ELEMENT, element["name"])
        world.run(60.0)
        there = {item["metadata"]["name"] for item in world.objects(PROCESSING_ELEMENT)}
        assert element["name"] in there
        assert is_healthy(world, "job")
