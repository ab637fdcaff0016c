"""What an edit of a running job does to the state of its operators."""

from dataclasses import replace

import pytest
from tests.simulation.applications import (
    FOREIGN_TOPIC,
    NAMESPACE,
    SINK_TOPIC,
    SOURCE_TOPIC,
    Submission,
)
from tests.simulation.fake_checkpoints import metadata_of
from tests.simulation.fake_pe import Tempo
from tests.simulation.faults import submit, upload
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import CONFIG_MAP, SECRET
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PROCESSING_ELEMENT, SAVEPOINT

SECONDS = 400.0
TWO = Submission("job", stages=2, max_width=2, width=2)
ONE = replace(TWO, stages=1)


def edit(world: World, submission: Submission) -> None:
    """Submit another version, and let it come to rest."""
    submit(world, submission)
    world.run(SECONDS)


def stages(world: World) -> dict[int, str]:
    """Return the stages of all PEs, by id."""
    specs = [item["spec"] for item in world.objects(PROCESSING_ELEMENT)]
    return {spec["peId"]: spec["stageName"] for spec in specs}


def accepted(world: World) -> Object:
    """Return the Job's condition Accepted."""
    (job,) = world.objects(JOB)
    found = [item for item in job["status"]["conditions"] if item["type"] == "Accepted"]
    condition: Object = found[0]
    return condition


def refusal(world: World) -> str:
    """Return why the Job is not accepted."""
    assert accepted(world)["status"] == "False"
    return str(accepted(world)["message"])


def test_an_edit_that_drops_state_is_refused_unless_it_is_allowed() -> None:
    world = World(1)
    with world.surroundings():
        submit(world, TWO)
        world.operators.start()
        world.run(SECONDS)
        before = stages(world)
        assert set(before.values()) == {"read", "work", "second", "write"}
        edit(world, replace(ONE, extra={"dropState": []}))
        assert accepted(world)["status"] == "False"
        assert "--drop-state second" in accepted(world)["message"]
        assert stages(world) == before
        edit(world, ONE)
        assert accepted(world)["status"] == "True"
        assert set(stages(world).values()) == {"read", "work", "write"}


def test_state_that_would_be_another_is_refused_and_goes_on() -> None:
    world = World(1)
    with world.surroundings():
        submit(world, ONE)
        world.operators.start()
        world.run(SECONDS)
        before = world.nodes.checkpoints.counts("work")
        edit(world, replace(ONE, version=2, kept="sum"))
        assert accepted(world)["status"] == "False"
        assert "holds (count bigint), and would hold (sum bigint)" in accepted(world)["message"]
        edit(world, replace(ONE, version=2))
        assert accepted(world)["status"] == "True"
        after = world.nodes.checkpoints.counts("work")
        assert before.keys() == after.keys()
        assert all(after[key] > count for key, count in before.items())


@pytest.mark.parametrize("seed", range(3))
def test_a_stage_that_comes_back_after_it_was_dropped_begins_anew(seed: int) -> None:
    world = World(seed)
    with world.surroundings():
        submit(world, TWO)
        world.operators.start()
        world.run(SECONDS)
        edit(world, ONE)
        dropped = world.nodes.checkpoints.counts("second")
        edit(world, TWO)
        assert accepted(world)["status"] == "True"
        assert world.nodes.checkpoints.counts("second") == dropped
        again = world.nodes.checkpoints.counts("second.2")
        assert again.keys() == dropped.keys()
        edit(world, replace(TWO, version=2))
        after = world.nodes.checkpoints.counts("second.2")
        assert all(after[key] > count for key, count in again.items())
        (job,) = world.objects(JOB)
        assert job["status"]["droppedStages"] == {"second": 1}


def test_readers_drop_repeats_also_after_their_writer_has_another_delivery() -> None:
    """What it sent before may not be read yet when the edit comes."""
    world = World(1)
    with world.surroundings():
        submit(world, replace(TWO, loose=True))
        world.operators.start()
        world.run(SECONDS)
        assert repeats(world) == {"raw": False, "middle": True, "done": False}
        edit(world, replace(TWO, version=2))
        assert accepted(world)["status"] == "True"
        assert repeats(world) == {"raw": False, "middle": True, "done": False}
        (job,) = world.objects(JOB)
        assert job["status"]["repeating"] == ["work"]


def repeats(world: World) -> dict[str, bool]:
    """Return of each stream whether who reads it is told that its records may come again."""
    pes = [item.pe.metadata for item in world.nodes.containers.values() if item.process.alive]
    ports = [port for text in pes for port in metadata_of(text).inputs]
    return {port.stream: port.repeats for port in ports}


def test_a_stage_more_moves_no_state() -> None:
    """Its PEs take the ids of others, which run their stages on under new ones."""
    world = World(1)
    with world.surroundings():
        submit(world, ONE)
        world.operators.start()
        world.run(SECONDS)
        before = world.nodes.checkpoints.counts("work")
        assert min(before.values()) > 0
        edit(world, TWO)
        assert stages(world)[3] == "second"
        after = world.nodes.checkpoints.counts("work")
        assert before.keys() == after.keys()
        assert all(after[key] > count for key, count in before.items())


@pytest.mark.parametrize("seed", range(5))
def test_a_new_first_source_shifts_all_pes_and_no_state(seed: int) -> None:
    """No stage is run by two PEs at a time meanwhile: an invariant of the simulation."""
    world = World(seed)
    with world.surroundings():
        submit(world, ONE)
        world.operators.start()
        world.run(SECONDS)
        world.nodes.tempo = Tempo(warm_up=0.1, plan=0.1, start=0.1, stop=20.0)
        before, checkpoint = stages(world), world.nodes.checkpoints.counts("work")
        assert before == {0: "read", 1: "write", 2: "work", 3: "work"}
        edit(world, replace(ONE, sources=2))
        assert stages(world) == {0: "other", 1: "read", 2: "write", 3: "work", 4: "work"}
        after = world.nodes.checkpoints.counts("work")
        assert all(after[key] > count for key, count in checkpoint.items())


def test_a_pe_that_met_another_bundle_looks_again() -> None:
    """A user goes back and forth; the plan of the newer version meets the older one's code."""
    world = World(1)
    newer = replace(ONE, version=2)
    with world.surroundings():
        submit(world, ONE)
        world.operators.start()
        world.run(SECONDS)
        world.weather.watch_delay = 1.0
        submit(world, newer)
        while _told(world) < 1:
            world.run(0.1)
        upload(world, ONE)
        world.run(20)
        told = [item["status"]["runtime"]["message"] for item in world.objects(PROCESSING_ELEMENT)]
        assert any("has other code" in message for message in told)
        upload(world, newer)
        world.run(SECONDS)
        (job,) = world.objects(JOB)
        assert job["status"]["phase"] == "Healthy"


def test_positions_stay_in_their_kafka_cluster() -> None:
    """Other addresses of it are fine; what they are of has to be known before anything is done."""
    world = World(1)
    renamed, other = ({"bootstrapServers": f"{name}:9092"} for name in ("renamed", "other"))
    with world.surroundings():
        submit(world, ONE)
        world.operators.start()
        world.run(SECONDS)
        world.brokers.clusters["other:9092"] = "mirror"
        edit(world, replace(ONE, extra=other))
        assert accepted(world)["status"] == "False"
        assert "other:9092 is the Kafka cluster mirror" in accepted(world)["message"]
        world.brokers.unreliable = 1.0
        edit(world, replace(ONE, extra=renamed))
        assert accepted(world)["status"] == "Unknown"
        assert "not known yet whether renamed:9092" in accepted(world)["message"]
        world.brokers.unreliable = 0.0
        world.run(SECONDS)
        assert accepted(world)["status"] == "True"
        (job,) = world.objects(JOB)
        assert job["status"]["phase"] == "Healthy"
        assert job["status"]["madeInKafka"]["servers"] == "renamed:9092"


def test_topics_that_came_too_late_for_an_edit_are_the_jobs() -> None:
    """What runs goes on meanwhile, and its own note of topics has them, too."""
    world = World(1)
    with world.surroundings():
        submit(world, ONE)
        world.operators.start()
        world.run(SECONDS)
        before = set(world.brokers.topics)
        world.brokers.late.add("test.job.middle")
        upload(world, replace(ONE, stages=3))
        world.run(SECONDS)
        edit(world, replace(ONE, stages=3))
        assert world.brokers.topics.keys() - before == {"test.job.middle"}
        assert accepted(world)["status"] == "True"
        world.request("DELETE", JOB, "job", {})
        world.run(SECONDS)
        assert world.brokers.topics.keys() == {SOURCE_TOPIC, FOREIGN_TOPIC, SINK_TOPIC}


def test_a_refused_edit_of_the_brokers_leaves_no_topics_behind() -> None:
    """The job is deleted where its topics are, wherever the edit says that they should be."""
    world = World(1)
    with world.surroundings():
        submit(world, ONE)
        world.operators.start()
        world.run(SECONDS)
        outside = {SOURCE_TOPIC, FOREIGN_TOPIC, SINK_TOPIC}
        assert world.brokers.topics.keys() > outside
        world.brokers.clusters["other:9092"] = "mirror"
        edit(world, replace(ONE, extra={"bootstrapServers": "other:9092"}))
        assert accepted(world)["status"] == "False"
        world.request("DELETE", JOB, "job", {})
        world.run(SECONDS)
        assert world.objects(JOB) == []
        assert world.brokers.topics.keys() == outside
        left = [item["metadata"]["name"] for item in world.objects(CONFIG_MAP)]
        assert left == ["job-bundle"], "that is the user's"


def _told(world: World) -> int:
    """Return how many PEs have the content of a second version."""
    return sum(item["metadata"]["generation"] > 1 for item in world.objects(PROCESSING_ELEMENT))


@pytest.mark.parametrize("seed", range(6))
def test_healthy_means_that_all_pes_have_the_new_code(seed: int) -> None:
    """`submit --wait` returns then; what is sent after that is for the new code."""
    world = World(seed)
    with world.surroundings():
        submit(world, ONE)
        world.operators.start()
        world.run(SECONDS)
        world.nodes.tempo = Tempo(warm_up=0.1, plan=20.0, start=0.1, stop=0.1)
        world.weather.watch_delay = 0.2
        (before,) = world.objects(JOB)
        submit(world, replace(ONE, version=2))
        while not _healthy_with_another(world, before["status"]["bundleDigest"]):
            world.run(0.02)
        for item in world.objects(PROCESSING_ELEMENT):
            content = item["metadata"]["annotations"][names.ANNOTATION_CONTENT]
            assert item["status"]["runtime"]["contentId"] == content
        assert _told(world) >= 1


def test_a_parameter_that_state_follows_from_takes_a_bundle_that_was_built_for_it() -> None:
    world = World(1)
    with world.surroundings():
        submit(world, replace(ONE, built_with=1))
        world.operators.start()
        world.run(SECONDS)
        before = world.nodes.checkpoints.counts("work")
        edit(world, replace(ONE, built_with=1, speed=2))  # as kubectl does
        assert "would run with speed=2, and the bundle was built with speed=1" in refusal(world)
        edit(world, replace(ONE, built_with=2, speed=2))
        assert accepted(world)["status"] == "True"
        edit(world, replace(ONE, built_with=2, speed=2, version=2))
        assert accepted(world)["status"] == "True"
        after = world.nodes.checkpoints.counts("work")
        assert all(after[key] > count for key, count in before.items())


def test_a_job_that_began_with_a_bundle_for_other_values_gets_the_right_one_first() -> None:
    world = World(1)
    with world.surroundings():
        submit(world, replace(ONE, built_with=1, speed=2))
        world.operators.start()
        world.run(SECONDS)
        assert accepted(world)["status"] == "True"
        edit(world, replace(ONE, built_with=1, speed=2, width=1))
        assert accepted(world)["status"] == "True"
        edit(world, replace(ONE, built_with=2, speed=2, version=2))
        assert "first run the same application, built with --param speed=2" in refusal(world)
        for version in (1, 2):
            edit(world, replace(ONE, built_with=2, speed=2, version=version))
            assert accepted(world)["status"] == "True"


def _healthy_with_another(world: World, digest: str) -> bool:
    (job,) = world.objects(JOB)
    status = job["status"]
    current = status["observedGeneration"] == job["metadata"]["generation"]
    return bool(current and status["phase"] == "Healthy" and status["bundleDigest"] != digest)


def test_certificates_are_kept_while_an_edit_is_refused() -> None:
    """What runs needs them, for as long as the user takes."""
    world = World(1)
    encrypted = {"transportSecurity": {"type": "TLS"}}
    secret = names.control_secret("job")
    with world.surroundings():
        submit(world, replace(ONE, extra=encrypted))
        world.operators.start()
        world.run(SECONDS)
        assert world.get(SECRET, secret)
        edit(world, replace(ONE, extra={**encrypted, "parameters": {"unknown": "1"}}))
        assert accepted(world)["reason"] == "GraphInvalid"
        world.request("DELETE", SECRET, secret, {})
        world.run(120.0)
        assert world.get(SECRET, secret)
        plain = {"transportSecurity": {"type": "None"}, "parameters": {"unknown": "1"}}
        edit(world, replace(ONE, extra=plain))
        assert accepted(world)["reason"] == "GraphInvalid"
        world.request("DELETE", SECRET, secret, {})
        world.run(120.0)
        assert world.get(SECRET, secret)


def test_an_edit_that_is_taken_back_half_way_drops_what_it_dropped() -> None:
    """What its region has handled meanwhile never got to what comes back, which begins anew."""
    two = replace(ONE, sources=2)
    world = World(1)
    with world.surroundings():
        submit(world, two)
        world.operators.start()
        world.run(SECONDS)
        gone = set(stages(world).values())
        world.nodes.tempo = replace(world.nodes.tempo, stop=60.0)
        submit(world, ONE)
        world.run(5.0)
        assert set(stages(world).values()) & gone, "it waits for pods that end"
        edit(world, two)
        assert accepted(world)["status"] == "True"
        (job,) = world.objects(JOB)
        gone -= {"read", "work", "write"}
        assert job["status"]["droppedStages"] == dict.fromkeys(sorted(gone), 1)
        assert set(stages(world).values()) == {*gone, "read", "work", "write"}


def test_a_topic_in_the_way_of_an_edit_is_not_used() -> None:
    world = World(1)
    with world.surroundings():
        submit(world, ONE)
        world.operators.start()
        world.run(SECONDS)
        before, contents = stages(world), _contents(world)
        foreign = f"{NAMESPACE}.job.middle"
        world.brokers.topics[foreign] = 1
        edit(world, TWO)
        assert accepted(world)["status"] == "False"
        assert f"topic {foreign} exists, and this job did not make it" in accepted(world)["message"]
        assert (stages(world), _contents(world)) == (before, contents)
        del world.brokers.topics[foreign]
        world.run(SECONDS)
        assert accepted(world)["status"] == "True"
        assert "second" in stages(world).values()


def _contents(world: World) -> dict[str, str]:
    """Return what PEs are told to run, by name."""
    found = [item["metadata"] for item in world.objects(PROCESSING_ELEMENT)]
    return {item["name"]: item["annotations"][names.ANNOTATION_CONTENT] for item in found}


@pytest.mark.parametrize("stop", [1.0, 30.0])
def test_a_split_is_judged_once(stop: float) -> None:
    """Its topic is made for it, and is no sign of records that were read: what waits for pods that
    end, or is begun anew by another operator, goes on."""
    fused = replace(ONE, sources=2, chained=True)
    world = World(1)
    with world.surroundings():
        submit(world, fused)
        world.operators.start()
        world.run(SECONDS)
        assert "next" not in stages(world).values()
        world.nodes.tempo = replace(world.nodes.tempo, stop=stop)
        edit(world, replace(fused, extra={"fusion": {"type": "legacy"}}))
        assert accepted(world)["status"] == "True"
        assert {"other", "next", "read", "work"} <= set(stages(world).values())
        (job,) = world.objects(JOB)
        assert job["status"]["phase"] == "Healthy"
        assert not job["status"]["madeInKafka"].get("awaiting")


def test_each_time_that_a_stage_is_dropped_counts() -> None:
    world = World(1)
    with world.surroundings():
        submit(world, TWO)
        world.operators.start()
        world.run(SECONDS)
        for _ in range(2):
            edit(world, ONE)
            edit(world, TWO)
        (job,) = world.objects(JOB)
        assert job["status"]["droppedStages"] == {"second": 2}
        assert min(world.nodes.checkpoints.counts("second.3").values()) > 0


def test_cuts_go_with_their_consistent_region() -> None:
    """Their files would pin the state of that time for as long as the job lives."""
    world = World(1)
    with world.surroundings():
        submit(world, replace(ONE, consistent=True))
        world.operators.start()
        world.run(SECONDS)
        assert world.objects(SAVEPOINT)
        edit(world, replace(ONE, version=2))
        assert "--drop-state write" in refusal(world)  # nobody would make final what it has
        assert world.objects(SAVEPOINT)
        edit(world, replace(ONE, version=2, extra={"dropState": ["write"]}))
        assert accepted(world)["status"] == "True"
        assert world.objects(SAVEPOINT) == []
