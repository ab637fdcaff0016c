"""The subscription broker in the simulation: jobs come and go, users edit, replicas crash."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from tests.operator.integration.world import application, bundle
from tests.simulation.applications import NAMESPACE, SINK_TOPIC, Submission, register
from tests.simulation.faults import crash_operator, delete_job, freeze_operator, submit
from tests.simulation.rest import missing
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import EXPORT, IMPORT, JOB, PROCESSING_ELEMENT

SEEDS = 12
REST_SECONDS = 1200.0
QUIET_SECONDS = 65.0


@dataclass(frozen=True)
class Sharing(Submission):
    """A job that exports the stream that it reads, or imports one."""

    imports: bool = False
    level: int = 1

    @property
    def serves(self) -> bool:
        """It declares none."""
        return False

    @property
    def content(self) -> bytes:
        """The bundle."""
        return _bundle(self.version, self.max_width, self.imports, self.level)


@cache
def _bundle(version: int, max_width: int, imports: bool, level: int) -> bytes:
    adl = application(NAMESPACE, module=f"tiny{version}")
    adl["operators"][1]["stateful"] = True
    adl["regions"][0]["maxWidth"] = max_width
    if imports:
        adl["streams"].append({**adl["streams"][0], "name": "shared", "producer": "shared"})
        imported = {"subscription": f"level >= {level}"}
        sink = {"topic": SINK_TOPIC}
        adl["operators"] += [
            {"name": "shared", "kind": "import", "outputs": ["shared"], "imported": imported},
            {"name": "keep", "kind": "kafka-sink", "inputs": ["shared"], "kafka": sink},
        ]
    else:
        exported = {"properties": {"level": level}}
        adl["operators"].append(
            {"name": "out", "kind": "export", "inputs": ["raw"], "exported": exported}
        )
    return register(bundle(adl))


def sharing(job: str, *, imports: bool, level: int) -> Sharing:
    """Return a job; one that imports has a PE more for it."""
    return Sharing(job, 1, 2, 1, sources=1 + imports, imports=imports, level=level)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_connections_are_those_of_what_is_there(seed: int) -> None:
    """Whatever came before, in the end each import reads just the exports that meet its
    subscription, both sides say so, and nothing was launched for it."""
    world = World(seed)
    chance = world.chance
    world.weather.lost = world.weather.repeated = chance.choice([0.0, 0.05])
    with world.surroundings():
        world.operators.start()
        world.operators.start()
        for number in range(2):
            submit(world, sharing(f"reader{number}", imports=True, level=number + 1))
            submit(world, sharing(f"writer{number}", imports=False, level=chance.randint(0, 3)))
        for _ in range(6):
            world.run(chance.random() * 15)
            chance.choice([_edit, _ask, _come_and_go, crash_operator, freeze_operator])(world)
        for network in (world.weather, *world.networks):
            network.calm()
        _come_to_rest(world)
        assert list(_wrong(world)) == []


def _edit(world: World) -> None:
    """Change an export's properties, or an import's subscription."""
    number, level = world.chance.randint(0, 1), world.chance.randint(0, 3)
    if world.chance.random() < 0.5:
        edit: Object = {"spec": {"properties": {"level": level}}}
        world.request("PATCH", EXPORT, f"writer{number}-out", edit)
    else:
        edit = {"spec": {"subscription": f"level >= {level}"}}
        world.request("PATCH", IMPORT, f"reader{number}-shared", edit)


def _ask(world: World) -> None:
    """Let a function of a running job ask for other properties, or another subscription."""
    found = [item.pe for _, item in sorted(world.nodes.containers.items())]
    if not (working := [pe for pe in found if pe.element.working]):
        return
    pe, level = world.chance.choice(working), world.chance.randint(0, 3)
    if pe.job.startswith("writer"):
        pe.element.change_stream("out", "properties", {"level": level})
    else:
        pe.element.change_stream("shared", "subscription", f"level >= {level}")


def _come_and_go(world: World) -> None:
    """Cancel a job that exports, or submit it again."""
    job = f"writer{world.chance.randint(0, 1)}"
    if job in world.jobs:
        delete_job(world, job)
    elif world.get(JOB, job) is None:  # it has gone by now
        submit(world, sharing(job, imports=False, level=world.chance.randint(0, 3)))


def _come_to_rest(world: World) -> None:
    deadline = world.loop.time() + REST_SECONDS
    while True:
        left = next(missing(world), None)
        if left is None and world.loop.time() - world.last_write[0] > QUIET_SECONDS:
            return
        assert world.loop.time() < deadline, left
        world.run(2.0)


def _wrong(world: World) -> Any:
    """Tell what is not as the resources say, without the operator's code."""
    for pe in world.objects(PROCESSING_ELEMENT):
        for change in (pe["status"].get("runtime") or {}).get("streamChanges", ()):
            kind = EXPORT if change["operator"] == "out" else IMPORT
            changed = world.get(kind, f"{pe['spec']['job']}-{change['operator']}")
            text = changed and changed["metadata"]["annotations"].get(names.ANNOTATION_CHANGES)
            if not text or change["id"] not in json.loads(text).values():
                yield pe["metadata"]["name"], change, text
    exports = world.objects(EXPORT)
    for item in [*exports, *world.objects(IMPORT)]:
        if item["status"]["observedGeneration"] != item["metadata"]["generation"]:
            yield item["metadata"]["name"], item["status"]["observedGeneration"]
    readers: dict[str, list[str]] = {item["metadata"]["name"]: [] for item in exports}
    for item in world.objects(IMPORT):
        name, least = item["metadata"]["name"], int(item["spec"]["subscription"].split()[-1])
        wanted = [one for one in exports if one["spec"]["properties"]["level"] >= least]
        for one in wanted:
            readers[one["metadata"]["name"]].append(f"{NAMESPACE}/{name}")
        connected = [f"{NAMESPACE}/{one['metadata']['name']}" for one in wanted]
        if item["status"]["exports"] != connected:
            yield name, item["status"]["exports"], connected
        topics = sorted(one["spec"]["topic"] for one in wanted)
        (pe,) = [
            pe
            for pe in world.objects(PROCESSING_ELEMENT)
            if pe["spec"]["job"] == item["spec"]["job"] and pe["spec"]["importOperators"]
        ]
        if [one["topics"] for one in pe["spec"]["imports"]] != [topics]:
            yield name, json.dumps(pe["spec"]["imports"]), topics
        if missing_topics := set(topics) - world.brokers.topics.keys():
            yield name, missing_topics
    for item in exports:
        name = item["metadata"]["name"]
        if item["status"]["imports"] != readers[name]:
            yield name, item["status"]["imports"], readers[name]
