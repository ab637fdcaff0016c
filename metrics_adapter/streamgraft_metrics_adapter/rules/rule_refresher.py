"""Evaluates the rules of the configuration, each for itself: a slow or broken one delays no other.

Their queries are anybody's. What one of them takes of Prometheus and of the adapter is bounded: it
rests for a multiple of the time that it took, and longer and longer while it fails.
"""

import asyncio
import logging
import time

from streamgraft_common.backoff import doubled
from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.prometheus.refresher import Rhythm
from streamgraft_metrics_adapter.prometheus.source import Source
from streamgraft_metrics_adapter.rules.rule_metrics import RuleMetric, RuleMetrics

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Queries under way."""
REST_FACTOR = 4.0
"""A rule rests so many times as long as its evaluation took: it takes a fifth of a place."""
LONGEST_REST_SECONDS = 60.0
"""Between two tries of a rule that fails; the rest is doubled each time."""


class RuleRefresher:
    """Keeps the values of all rules fresh; `seconds`: between two evaluations of a rule."""

    def __init__(self, source: Source, rules: RuleMetrics, seconds: float) -> None:
        self._source = source
        self._rules = rules
        self._rhythm = Rhythm(seconds)
        self._places = asyncio.Semaphore(AT_ONCE)
        self._tasks: dict[RuleMetric, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Evaluate all rules, which may change, until cancelled."""
        try:
            while True:
                self._follow(self._rules.all())
                await asyncio.sleep(self._rhythm.seconds)
        finally:
            self._follow([])

    def _follow(self, wanted: list[RuleMetric]) -> None:
        for metric in self._tasks.keys() - set(wanted):
            self._tasks.pop(metric).cancel()
        for metric in wanted:
            if metric not in self._tasks:
                self._tasks[metric] = asyncio.create_task(self._keep_fresh(metric))

    async def _keep_fresh(self, metric: RuleMetric) -> None:
        failures = 0
        while True:
            async with self._places:
                began = time.monotonic()
                evaluated_at = self._rhythm.evaluation_time(time.time())
                succeeded = await self._evaluated(metric, evaluated_at)
                spent = time.monotonic() - began
            failures = 0 if succeeded else failures + 1
            rest = max(
                self._rhythm.wait_seconds(evaluated_at, time.time()),
                REST_FACTOR * spent,
                doubled(self._rhythm.seconds, failures, LONGEST_REST_SECONDS) if failures else 0.0,
            )
            await asyncio.sleep(rest)

    async def _evaluated(self, metric: RuleMetric, evaluated_at: float) -> bool:
        try:
            return await metric.refresh(evaluated_at, self._source)
        except Exception:
            log.exception("metric %s failed unexpectedly", metric.query_name)
            telemetry.UNEXPECTED_ERRORS.labels("rule").inc()
            return False
