"""Records that are in no result, as metrics: those of sources that are malformed, and those that
retention deleted before they were read."""

import logging
import threading
from collections.abc import Iterable

from streamgraft_common.pe_metadata import InputPort
from streamgraft_pe_runtime.driver_counts import DriverCounts
from streamgraft_pe_runtime.losses import Gap, Losses
from streamgraft_pe_runtime.metrics import PeMetrics

log = logging.getLogger(__name__)


class LeftOut:
    """Counts them; for use by any thread."""

    def __init__(self, metrics: PeMetrics, driver: DriverCounts) -> None:
        self.losses = Losses()
        self._metrics = metrics
        self._driver = driver
        self._malformed_before: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def begin(self, inputs: Iterable[InputPort]) -> None:
        """Show sources whose records may be malformed: an increase needs the 0 before."""
        for port in inputs:
            if port.external:
                self._metrics.malformed_records.labels(port.operator, port.topic)

    def count(self) -> None:
        """Count what the driver has met since the last call. Blocks."""
        with self._lock:
            try:
                malformed, gaps = self._driver.malformed(), self._driver.passed_over()
            except Exception as error:  # the session may have ended
                log.debug("records left out by the driver: %r", error)
                return
            for labels, count in malformed.items():
                if met := count - self._malformed_before.get(labels, 0):  # else another PE's, maybe
                    self._metrics.malformed_records.labels(*labels).inc(met)
            self._malformed_before = malformed
        for gap in gaps:
            self.lose(gap)

    def lose(self, gap: Gap) -> None:
        """Count records that are gone, and have them reported."""
        topic, number = gap.partition
        lost = self.losses.count(gap)
        self._metrics.lost_records.labels(topic, str(number)).inc(lost)
