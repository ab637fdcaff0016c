"""The configuration of metrics on disk: what is always served, and the user's file beside it."""

import logging
from pathlib import Path

from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.rules.configuration import (
    BUILT_IN,
    ConfigurationError,
    MetricRule,
    merged,
    read,
)

log = logging.getLogger(__name__)


class ConfigurationFile:
    """`rules`: those of the last good look. Raises ConfigurationError if there never was one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._built_in = read(BUILT_IN)
        self._stamp = self._look()
        self.rules = self._read()
        telemetry.CONFIGURATION_VALID.set(1)

    def reload(self) -> bool:
        """Read the file if it changed, and tell whether the rules did. A bad file changes none."""
        stamp = self._look()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            rules = self._read()
        except ConfigurationError as error:
            log.error("configuration not taken over, the last one stays: %s", error)
            telemetry.CONFIGURATION_VALID.set(0)
            return False
        telemetry.CONFIGURATION_VALID.set(1)
        changed, self.rules = rules != self.rules, rules
        return changed

    def _read(self) -> tuple[MetricRule, ...]:
        return merged(self._built_in, read(self._file) if self._file else ())

    def _look(self) -> tuple[int, int] | None:
        try:
            found = self._file.stat() if self._file else None
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_ino) if found else None
