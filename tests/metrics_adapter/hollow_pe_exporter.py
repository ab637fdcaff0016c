"""Plays the metrics of a region's only PE, or of one of several that all have the same positions,
at rates that a JSON file sets. Run in a pod.

It processes nothing, hence hollow: offsets and busy time move on with the clock. CPU time it takes
as the file says.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WARM_BUSY_SECONDS = 1000.0
"""It looks as if it had run for a while: signals of cold PEs have no value."""


class Region:
    """The region's offsets and a PE's busy time, moved on at every look; rates are per second."""

    def __init__(self, settings: Path) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._last = time.monotonic()
        self._end = self._committed = 0.0
        self._busy = WARM_BUSY_SECONDS

    def metrics(self) -> str:
        """Return the text that Prometheus scrapes."""
        with self._lock:
            settings = json.loads(self._settings.read_text())
            self._move_on(settings)
            return "\n".join(self._lines(settings)) + "\n"

    def _move_on(self, settings: dict[str, Any]) -> None:
        now = time.monotonic()
        passed, self._last = now - self._last, now
        self._end += settings["arriving"] * passed
        self._committed = min(self._end, self._committed + settings["processed"] * passed)
        self._busy += settings["busy"] * passed

    def _lines(self, settings: dict[str, Any]) -> list[str]:
        partitions = settings["partitions"]
        shares = {
            "streamgraft_pe_lag_records": (self._end - self._committed) / partitions,
            "streamgraft_pe_input_end_offset": self._end / partitions,
            "streamgraft_pe_committed_offset": self._committed / partitions,
            "streamgraft_pe_position_age_seconds": 0,
        }
        return [
            *(
                f'{name}{{topic="flights",partition="{partition}"}} {value}'
                for name, value in shares.items()
                for partition in range(partitions)
            ),
            f"streamgraft_pe_busy_seconds_total {self._busy}",
            "streamgraft_pe_slots 1",
            f"streamgraft_pe_shards {partitions}",
        ]


def work(settings: Path) -> None:
    """Use as much of a core as the settings say."""
    while True:
        share = min(json.loads(settings.read_text()).get("cores", 0.0), 1.0)
        busy_until = time.monotonic() + 0.1 * share
        while time.monotonic() < busy_until:
            pass
        time.sleep(0.1 * (1 - share))


def main() -> None:
    """Serve at the address and port given, with the settings file given."""
    address, port, region = sys.argv[1], int(sys.argv[2]), Region(Path(sys.argv[3]))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = region.metrics().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    threading.Thread(target=work, args=(Path(sys.argv[3]),), daemon=True).start()
    ThreadingHTTPServer((address, port), Handler).serve_forever()


if __name__ == "__main__":
    main()
