"""The enrichment service over real HTTP, and the application's client."""

import json
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from tests.serving import serving

from examples.flights.app import ASKED, Enrichment, enriched
from examples.flights.emissions import carbon_dioxide_kilograms

FLIGHT = {"origin": "EWR", "distance": 1400, "latitude": 29.98, "longitude": -95.34, "seats": 149}


def test_answers_in_order(service_url: str) -> None:
    """One answer per flight, that of the function itself."""
    flights = [{**FLIGHT, "seats": seats} for seats in (10, None, 300)]
    with Enrichment(service_url) as service:
        assert service.ask(flights) == [carbon_dioxide_kilograms(flight) for flight in flights]
        assert service.ask([]) == []


@pytest.mark.parametrize("body", [b"{", b"{}", b'[{"origin": "EWR"}]', b"[1]"])
def test_bad_request_has_a_message(service_url: str, body: bytes) -> None:
    """Neither a crash nor silence."""
    request = urllib.request.Request(f"{service_url}/enrich", body, method="POST")
    with pytest.raises(urllib.error.HTTPError) as failure, urllib.request.urlopen(request):
        pass
    with failure.value as answer:
        assert answer.code == 400
        assert json.loads(answer.read())["error"]


def test_speed_is_limited_per_connection(slow_service_url: str) -> None:
    """A hundred flights take half a second at least, and a second connection doesn't wait."""

    def ask(flights: int) -> None:
        with Enrichment(slow_service_url) as service:
            service.ask([FLIGHT] * flights)

    start = time.monotonic()
    ask(100)
    assert time.monotonic() - start >= 0.5
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(ask, 1000)
        ask(1)
        assert not long.done()


def test_column_is_added(service_url: str) -> None:
    """All columns stay; more rows than fit into one request."""
    rows = [{**FLIGHT, "seats": seats, "id": seats} for seats in range(1, 131)]
    batch = pa.RecordBatch.from_pylist(rows)
    (result,) = enriched(service_url, iter([batch]))
    assert result.schema.names == [*batch.schema.names, "carbon_dioxide_kilograms"]
    assert result.to_pylist() == [
        {**row, "carbon_dioxide_kilograms": carbon_dioxide_kilograms(row)} for row in rows
    ]
    assert set(ASKED) <= set(batch.schema.names)


class Flaky(BaseHTTPRequestHandler):
    """Breaks the connection twice, answers 503 once, then serves."""

    requests: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        """Fail three times."""
        self.requests.append(self.path)
        if len(self.requests) <= 2:
            self.close_connection = True
            return
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b"[42]"
        self.send_response(503 if len(self.requests) == 3 else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        """Say nothing."""


def test_client_tries_again() -> None:
    """A broken connection and a busy service are no failure of the stream."""
    with (
        serving(HTTPServer(("127.0.0.1", 0), Flaky)) as server,
        Enrichment(f"http://127.0.0.1:{server.server_port}") as service,
    ):
        assert service.ask([FLIGHT]) == [42]
    assert len(Flaky.requests) == 4
