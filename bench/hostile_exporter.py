"""Plays a pod whose metrics are as bad as they can be: run with a loopback port."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LABELS = 'streams_job="hostile",region="r",stage="0",topic="t",partition="0"'
LEARNED = 'streams_job="job-00000",region="enrich",stage="0",band="0.5",width="1"'
LINES = (
    f"streamgraft_pe_slots{{{LABELS}}} 1",
    f'streamgraft_pe_slots{{{LABELS},odd="1"}} 0',
    f"streamgraft_pe_busy_seconds_total{{{LABELS}}} NaN",
    f"streamgraft_pe_lag_records{{{LABELS}}} +Inf",
    f"streamgraft_pe_input_end_offset{{{LABELS}}} -Inf",
    f"streamgraft_pe_committed_offset{{{LABELS}}} 1e308",
    f"streamgraft_pe_position_age_seconds{{{LABELS}}} -1e300",
    f"streamgraft_learned_records{{{LEARNED}}} 0",
    f"streamgraft_learned_busy_seconds{{{LEARNED}}} 0",
    f"streamgraft_learned_seen_timestamp_seconds{{{LEARNED}}} 9e99",
)


def main() -> None:
    """Serve."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = "\n".join((*LINES, "")).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()


if __name__ == "__main__":
    main()
