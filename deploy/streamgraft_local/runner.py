"""Starts, watches and ends the processes of one cluster."""

import os
import time
from collections.abc import Mapping

from streamgraft_local.components.model import Component
from streamgraft_local.errors import ComponentError
from streamgraft_local.paths import Home
from streamgraft_local.processes import CLUSTER_VARIABLE, Process, spawn, stop

_POLL_SECONDS = 0.1


class Runner:
    """Processes by component name; everything it knows lies in the cluster's folder."""

    def __init__(self, home: Home, cluster_id: str) -> None:
        self._home = home
        self._cluster_id = cluster_id

    def process(self, name: str) -> Process | None:
        """Return the component's living process, or None."""
        process = Process.load(self._home.record(name))
        return process if process and process.alive() else None

    def start(self, component: Component) -> None:
        """Start a component unless it runs, and wait until it serves.

        Raises ComponentError if it ends or takes too long.
        """
        process = self.process(component.name)
        if process is None:
            if component.prepare:
                component.prepare()
            process = spawn(
                component.command,
                self._home.log(component.name),
                self._environment(component.environment),
                self._home.record(component.name),
            )
        self._await_ready(component, process)

    def stop(self, components: Mapping[str, float]) -> None:
        """End components (name: grace in seconds) that run, all at once."""
        running = [process for name in components if (process := self.process(name))]
        stop(running, max(components.values(), default=0.0))
        for name in components:
            self._home.record(name).unlink(missing_ok=True)

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        return {**os.environ, CLUSTER_VARIABLE: self._cluster_id, **extra}

    def _await_ready(self, component: Component, process: Process) -> None:
        log = self._home.log(component.name)
        deadline = time.monotonic() + component.ready_seconds
        while reason := component.probe():
            if not process.alive():
                raise ComponentError(component.name, "ended before it was ready", log)
            if time.monotonic() > deadline:
                waited = f"not ready after {component.ready_seconds:.0f} s ({reason})"
                raise ComponentError(component.name, waited, log)
            time.sleep(_POLL_SECONDS)
