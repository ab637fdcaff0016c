"""Takes the steps of a scenario, one after the other, in one namespace."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from streamgraft_common.field_paths import NoPath, text_at
from streamgraft_common.kinds import POD
from streamgraft_common.kube import ApiError, Conflict, KubeClient, NotFound, Unreachable
from streamgraft_common.resources import Probe, Scenario, Step, Target
from streamgraft_common.resources.suite import Kill

_T = TypeVar("_T")

_POLL_SECONDS = 0.25
_KILL_GRACE_SECONDS = 1
"""Long enough for no clean end; 0 would drop the pod's name while its process may still run."""


class StepFailed(Exception):
    """A step did not do what it should; the text says what is there instead."""


class Runner:
    """Runs scenarios; `say` takes the lines of the log."""

    def __init__(self, client: KubeClient, namespace: str, say: Callable[[str], None]) -> None:
        self._client = client
        self._namespace = namespace
        self._say = say
        self._plurals: dict[tuple[str, str], str] = {}
        self._last_look = ""

    async def run(self, scenario: Scenario, ending: asyncio.Event) -> list[str]:
        """Run a scenario; return what failed: of its steps the first, of its clean-up all.

        When `ending` is set, the steps end at once; the clean-up is done all the same.
        """
        problems = await self._unless(ending, self._first_problem(scenario.steps or []))
        for number, step in enumerate(scenario.clean_up, 1):
            if problem := await self._taken(f"clean-up {number}", step):
                problems.append(problem)
        return problems

    async def _unless(self, ending: asyncio.Event, steps: Coroutine[Any, Any, str]) -> list[str]:
        taking = asyncio.create_task(steps)
        told = asyncio.create_task(ending.wait())
        await asyncio.wait({taking, told}, return_when=asyncio.FIRST_COMPLETED)
        if taking.done():
            told.cancel()
            return list(filter(None, [taking.result()]))
        taking.cancel()
        await asyncio.wait({taking})
        return ["the test was to end before its steps were done"]

    async def _first_problem(self, steps: Sequence[Step]) -> str:
        for number, step in enumerate(steps, 1):
            if problem := await self._taken(f"step {number}", step):
                return problem
        return ""

    async def _taken(self, title: str, step: Step) -> str:
        """Take a step; return what was wrong, '' if nothing."""
        title = f"{title} ({_described(step)})"
        began = time.monotonic()
        self._last_look = ""
        try:
            async with asyncio.timeout(step.timeout_seconds):
                await self._take(step)
        except TimeoutError:
            return f"{title} was not done within {step.timeout_seconds:g} s{self._found()}"
        except asyncio.CancelledError:
            self._say(f"{title} was cut off{self._found()}")
            raise
        except (StepFailed, NoPath, ApiError, Unreachable) as error:
            return f"{title}: {error}"
        self._say(f"{title}: done in {time.monotonic() - began:.1f} s")
        return ""

    def _found(self) -> str:
        return f": {self._last_look}" if self._last_look else ""

    async def _take(self, step: Step) -> None:
        if step.apply is not None:
            await self._apply(step.apply)
        elif step.patch is not None:
            await self._client.patch(await self._path(step.patch), step.patch.patch)
        elif step.delete is not None:
            await self._delete(step.delete)
        elif step.kill is not None:
            await self._kill(step.kill)
        elif step.wait is not None:
            await self._wait(step.wait)
        elif step.run is not None:
            await self._run(step.run)
        else:
            await asyncio.sleep(step.sleep_seconds or 0.0)

    async def _apply(self, manifest: dict[str, Any]) -> None:
        target = Target(
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            name=manifest["metadata"]["name"],
        )
        metadata = {**manifest["metadata"], "namespace": self._namespace}
        body = {**manifest, "metadata": metadata}
        await self._client.apply(await self._path(target), body, "streamgraft-test")

    async def _delete(self, target: Target) -> None:
        try:
            await self._client.delete(await self._path(target))
        except NotFound:
            self._say(f"{target.kind} {target.name} is absent")

    async def _kill(self, kill: Kill) -> None:
        """Kill pods, and wait until they are gone: a later probe must not see them.

        One that is gone before is as good as killed; another one by its name stays.
        """
        selector = {"labelSelector": kill.selector}
        pods = POD.path(self._namespace)
        found = (await self._answer(lambda: self._client.list(pods, selector)))["items"]
        alive = sorted(
            pod["metadata"]["name"]
            for pod in found
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        )
        if len(alive) < kill.count:
            raise StepFailed(f"{len(alive)} pods run that {kill.selector} selects")
        seed = random.randrange(2**32) if kill.seed is None else kill.seed
        victims = random.Random(seed).sample(alive, kill.count)
        self._say(f"kills {', '.join(victims)} of {len(alive)} (seed {seed})")
        uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found}
        for name in victims:
            await self._answer(partial(self._kill_one, name, uids[name]))
        for name in victims:
            find = partial(self._client.find, POD.path(self._namespace, name))
            while (pod := await self._answer(find)) and pod["metadata"]["uid"] == uids[name]:
                await asyncio.sleep(_POLL_SECONDS)

    async def _kill_one(self, name: str, uid: str) -> None:
        body = {"gracePeriodSeconds": _KILL_GRACE_SECONDS, "preconditions": {"uid": uid}}
        with suppress(NotFound, Conflict):
            await self._client.request("DELETE", POD.path(self._namespace, name), body=body)

    async def _answer(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Ask until there is an answer."""
        while True:
            try:
                answer = await ask()
            except (ApiError, Unreachable) as error:
                self._note_absence(error)
                await asyncio.sleep(_POLL_SECONDS)
            else:
                self._last_look = ""
                return answer

    def _note_absence(self, error: ApiError | Unreachable) -> None:
        """Take note that the API server can't answer now: it may be restarting. Raise what is an
        answer."""
        if not error.passes:
            raise error
        self._last_look = str(error)

    async def _wait(self, probe: Probe) -> None:
        since: float | None = None
        while True:
            if await self._is_seen(probe):
                since = time.monotonic() if since is None else since
                if time.monotonic() - since >= probe.for_seconds:
                    return
            else:
                since = None
            await asyncio.sleep(_POLL_SECONDS)

    async def _is_seen(self, probe: Probe) -> bool:
        """Look once. An API server that can't answer now is asked again."""
        try:
            return self._holds(probe, await self._client.find(await self._path(probe)))
        except (ApiError, Unreachable) as error:
            self._note_absence(error)
        return False

    def _holds(self, probe: Probe, item: dict[str, Any] | None) -> bool:
        if probe.absent:
            self._last_look = "it is still there" if item else "it is absent"
            return item is None
        found = text_at(item, probe.field)
        message = text_at(item, "status.message")
        said = f" ({message})" if message else ""
        self._last_look = "it is absent" if item is None else f"it is {found}{said}"
        return found is not None if probe.equals is None else found == probe.equals

    async def _run(self, command: Sequence[str]) -> None:
        try:
            process = await asyncio.create_subprocess_exec(*command)
        except OSError as error:
            raise StepFailed(str(error)) from error
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if code:
            raise StepFailed(f"it ended with exit code {code}")

    async def _path(self, target: Target) -> str:
        """Return the URL path of an object. Raises StepFailed for a kind that is not served."""
        version = target.api_version
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, target.kind) not in self._plurals:
            served = await self._client.get(root)
            for resource in served.get("resources", []):
                if "/" not in resource["name"]:
                    self._plurals[version, resource["kind"]] = resource["name"]
        plural = self._plurals.get((version, target.kind))
        if plural is None:
            raise StepFailed(f"the cluster has no kind {target.kind} in {version}")
        return f"{root}/namespaces/{self._namespace}/{plural}/{target.name}"


def _described(step: Step) -> str:
    """Return a step in a few words."""
    if step.apply is not None:
        return f"apply {step.apply['kind']} {step.apply['metadata']['name']}"
    if step.patch is not None:
        return f"patch {step.patch.kind} {step.patch.name}"
    if step.delete is not None:
        return f"delete {step.delete.kind} {step.delete.name}"
    if step.kill is not None:
        return f"kill {step.kill.count} of {step.kill.selector}"
    if step.wait is not None:
        probe = step.wait
        wanted = "absent" if probe.absent else f"{probe.field} = {probe.equals or 'anything'}"
        return f"wait for {probe.kind} {probe.name} {wanted}"
    if step.run is not None:
        return f"run {' '.join(step.run)}"
    return f"sleep {step.sleep_seconds:g} s"
