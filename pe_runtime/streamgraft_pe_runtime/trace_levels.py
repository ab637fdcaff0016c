"""Trace levels of the two domains, as the ProcessingElement says, while the PE runs.

The runtime's domain are our own loggers and Spark's, the application's are all others.
"""

import asyncio
import logging
import threading
from collections.abc import Callable

from streamgraft_common.resources import ProcessingElementSpec, TraceLevel

_LEVELS: dict[TraceLevel, int] = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "OFF": logging.CRITICAL + 1,
}
_OURS = ("streamgraft_pe_runtime", "streamgraft_common")


class TraceLevels:
    """Sets levels. `spark_default`: Spark's level while the ProcessingElement says none."""

    def __init__(self, spark_default: str) -> None:
        self._spark_default = spark_default
        self._spark_level: str | None = None
        self._set_spark: Callable[[str], None] | None = None
        self._setting = threading.Lock()

    def follow(self, spec: ProcessingElementSpec) -> None:
        """Take the levels of the newest ProcessingElement; call within the event loop."""
        settings = spec.effective()
        logging.getLogger().setLevel(_LEVELS[settings.app_trace_level or "INFO"])
        for name in _OURS:
            logging.getLogger(name).setLevel(_LEVELS[settings.runtime_trace_level or "INFO"])
        level = settings.runtime_trace_level
        if level != self._spark_level:
            self._spark_level = level
            self._tell_spark()

    def attach(self, set_spark: Callable[[str], None]) -> None:
        """Begin to set Spark's level, too; `set_spark` blocks. Call within the event loop."""
        self._set_spark = set_spark
        if self._spark_level is not None:
            self._tell_spark()

    def _tell_spark(self) -> None:
        if self._set_spark is not None:
            asyncio.get_running_loop().run_in_executor(None, self._set_newest)

    def _set_newest(self) -> None:
        with self._setting:  # whichever call comes last sets the newest level
            assert self._set_spark is not None
            self._set_spark(self._spark_level or self._spark_default)
