"""One PE: the Spark driver, the control loop and the HTTP server, from start to SIGTERM."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube import KubeClient, account_config
from streamgraft_common.spark_jvm import DEFAULT_LOG_LEVEL, SparkJvm
from streamgraft_pe_runtime import checkpoint_mount, connections, losses, server
from streamgraft_pe_runtime.application import Code
from streamgraft_pe_runtime.bundles import Bundles
from streamgraft_pe_runtime.driver import Driver
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.protocol import Pod, ProcessingElement
from streamgraft_pe_runtime.rehearsal import Rehearsal
from streamgraft_pe_runtime.repository_access import repository, restricted_properties
from streamgraft_pe_runtime.settings import Settings
from streamgraft_pe_runtime.spark_work import SparkWork
from streamgraft_pe_runtime.trace_levels import TraceLevels
from streamgraft_pe_runtime.transport import ControlTls

log = logging.getLogger(__name__)

_STOP_SECONDS = 22.0
"""For batches to end at SIGTERM: the grace period is 30 s, and the JVM wants to end, too."""
_REQUEST_SECONDS = 10.0
"""For a batch that asks for a cut to wait until that is noted: it is not committed before, so
whoever runs it anew asks again. Without the API server it must go on, or records would wait."""
_THREADS = 64
"""Calls to Spark block one thread each; shards must not wait for each other's."""


async def run(settings: Settings, application: Code, jvm: SparkJvm) -> int:
    """Run the PE until SIGTERM, or until its application wants no more (returns 0), or until its
    JVM ends or can't warm up, or a query does not end (returns 1)."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(_THREADS, "blocking"))
    ended: asyncio.Future[int] = loop.create_future()

    def end(code: int, why: str) -> None:
        if not ended.done():
            log.info("ending: %s", why)
            ended.set_result(code)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, 0, signal.Signals(number).name)
    # What `streamgraft.shutdown_pe` sends, from our process or from a Python worker.
    loop.add_signal_handler(signal.SIGUSR1, end, 0, "the application called shutdown_pe")
    jvm.on_exit(lambda code: _call(loop, end, 1, f"the driver's JVM ended with code {code}"))
    metrics = PeMetrics(settings.slots)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(KubeClient(account_config()))
        pod = Pod(settings.namespace, settings.pod, settings.pod_uid)
        element = ProcessingElement(client, pod, metrics)
        levels = TraceLevels(settings.spark_conf.get("spark.log.level", DEFAULT_LOG_LEVEL))
        element.own.listen(lambda newest: levels.follow(newest.spec))
        warm = asyncio.Event()

        def ready() -> bool:
            """Warm: for our PE, or for whichever will name us."""
            return element.working if element.named else warm.is_set()

        probes = server.Probes(lambda: jvm.alive, ready, element.status)
        port = names.CONTROL_PORT
        tls = ControlTls.from_environment()
        context = tls.context if tls else None
        runner = await server.serve(settings.bind_address, port, probes, metrics, context)
        stack.push_async_callback(runner.cleanup)
        listening = _listen(element, end)
        for work in (listening, *((tls.run(),) if tls else ())):
            stack.push_async_callback(_cancel, asyncio.create_task(_watched(work, end)))
        make = partial(Driver, jvm, application, restricted_properties(settings))
        driving = _drive(make, settings, client, metrics, element, levels, warm, end)
        task = asyncio.create_task(driving)
        code = await ended
        await _cancel(task)
        if jvm.alive:
            await element.stop(_STOP_SECONDS)
    return code


async def _drive(
    make: Callable[[], Driver],
    settings: Settings,
    client: KubeClient,
    metrics: PeMetrics,
    element: ProcessingElement,
    levels: TraceLevels,
    warm: asyncio.Event,
    end: Any,
) -> None:
    """Bring the driver up, rehearse, then work for the PE that names our pod."""
    try:
        copies = repository(settings)
        driver = await asyncio.to_thread(make)
        levels.attach(driver.set_log_level)
        rehearsal = Rehearsal(driver, client, settings, lambda: element.named)
        await rehearsal.plans()
        warm.set()
        await rehearsal.shards()
    except Exception as error:  # the user's module is imported here: anything may be raised
        _give_up(element, error, end)
        return
    mounts = checkpoint_mount.MOUNTS.read_text()
    if warning := checkpoint_mount.concern(mounts, settings.checkpoint_root):
        log.warning(warning)
    loop = asyncio.get_running_loop()
    driver.listen(
        lambda *change: _call(loop, element.change_stream, *change),
        partial(request_cut, loop, element),
    )
    bundles = Bundles(client, settings.namespace, settings.bundle)
    stuck = partial(_end_stuck, element, end)
    work = SparkWork(driver, metrics, settings.checkpoint_root, bundles, copies, stuck)
    works = (
        _work(element, work, end),
        _follow(element, work, rehearsal, client),
        rehearsal.others(),
    )
    await asyncio.gather(*(_watched(item, end) for item in works))


async def _work(element: ProcessingElement, work: SparkWork, end: Any) -> None:
    try:
        await element.work(work)
    except Exception as error:  # the user's functions are called here: anything may be raised
        if element.working:
            raise
        _give_up(element, error, end)


async def _follow(
    element: ProcessingElement,
    work: SparkWork,
    rehearsal: Rehearsal,
    client: KubeClient,
) -> None:
    """Once we work: follow what the queries do, and prepare for shards that may come."""
    stage = await work.stage()
    prepare = rehearsal.keep_prepared(work.stage, lambda: element.shards.keys())
    lost = losses.report(stage.progress.left_out.losses, client, element.store)
    linked = connections.report(stage.progress.connections, client, element.store)
    await asyncio.gather(stage.progress.run(), prepare, element.report_loads(), lost, linked)


def request_cut(
    loop: asyncio.AbstractEventLoop,
    element: ProcessingElement,
    region: str,
    seconds: float = _REQUEST_SECONDS,
) -> None:
    """Ask for a cut from the thread of a batch, and wait until the API server has the request, for
    so long at most."""
    if loop.is_closed():
        return
    noted = asyncio.run_coroutine_threadsafe(element.request_cut(region), loop)
    try:
        noted.result(seconds)
    except TimeoutError:
        log.warning("a request for a cut of %s is not noted yet: it would go with our pod", region)


def _give_up(element: ProcessingElement, error: Exception, end: Any) -> None:
    log.exception("the application can't be started")
    element.report(f"the application can't be started: {type(error).__name__}: {error}")
    end(1, "the application can't be started")


def _end_stuck(element: ProcessingElement, end: Any, why: str) -> None:
    """End with a query that does not: whoever takes over fences it off, as after a crash."""
    element.report(f"{why}. The pod ends, and who gets its shards runs the batch again")
    end(1, why)


async def _listen(element: ProcessingElement, end: Any) -> None:
    """Follow our PE and report until our Pod is gone; then end."""
    await element.listen()
    end(1, "the Pod of this process is gone")


async def _watched(work: Coroutine[Any, Any, None], end: Any) -> None:
    """Run what should never end; if it does, the pod is restarted rather than left half alive."""
    try:
        await work
    except Exception:
        log.exception("internal error")
        end(1, "internal error")


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _call(loop: asyncio.AbstractEventLoop, function: Any, *arguments: Any) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)
