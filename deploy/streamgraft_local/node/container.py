"""One container of a pod: its runs, one after the other, until it has ended for good."""

import asyncio
import contextlib
import logging
import signal
from pathlib import Path
from typing import Protocol

from streamgraft_common.kube.client import Object
from streamgraft_local.node.checks import Checks, Command, Result
from streamgraft_local.node.health import Health
from streamgraft_local.node.process import Process, ProcessId, kill_marked
from streamgraft_local.node.record import Record
from streamgraft_local.node.restarts import STABLE_SECONDS, delay_seconds, restarts
from streamgraft_local.node.states import Running, State, Terminated, Waiting, now
from streamgraft_local.node.status import ContainerView
from streamgraft_local.node.termination import Termination

log = logging.getLogger(__name__)

START_FAILED = 128
"""Exit code when the command can't be started, as container runtimes report it."""
UNKNOWN_CODE = 137
"""Exit code when it can't be known, as the kubelet reports it."""
_MESSAGE_BYTES = 2048


class NotReady(Exception):
    """A container can't start yet; `reason` is the one of its waiting state."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Host(Protocol):
    """What a container needs of its pod."""

    termination: Termination
    checks: Checks

    async def command(self, container: Object, folder: Path) -> Command:
        """Return what to start. Raises NotReady."""

    async def retry(self) -> None:
        """Return when another attempt to start makes sense."""

    def changed(self) -> None:
        """Hear that the container's state is another one."""

    def event(self, kind: str, reason: str, message: str) -> None:
        """Tell users."""


class Container:
    """Runs one container under a restart policy."""

    def __init__(self, spec: Object, folder: Path, policy: str, grace: float, host: Host) -> None:
        self.spec = spec
        self.folder = folder
        self._policy = policy
        self._grace = grace
        self._host = host
        self._state: State = Waiting("ContainerCreating")
        self._record = Record()
        self._process: Process | None = None
        self._command: Command | None = None
        self._health: Health | None = None
        self._streak = 0

    @property
    def name(self) -> str:
        """Name within the pod."""
        return str(self.spec["name"])

    def view(self) -> ContainerView:
        """Return what the pod's status shows."""
        record, health = self._record, self._health
        running = isinstance(self._state, Running) and health is not None
        waits_again = isinstance(self._state, Waiting) and record.ended is not None
        return ContainerView(
            name=self.name,
            image=self.spec.get("image", ""),
            state=self._state,
            last=record.ended if waits_again else record.last,
            restart_count=record.restart_count,
            started=running and health is not None and health.started,
            ready=running and health is not None and health.ready,
            container_id=self._container_id(),
        )

    def _container_id(self) -> str:
        if self._record.process:
            return _container_id(self._record.process)
        return self._record.ended.container_id if self._record.ended else ""

    def wait_for(self, reason: str, message: str) -> None:
        """Show why the container doesn't run yet."""
        self._set(Waiting(reason, message))

    async def recover(self) -> None:
        """Take over what an earlier node process left: the running process, or how it ended."""
        record = Record.load(self.folder)
        if record is None:
            return
        self._record = record
        if record.ended:
            self._set(record.ended)
        elif record.process and (process := Process.adopt(record.process)):
            self._process = process
            self._began(record.started_at)
        else:
            await asyncio.to_thread(kill_marked, self.folder)
            self._ended(None)

    async def run(self) -> None:
        """Start, supervise and restart until it has ended for good or the pod terminates."""
        termination = self._host.termination
        while True:
            if self._process:
                await self._supervise(self._process)
            if isinstance(self._state, Terminated):
                if termination.requested or not restarts(self._policy, self._state.exit_code):
                    return
                await self._back_off()
            if termination.requested:
                self._never_started()
                return
            await self._start()

    async def _start(self) -> None:
        try:
            self._command = await self._host.command(self.spec, self.folder)
        except NotReady as error:
            self._set(Waiting(error.reason, str(error)))
            await self._host.retry()
            return
        again = self._record.ended
        count = self._record.restart_count + (1 if again else 0)
        self._record = Record(restart_count=count, started_at=now(), last=again)
        log_file = self.folder / f"{count}.log"
        try:
            command = self._command
            self._process = Process.start(
                command.words, command.variables, command.folder, log_file
            )
        except OSError as error:
            self._host.event("Warning", "Failed", f"container {self.name}: {error}")
            self._streak += 1
            self._ended(START_FAILED, "StartError", str(error))
            return
        identity = self._process.identity
        self._record = Record(count, self._record.started_at, identity, None, again)
        self._record.save(self.folder)
        self._host.event("Normal", "Started", f"container {self.name} started, pid {identity.pid}")
        self._began(self._record.started_at)

    def _began(self, started_at: str) -> None:
        self._health = Health(self.spec, self._action, self._host.changed)
        self._set(Running(started_at))

    async def _action(self, action: Object, timeout_seconds: float) -> Result:
        if self._command is None:  # adopted: what it was started with was not kept
            try:
                self._command = await self._host.command(self.spec, self.folder)
            except NotReady as error:
                return Result(False, str(error))
        return await self._host.checks.run(action, self.spec, self._command, timeout_seconds)

    async def _supervise(self, process: Process) -> None:
        health = self._health or Health(self.spec, self._action, self._host.changed)
        began = asyncio.get_running_loop().time()
        exited = asyncio.create_task(process.wait())
        unhealthy = asyncio.create_task(self._watch_health(health))
        stop = asyncio.create_task(self._host.termination.wait())
        try:
            await asyncio.wait({exited, unhealthy, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not exited.done():
                await self._stop(process, exited)
            code = await exited
        finally:
            for task in (exited, unhealthy, stop):
                task.cancel()
        stable = asyncio.get_running_loop().time() - began >= STABLE_SECONDS
        self._streak = 1 if stable else self._streak + 1
        self._process = None
        process.close()
        # In a real container, nothing outlives the first process.
        await asyncio.to_thread(kill_marked, self.folder)
        self._ended(code)

    async def _watch_health(self, health: Health) -> None:
        if "postStart" in self.spec.get("lifecycle", {}):
            hook = self.spec["lifecycle"]["postStart"]
            result = await self._action(hook, self._grace)
            if not result.success:
                message = f"postStart hook of container {self.name}: {result.message}"
                self._host.event("Warning", "FailedPostStartHook", message)
                return
        problem = await health.run()
        self._host.event("Warning", "Unhealthy", f"container {self.name}: {problem}")

    async def _stop(self, process: Process, exited: "asyncio.Task[int | None]") -> None:
        self._host.event("Normal", "Killing", f"stopping container {self.name}")
        try:
            async with self._host.termination.limit(self._grace):
                if hook := self.spec.get("lifecycle", {}).get("preStop"):
                    await self._action(hook, self._grace)
                process.signal(signal.SIGTERM)
                await asyncio.shield(exited)
        except TimeoutError:
            process.signal(signal.SIGKILL)

    def _ended(self, code: int | None, reason: str = "", message: str = "") -> None:
        if code is None:
            reason = "ContainerStatusUnknown"
            message = "the process ended while the node did not run, or was not its child"
        elif not reason:
            reason = "Completed" if code == 0 else "Error"
            message = self._last_words() if code else ""
        ended = Terminated(
            exit_code=UNKNOWN_CODE if code is None else code,
            reason=reason,
            started_at=self._record.started_at,
            finished_at=now(),
            container_id=self._container_id(),
            message=message,
        )
        record = self._record
        self._record = Record(record.restart_count, record.started_at, None, ended, record.last)
        self._record.save(self.folder)
        self._set(ended)

    def _last_words(self) -> str:
        if self.spec.get("terminationMessagePolicy") != "FallbackToLogsOnError":
            return ""
        with contextlib.suppress(FileNotFoundError):
            content = (self.folder / f"{self._record.restart_count}.log").read_bytes()
            return content[-_MESSAGE_BYTES:].decode(errors="replace")
        return ""

    def _never_started(self) -> None:
        if self._record.ended:
            self._set(self._record.ended)
        else:
            message = "the pod was ended before the container started"
            self._ended(UNKNOWN_CODE, "ContainerStatusUnknown", message)

    async def _back_off(self) -> None:
        delay = delay_seconds(self._streak)
        message = f"restarting in {delay:g} s (restart {self._record.restart_count + 1})"
        self._host.event("Warning", "BackOff", f"container {self.name}: {message}")
        self._set(Waiting("CrashLoopBackOff", message))
        await self._host.termination.sleep(delay)

    def _set(self, state: State) -> None:
        if state != self._state:
            self._state = state
            self._host.changed()


def _container_id(process: ProcessId) -> str:
    return f"process://{process.pid}"
