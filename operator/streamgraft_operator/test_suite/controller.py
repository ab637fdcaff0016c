"""The controller of TestSuites: shows the step what is there, does what it says.

The pods are listed from the API server at each look and not cached: a look is a short list, and
what it does not show is gone.
"""

import time
from collections.abc import Sequence
from contextlib import suppress

from streamgraft_common import names
from streamgraft_common.junit import junit
from streamgraft_common.kinds import POD
from streamgraft_common.kube import ApiError, Conflict, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator import events
from streamgraft_operator.context import Context
from streamgraft_operator.kit.conditions import READY, State, merged
from streamgraft_operator.kit.control_loop import (
    STALE_SECONDS,
    Again,
    Controller,
    Outcome,
    Watch,
    desired_changed,
)
from streamgraft_operator.kit.coordinator import Patch
from streamgraft_operator.kit.objects import is_owned_by, own_key
from streamgraft_operator.kit.parsed import suite_spec, suite_status
from streamgraft_operator.kit.taken import NameTaken
from streamgraft_operator.manifests import PodForbidden, junit_config_map, suite_pod
from streamgraft_operator.test_suite.pods import scenario_pod
from streamgraft_operator.test_suite.step import OVER, SuiteView, step

LOOK_AGAIN_SECONDS = 1.0
SWEPT_SECONDS = 300.0
"""How long after its end a suite is looked at, for pods may come late. Once its results are there,
that is: nobody may have been here when it ended."""


class SuiteController(Controller):
    """Runs the tests of suites."""

    name = "test-suite"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._suites = context.caches.test_suites

    @property
    def watches(self) -> Sequence[Watch]:
        """TestSuites."""
        return (Watch(self._suites, own_key, desired_changed),)

    async def reconcile(self, key: Key) -> Outcome:
        """Take one step of a suite."""
        item = self._suites.get(key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None  # its pods and its ConfigMap go with it
        before = suite_status(item)
        now = time.time()
        completed = from_rfc3339(before.completed_at) if before.completed_at else now
        late = now - completed > SWEPT_SECONDS
        results = key[0], names.junit_config_map(key[1])
        edited = item["metadata"]["generation"] != before.observed_generation
        if late and not edited and self._context.caches.config_maps.get(results):
            return None
        pods = await self._pods(item)
        seen = {scenario: scenario_pod(pod) for scenario, pod in pods.items()}
        view = SuiteView(suite_spec(item), before, item["metadata"]["generation"], seen, now)
        decision = step(view)
        if not await self._context.write.test_suites.conclude(item, decision.status.to_wire()):
            return STALE_SECONDS
        for scenario, pod in pods.items():
            if seen[scenario].name in decision.delete:
                await self._delete(pod)
        if decision.status.phase in OVER:
            await self._ended(item, before.phase not in OVER)
            return None if late else SWEPT_SECONDS / 10
        return await self._begin(item, decision.create)

    async def _begin(self, item: Object, tests: Sequence[str]) -> Outcome:
        """Create the pods of tests."""
        spec = suite_spec(item)
        for scenario in spec.scenarios:
            if scenario.name not in tests:
                continue
            try:
                manifest = suite_pod(item, spec, scenario, self._context.settings)
                await self._create(item, manifest)
            except (PodForbidden, ApiError, NameTaken) as error:
                if isinstance(error, ApiError) and error.code >= 500:
                    raise
                await self._refused(item, str(error))
                return Again.WITH_BACKOFF
            self._context.recorder.record(item, events.test_began(scenario.name))
        return STALE_SECONDS if tests else LOOK_AGAIN_SECONDS

    async def _create(self, item: Object, manifest: Object) -> None:
        """Create a pod, unless it is there already. Raises NameTaken."""
        path = POD.path(manifest["metadata"]["namespace"])
        try:
            await self._context.client.create(path, manifest)
        except Conflict:
            name = manifest["metadata"]["name"]
            there = await self._context.client.find(f"{path}/{name}")
            if there is None or not is_owned_by(there, item["metadata"]["uid"]):
                raise NameTaken("Pod", name) from None

    async def _delete(self, pod: Object) -> None:
        """Delete this very pod; gone already is fine."""
        body = {"preconditions": {"uid": pod["metadata"]["uid"]}}
        with suppress(NotFound, Conflict):
            await self._context.client.request("DELETE", POD.of(key_of(pod)), body=body)

    async def _refused(self, item: Object, why: str) -> None:
        """Say why pods can't be created; it is tried again."""

        def command(newest: Object) -> Patch | None:
            status = suite_status(newest)
            generation = newest["metadata"]["generation"]
            state = State(READY, "False", "PodRefused", why)
            new = merged(status.conditions, [state], time.time(), generation)
            if new == status.conditions:
                return None
            return {"status": {"conditions": [condition.to_wire() for condition in new]}}

        await self._context.write.test_suites.update(key_of(item), command, status=True)
        self._context.recorder.record(item, events.pod_refused(why))

    async def _ended(self, item: Object, just_now: bool) -> None:
        """Write the results."""
        newest = self._suites.get(key_of(item))
        if newest is None:
            return
        status = suite_status(newest)
        if just_now:
            counts = len(status.passed), len(status.failed), len(status.aborted)
            self._context.recorder.record(newest, events.suite_ended(*counts))
        manifest = junit_config_map(newest, junit(newest["metadata"]["name"], status))
        there = self._context.caches.config_maps.get(key_of(manifest))
        if there is None:
            there = await self._context.write.config_maps.create(manifest)
        if not is_owned_by(there, newest["metadata"]["uid"]):
            name = manifest["metadata"]["name"]
            self._context.recorder.record(newest, events.junit_in_the_way(name))

    async def _pods(self, item: Object) -> dict[str, Object]:
        """Return the pods of a suite, by the names of their tests."""
        namespace, name = key_of(item)
        selector = {"labelSelector": f"{names.LABEL_TEST_SUITE}={name}"}
        listing = await self._context.client.list(POD.path(namespace), selector)
        return {
            pod["metadata"]["labels"].get(names.LABEL_SCENARIO, ""): pod
            for pod in listing["items"]
            if is_owned_by(pod, item["metadata"]["uid"])
        }
