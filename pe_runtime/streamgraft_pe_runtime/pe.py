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
from streamgraft_common.adl import Adl
from streamgraft_common.kube import KubeClient, Store, load_config
from streamgraft_common.resources import PROCESSING_ELEMENT
from streamgraft_common.spark_jvm import DEFAULT_LOG_LEVEL, SparkJvm
from streamgraft_pe_runtime import losses, server
from streamgraft_pe_runtime.contents import Contents
from streamgraft_pe_runtime.control import Control
from streamgraft_pe_runtime.driver import Driver
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.own_pod import gone, own_pod
from streamgraft_pe_runtime.settings import Settings
from streamgraft_pe_runtime.trace_levels import TraceLevels
from streamgraft_pe_runtime.transport import ControlTls

log = logging.getLogger(__name__)

_STOP_SECONDS = 22.0
"""For batches to end at SIGTERM: the grace period is 30 s, and the JVM wants to end, too."""
_THREADS = 64
"""Calls to Spark block one thread each; shards must not wait for each other's."""


async def run(settings: Settings, adl: Adl, jvm: SparkJvm) -> int:
    """Run the PE until SIGTERM (returns 0) or until its JVM ends or can't warm up (returns 1)."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(_THREADS, "blocking"))
    ended: asyncio.Future[int] = loop.create_future()

    def end(code: int, why: str) -> None:
        if not ended.done():
            log.info("ending: %s", why)
            ended.set_result(code)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, 0, signal.Signals(number).name)
    jvm.on_exit(lambda code: _call(loop, end, 1, f"the driver's JVM ended with code {code}"))
    metrics = PeMetrics(settings.slots)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(KubeClient(load_config()))
        path = PROCESSING_ELEMENT.path(settings.namespace)
        store = Store(client, path, fieldSelector=f"status.pod={settings.pod}")
        control = Control(client, settings, metrics, store)
        levels = TraceLevels(settings.spark_conf.get("spark.log.level", DEFAULT_LOG_LEVEL))
        store.listen(lambda key, old, new: levels.follow(new))
        probes = server.Probes(lambda: jvm.alive, lambda: control.ready, control.status)
        port = names.CONTROL_PORT
        tls = ControlTls.from_environment()
        context = tls.context if tls else None
        runner = await server.serve(settings.bind_address, port, probes, metrics, context)
        stack.push_async_callback(runner.cleanup)
        pods = own_pod(client, settings.namespace, settings.pod)
        following = _end_with_pod(pods, settings.pod_uid, control, end)
        works = (store.run(), control.run(), pods.run(), following, *((tls.run(),) if tls else ()))
        for work in works:
            stack.push_async_callback(_cancel, asyncio.create_task(_watched(work, end)))
        make = partial(Driver, jvm, adl, settings.restricted_properties)
        follow = partial(Contents, control, client, settings, metrics)
        tell = partial(losses.tell, client=client, store=store)
        driving = asyncio.create_task(_drive(make, follow, control, levels, tell, end))
        code = await ended
        await _cancel(driving)
        if jvm.alive:
            await control.stop(_STOP_SECONDS)
    return code


async def _drive(
    make: Callable[[], Driver],
    follow: Callable[[Driver], Contents],
    control: Control,
    levels: TraceLevels,
    tell_losses: Callable[[losses.Losses], Coroutine[Any, Any, None]],
    end: Any,
) -> None:
    """Bring the driver up, then have it follow the content of the PE that names our pod."""
    try:
        driver = await asyncio.to_thread(make)
        levels.attach(driver.set_log_level)
        contents = follow(driver)
        await contents.rehearse()
        progress = await contents.first()
    except Exception as error:  # the user's module is imported here: anything may be raised
        log.exception("the application can't be started")
        control.report(f"the application can't be started: {type(error).__name__}: {error}")
        end(1, "the application can't be started")
        return
    works = (
        *(progress.run(), contents.follow(progress), contents.prepare(), control.tell_loads()),
        tell_losses(progress.losses),
    )
    await asyncio.gather(*(_watched(work, end) for work in works))


async def _end_with_pod(pods: Store, uid: str, control: Control, end: Any) -> None:
    """End once our Pod is gone: whoever deleted it by force counts on that."""
    await gone(pods, uid)
    control.disown()
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
