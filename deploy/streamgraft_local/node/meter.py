"""Measures the containers of a node again and again, and remembers what they used last."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from streamgraft_local.node.usage import Reading, Usage, read_containers, read_machine, usage

PERIOD_SECONDS = 10.0
"""As the kubelet's own."""

_MACHINE = ""


class Meter:
    """What each container used in the last period, by its marker."""

    def __init__(self, folder: Path, runs: Callable[[], Mapping[str, str]]) -> None:
        self._folder = folder
        self._runs = runs
        self._readings: dict[str, Reading] = {}
        self._usages: dict[str, Usage] = {}

    def container(self, marker: str) -> Usage | None:
        """Return what a container used; None if it was not measured twice yet."""
        return self._usages.get(marker)

    def machine(self) -> Usage | None:
        """Return what all of the machine used."""
        return self._usages.get(_MACHINE)

    async def run(self) -> None:
        """Measure for ever."""
        while True:
            readings = await asyncio.to_thread(read_containers, self._folder, self._runs())
            self.note(readings | {_MACHINE: read_machine()})
            await asyncio.sleep(PERIOD_SECONDS)

    def note(self, readings: Mapping[str, Reading]) -> None:
        """Take new readings; those that are missing are of containers that have ended."""
        found = {key: usage(self._readings.get(key), now) for key, now in readings.items()}
        self._usages = {key: value for key, value in found.items() if value is not None}
        self._readings = dict(readings)
