"""Watching over one run of a container by its startup, liveness and readiness probes."""

import asyncio
from collections.abc import Awaitable, Callable

from streamgraft_common.kube.client import Object
from streamgraft_local.node.checks import Result
from streamgraft_local.node.probes import ProbeState, ProbeTiming

RunAction = Callable[[Object, float], Awaitable[Result]]
"""Carries out an action (the probe itself holds it) within so many seconds."""


class Health:
    """`started` and `ready` of one run; `run()` returns once the container must be killed."""

    def __init__(self, container: Object, action: RunAction, changed: Callable[[], None]) -> None:
        self._container = container
        self._action = action
        self._changed = changed
        self.started = "startupProbe" not in container
        self.ready = self.started and "readinessProbe" not in container

    async def run(self) -> str:
        """Probe until startup or liveness fails; return why. Runs for ever otherwise."""
        if probe := self._container.get("startupProbe"):
            if problem := await self._until_started(probe):
                return problem
            self.started = True
            self.ready = "readinessProbe" not in self._container
            self._changed()
        readiness = asyncio.create_task(self._keep_readiness())
        try:
            return await self._until_dead()
        finally:
            readiness.cancel()

    async def _until_started(self, probe: Object) -> str:
        timing = ProbeTiming.of(probe)
        state = ProbeState()
        await asyncio.sleep(timing.initial_delay)
        while True:
            result = await self._action(probe, timing.timeout)
            state = state.after(result.success, timing)
            if state.healthy:
                return ""
            if state.healthy is False:
                return f"startup probe failed: {result.message}"
            await asyncio.sleep(timing.period)

    async def _until_dead(self) -> str:
        probe = self._container.get("livenessProbe")
        if probe is None:
            return await _never()
        timing = ProbeTiming.of(probe)
        state = ProbeState()
        await asyncio.sleep(timing.initial_delay)
        while True:
            result = await self._action(probe, timing.timeout)
            state = state.after(result.success, timing)
            if state.healthy is False:
                return f"liveness probe failed: {result.message}"
            await asyncio.sleep(timing.period)

    async def _keep_readiness(self) -> None:
        probe = self._container.get("readinessProbe")
        if probe is None:
            return
        timing = ProbeTiming.of(probe)
        state = ProbeState()
        await asyncio.sleep(timing.initial_delay)
        while True:
            result = await self._action(probe, timing.timeout)
            state = state.after(result.success, timing)
            if self.ready != bool(state.healthy):
                self.ready = bool(state.healthy)
                self._changed()
            await asyncio.sleep(timing.period)


async def _never() -> str:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets this event")
