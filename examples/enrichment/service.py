"""The slow service: what is known of a customer, after a while.

`python -m examples.enrichment.service --delay SECONDS [--port N]` prints its address and serves
`GET /customers/NUMBER`. The answer depends on the number alone.
"""

import argparse
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SEGMENTS = ("new", "regular", "gold")


def customer(number: int) -> dict[str, str | int]:
    """Return what is known of a customer."""
    return {"segment": SEGMENTS[number % 3], "discount": number % 3 * 5}


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(prog="python -m examples.enrichment.service")
    parser.add_argument("--delay", type=float, default=0.1, help="seconds (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            time.sleep(arguments.delay)
            body = json.dumps(customer(int(self.path.rpartition("/")[2]))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing of requests."""

    with ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
