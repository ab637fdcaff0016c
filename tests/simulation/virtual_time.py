"""An event loop whose time passes only when nothing is left to do: no sleeping, no threads.

Time stands still while callbacks run, then jumps to the next timer. Callbacks run first in, first
out, as in asyncio's own loop, so that only what really is a matter of chance is left to chance:
latencies. Everything that one simulated process starts carries its `Process`, by which it can be
killed at any step, in the middle of whatever it awaits.
"""

import asyncio
import contextvars
import heapq
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

EPOCH = 1_700_000_000.0
"""Unix time at which every simulation begins."""

TICK_SECONDS = 1e-6
"""Time passes with every timer, so that what waits for a rest too small for a float ends."""


class Process:
    """What can be killed or frozen: all callbacks that were started in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.killed = False
        self.steps_left: int | None = None
        """Callbacks until it stops; None: it does not."""
        self.waiting: list[Call] = []
        """Callbacks that would have run since it stopped."""

    def kill(self) -> None:
        """Stop it for ever."""
        self.alive, self.killed = False, True


_PROCESS: contextvars.ContextVar[Process] = contextvars.ContextVar("process")


class Call:
    """A callback: what asyncio needs of its own Handle and TimerHandle, for less."""

    __slots__ = ("_due", "arguments", "callback", "context")

    def __init__(
        self,
        due: float,
        callback: Callable[..., Any],
        arguments: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> None:
        self._due = due
        self.callback: Callable[..., Any] | None = callback
        self.arguments = arguments
        self.context = contextvars.copy_context() if context is None else context

    def when(self) -> float:
        return self._due

    def cancel(self) -> None:
        self.callback = None
        self.arguments = ()

    def cancelled(self) -> bool:
        return self.callback is None


class SimulatedTask(asyncio.Task[Any]):
    """A task whose hash is its number, so that sets of tasks have the same order in each run."""

    def __init__(self, number: int, *arguments: Any, **named: Any) -> None:
        self._number = number
        super().__init__(*arguments, **named)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop:
    """The part of an event loop that code without sockets, signals and subprocesses uses."""

    def __init__(self, chance: random.Random) -> None:
        self._loop: Any = self  # asyncio's types want all of an event loop
        self._chance = chance
        self._now = 0.0
        self._ready: deque[Call] = deque()
        self._timers: list[tuple[float, int, Call]] = []
        self._count = 0
        self._tasks: list[SimulatedTask] = []
        self._processes: list[Process] = []
        self._closing = False
        self.errors: list[str] = []
        """What nobody caught."""

    # Running.

    def run(self, until: float) -> None:
        """Run everything that is due up to a time."""
        asyncio._set_running_loop(self._loop)
        try:
            while True:
                self._run_ready()
                if not self._timers or self._timers[0][0] > until:
                    break
                due, _, timer = heapq.heappop(self._timers)
                self._now = max(due, self._now + TICK_SECONDS)
                if timer.callback is not None:
                    self._ready.append(timer)
            self._now = max(self._now, until)
        finally:
            asyncio._set_running_loop(None)

    def _run_ready(self) -> None:
        ready = self._ready
        while ready:
            call = ready.popleft()
            callback, context = call.callback, call.context
            if callback is None:
                continue
            process = context.get(_PROCESS)
            if process is not None and not self._closing:
                if process.alive and process.steps_left is not None:
                    process.steps_left -= 1
                    process.alive = process.steps_left >= 0
                if not process.alive:
                    process.waiting.append(call)
                    continue
            try:
                context.run(callback, *call.arguments)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self.errors.append(f"{callback}: {error!r}")

    def start(self, process: Process, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start the main task of a process."""
        context = contextvars.Context()
        context.run(_PROCESS.set, process)
        self._processes.append(process)
        return self.create_task(work, name=process.name, context=context)

    def thaw(self, process: Process) -> None:
        """Let a process go on where it stopped, unless it was killed."""
        if not process.killed:
            process.alive, process.steps_left = True, None
            self._ready.extend(process.waiting)
            process.waiting.clear()

    def close(self) -> None:
        """Cancel everything, also what was killed, until it has ended."""
        self._closing = True
        self._timers.clear()
        for process in self._processes:  # asyncio wants every task to end some day
            self._ready.extend(process.waiting)
        while tasks := [task for task in self._tasks if not task.done()]:
            for task in tasks:
                task.cancel()
            self.run(self._now)
        self._tasks.clear()

    def later(self, seconds: float, callback: Callable[..., Any], *arguments: Any) -> None:
        """Call back outside of any process, whoever asks for it."""
        self.call_later(seconds, callback, *arguments, context=contextvars.Context())

    # What asyncio asks of a loop.

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self._loop)

    def create_task(self, coro: Any, **named: Any) -> asyncio.Task[Any]:
        self._count += 1
        task = SimulatedTask(self._count, coro, loop=self._loop, **named)
        self._tasks.append(task)
        if len(self._tasks) > 1000:
            self._tasks = [task for task in self._tasks if not task.done()]
        return task

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Call:
        call = Call(self._now, callback, args, context)
        self._ready.append(call)
        return call

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Call:
        self._count += 1
        when = self._now + delay
        call = Call(when, callback, args, context)
        heapq.heappush(self._timers, (when, self._count, call))
        return call

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Call:
        self._count += 1
        call = Call(when, callback, args, context)
        heapq.heappush(self._timers, (when, self._count, call))
        return call

    def run_in_executor(
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call the function a little later, as if a thread had done it."""
        future = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Exception as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)

        self.call_later(self._chance.random() * 0.01, work)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)


@contextmanager
def virtual_clocks(loop: VirtualLoop) -> Iterator[None]:
    """Let `time.time`, `time.monotonic` and `time.perf_counter` tell the loop's time."""
    virtual = {
        "time": lambda: EPOCH + loop.time(),
        "monotonic": loop.time,
        "perf_counter": loop.time,
    }
    real = {name: getattr(time, name) for name in virtual}
    for name, clock in virtual.items():
        setattr(time, name, clock)
    try:
        yield
    finally:
        for name, clock in real.items():
            setattr(time, name, clock)
