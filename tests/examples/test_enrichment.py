"""Orders with what the real service, a process of its own, says of their customers."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

import pytest
from tests.examples.conftest import Graphs, Records
from tests.examples.rotation import turn
from tests.examples.serving import serving
from tests.serving import serving as in_thread

from examples.enrichment.app import ORDER, app
from examples.enrichment.orders import orders
from examples.enrichment.service import customer

pytestmark = [pytest.mark.integration, turn("enrichment")]

DELAY_SECONDS = 0.1


@pytest.fixture
def service_url() -> Iterator[str]:
    """A service that takes a tenth of a second for each answer."""
    with serving("examples.enrichment.service", "--delay", str(DELAY_SECONDS)) as (_, url):
        yield url


@dataclass
class Door:
    """Where the service is asked, and how many ask it at a time."""

    service_url: str
    url: str = ""
    inside: set[int] = field(default_factory=set)
    """Threads."""
    most: int = 0

    def pass_on(self, path: str) -> bytes:
        """Return the service's answer."""
        self.inside.add(threading.get_ident())
        self.most = max(self.most, len(self.inside))
        with urlopen(f"{self.service_url}{path}", timeout=30) as answer:
            body: bytes = answer.read()
        self.inside.remove(threading.get_ident())
        return body


@pytest.fixture
def door(service_url: str) -> Iterator[Door]:
    """One before the service."""
    found = Door(service_url)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = found.pass_on(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        yield found


def test_orders_are_priced(graph_of: Graphs, records: Records, door: Door) -> None:
    """Each order once, with its customer's discount; customers are asked for side by side."""
    given = list(orders(200))
    graph = graph_of(app)
    graph.bind({"service-url": door.url})
    found = graph.run(orders=records(given, ORDER)).rows("invoices")
    wanted = []
    for order in given:
        known = customer(order["customer"])
        total = order["cents"] * (100 - int(known["discount"])) // 100
        wanted.append({**order, **known, "total": total})
    assert sorted(found, key=lambda row: row["id"]) == wanted
    assert door.most > 4


def test_a_service_that_is_down_loses_no_order(graph_of: Graphs, records: Records) -> None:
    """The batch fails, and is tried again, instead of orders that go without."""
    graph = graph_of(app)
    graph.bind({"service-url": "http://127.0.0.1:9"})
    with pytest.raises(Exception, match="Connection refused"):
        graph.run(orders=records(orders(5), ORDER)).rows("invoices")
