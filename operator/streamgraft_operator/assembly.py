"""One operator: all controllers on one set of caches."""

import asyncio
import logging
from collections.abc import Sequence

from prometheus_client.registry import Collector

from streamgraft_common.kube import KubeClient
from streamgraft_operator.consistent_region.controller import ConsistentRegionController
from streamgraft_operator.consistent_region.metrics import CutCollector
from streamgraft_operator.context import Context
from streamgraft_operator.host_pool.controller import HostPoolController
from streamgraft_operator.job.conductor import JobConductor
from streamgraft_operator.job.controller import JobController
from streamgraft_operator.job.metrics import JobCollector
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.caches import Caches, WentBack
from streamgraft_operator.kit.control_loop import Controller, ControlLoop
from streamgraft_operator.pe.controller import ProcessingElementController
from streamgraft_operator.pe.lost_pods import LostPodController
from streamgraft_operator.pe.metrics import ElementCollector
from streamgraft_operator.pe.pod_conductor import PodConductor
from streamgraft_operator.pe.pod_controller import PodController
from streamgraft_operator.region.autoscaler import AutoscalerController
from streamgraft_operator.region.controller import RegionController
from streamgraft_operator.region.lag import LagController
from streamgraft_operator.region.lag_metrics import LagCollector
from streamgraft_operator.region.metrics import RegionCollector
from streamgraft_operator.savepoint.controller import SavepointController
from streamgraft_operator.savepoint.metrics import SavepointCollector
from streamgraft_operator.savepoint.parking_controller import ParkingController
from streamgraft_operator.settings import Settings
from streamgraft_operator.stray.controller import stray_controllers
from streamgraft_operator.stream_broker.controller import (
    Broker,
    ExportController,
    ImportController,
)
from streamgraft_operator.test_suite.controller import SuiteController
from streamgraft_operator.warm_pool.controller import WarmPoolController

log = logging.getLogger(__name__)

CONTROLLERS = (
    JobController,
    JobConductor,
    ProcessingElementController,
    HostPoolController,
    PodController,
    PodConductor,
    LostPodController,
    WarmPoolController,
    RegionController,
    SavepointController,
    ParkingController,
    ConsistentRegionController,
    AutoscalerController,
)


def controllers_of(context: Context, lags: LagCollector) -> Sequence[Controller]:
    """Return all controllers."""
    broker = Broker(context)
    return (
        *(controller(context) for controller in CONTROLLERS),
        LagController(context, lags),
        ImportController(context, broker),
        ExportController(context, broker),
        SuiteController(context),
        *stray_controllers(context),
    )


def collectors_of(caches: Caches) -> Sequence[Collector]:
    """Return what tells Prometheus of the objects that are looked after."""
    return (
        JobCollector(caches.jobs),
        ElementCollector(caches),
        RegionCollector(caches.regions),
        SavepointCollector(caches),
        CutCollector(caches.consistent_regions),
    )


async def run(client: KubeClient, settings: Settings, stopping: asyncio.Event) -> None:
    """Operate until `stopping`, and finish what is in hand then; cancelled, break off at once.

    What is remembered of objects goes when they went back in time, as etcd was restored.
    """
    went_back = True
    while went_back:
        went_back = False
        try:
            await _run(client, settings, stopping)
        except* WentBack:
            log.warning("etcd was restored: beginning anew")
            went_back = not stopping.is_set()


async def _run(client: KubeClient, settings: Settings, stopping: asyncio.Event) -> None:
    context = Context.of(client, settings)
    lags = LagCollector(context.caches.regions)
    loops = [ControlLoop(controller) for controller in controllers_of(context, lags)]
    collectors = (*collectors_of(context.caches), lags)
    for collector in collectors:
        metrics.REGISTRY.register(collector)
    try:
        async with asyncio.TaskGroup() as group:
            caches = group.create_task(context.caches.run())
            recorder = group.create_task(context.recorder.run())
            await context.caches.synced()
            log.info("caches are filled, %d controllers start", len(loops))
            metrics.LEADING.set(1)
            async with asyncio.TaskGroup() as running:
                for loop in loops:
                    running.create_task(loop.run(stopping))
            await context.recorder.flush()
            recorder.cancel()
            caches.cancel()
    finally:
        metrics.LEADING.set(0)
        context.external_calls.close()
        for collector in collectors:
            metrics.REGISTRY.unregister(collector)
