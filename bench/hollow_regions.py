"""Plays the PEs of many parallel regions for Prometheus: one process, one scrape. Hollow: nothing
is processed, only counters move on with the clock.

Every region has one PE that is busy for half of the time and keeps up with its load.
"""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAMESPACE = "default"
PARTITIONS = 2
RECORDS_PER_SECOND = 100.0
BUSY_SHARE = 0.5
WARM_BUSY_SECONDS = 1000.0
_LAG = 10


def job(number: int) -> str:
    """Return the name of a region's job."""
    return f"job-{number:05}"


def lines_of(number: int) -> str:
    """Return a region's lines, with `{end}`, `{committed}`, `{busy}` and `{batches}` to fill in."""
    name = job(number)
    pe = (
        f'namespace="{NAMESPACE}",pod="{name}-0-1",streams_job="{name}",region="enrich"'
        f',channel="0",pe="{name}-0",stage="0"'
    )
    partitions = [f'{pe},topic="{name}",partition="{index}"' for index in range(PARTITIONS)]
    return "\n".join(
        [
            *(f"streamgraft_pe_lag_records{{{{{labels}}}}} {_LAG}" for labels in partitions),
            *(f"streamgraft_pe_position_age_seconds{{{{{labels}}}}} 0" for labels in partitions),
            *(f"streamgraft_pe_input_end_offset{{{{{labels}}}}} {{end}}" for labels in partitions),
            *(
                f"streamgraft_pe_committed_offset{{{{{labels}}}}} {{committed}}"
                for labels in partitions
            ),
            f"streamgraft_pe_busy_seconds_total{{{{{pe}}}}} {{busy}}",
            f"streamgraft_pe_batch_duration_seconds_count{{{{{pe}}}}} {{batches}}",
            f"streamgraft_pe_slots{{{{{pe}}}}} 1",
            f"streamgraft_pe_shards{{{{{pe}}}}} {PARTITIONS}",
        ]
    )


class HollowRegions:
    """The metrics of `count` regions."""

    def __init__(self, count: int) -> None:
        self._text = "\n".join(lines_of(number) for number in range(count)) + "\n"
        self._started = time.monotonic()

    def metrics(self) -> str:
        """Return the text that Prometheus scrapes."""
        passed = time.monotonic() - self._started
        end = RECORDS_PER_SECOND / PARTITIONS * passed + _LAG
        busy = WARM_BUSY_SECONDS + BUSY_SHARE * passed
        return self._text.format(end=end, committed=end - _LAG, busy=busy, batches=2 * passed)


def main() -> None:
    """Serve at the loopback port given, with the number of regions given."""
    port, regions = int(sys.argv[1]), HollowRegions(int(sys.argv[2]))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = regions.metrics().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
