"""A Job says how large its warm pool should be and why, and writes that only when it changes."""

from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.fake_resources import FakeResource
from tests.simulation.fake_storage import Change
from tests.simulation.faults import submit
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kube import Forbidden
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, JobStatus, WarmPoolStatus

SECONDS = 120.0


def told(job: object) -> WarmPoolStatus | None:
    status = job.get("status") if isinstance(job, dict) else None
    return JobStatus.model_validate(status or {}).warm_pool


def test_what_is_told() -> None:
    world, seen = World(1), list[WarmPoolStatus | None]()

    def note(_: FakeResource, changed: Change) -> None:
        if (
            changed.new
            and changed.new["kind"] == JOB.kind
            and told(changed.old) != told(changed.new)
        ):
            seen.append(told(changed.new))

    new = WarmPoolStatus(size=2, needed=2, reason="NewRegion")
    with world.surroundings():
        world.server.storage.observers.append(note)
        submit(world, Submission("job", stages=1, max_width=3, width=1, sleepy=True))
        world.operators.start()
        world.run(SECONDS)
        assert seen[-1] == new
        # Before any width serves, before the job has settled, and from then on.
        assert [pool.held for pool in seen if pool] == ["NotCalm", "NotCalm", ""]
        for spec, what in (
            ({"warmPoolMemory": "512Mi"}, new.model_copy(update={"size": 1})),
            ({"warmPool": 3}, WarmPoolStatus(size=3, needed=3, reason="Asked")),
            ({"warmPool": 0}, None),
        ):
            world.request("PATCH", JOB, "job", {"spec": spec})
            world.run(SECONDS)
            assert told(world.get(JOB, "job")) == what
            before = world.last_write
            world.run(SECONDS)
            assert world.last_write == before


def test_refused_drivers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, while they are tried again and again; how many should wait is told anew."""
    world, refused = World(1), list[str]()
    create = world.server.create

    def refuse(place: Any, body: Any) -> Object:
        if place.resource.plural == "pods" and names.LABEL_POOL in body["metadata"]["labels"]:
            refused.append(body["metadata"]["name"])
            raise Forbidden(403, "Forbidden", "exceeded quota: small")
        return create(place, body)

    with world.surroundings():
        monkeypatch.setattr(world.server, "create", refuse)
        submit(world, Submission("job", stages=1, max_width=3, width=1, sleepy=True))
        world.operators.start()
        world.run(SECONDS)
        wanted = WarmPoolStatus(size=2, needed=2, reason="NewRegion", held="Refused")
        assert told(world.get(JOB, "job")) == wanted
        world.request("PATCH", JOB, "job", {"spec": {"warmPoolMemory": "512Mi"}})
        world.run(SECONDS)
        assert told(world.get(JOB, "job")) == wanted.model_copy(update={"size": 1})
        before, tried = world.last_write, len(refused)
        world.run(SECONDS)
        assert len(refused) > tried
        assert world.last_write == before
        monkeypatch.undo()
        world.run(SECONDS)
        assert told(world.get(JOB, "job")) == wanted.model_copy(update={"size": 1, "held": ""})
