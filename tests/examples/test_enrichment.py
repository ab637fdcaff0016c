"""Orders with what the real service, a process of its own, says of their customers."""

import time
from collections.abc import Iterator

import pytest
from tests.examples.conftest import Graphs, Records
from tests.examples.rotation import turn
from tests.examples.serving import serving

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


def test_orders_are_priced(graph_of: Graphs, records: Records, service_url: str) -> None:
    """Each order once, with its customer's discount; customers are asked for side by side."""
    given = list(orders(200))
    graph = graph_of(app)
    graph.bind({"service-url": service_url})
    frame = records(given, ORDER)
    began = time.monotonic()
    found = graph.run(orders=frame).rows("invoices")
    seconds = time.monotonic() - began
    wanted = []
    for order in given:
        known = customer(order["customer"])
        total = order["cents"] * (100 - int(known["discount"])) // 100
        wanted.append({**order, **known, "total": total})
    assert sorted(found, key=lambda row: row["id"]) == wanted
    asked = len({order["customer"] for order in given})
    assert seconds < asked * DELAY_SECONDS / 2


def test_a_service_that_is_down_loses_no_order(graph_of: Graphs, records: Records) -> None:
    """The batch fails, and is tried again, instead of orders that go without."""
    graph = graph_of(app)
    graph.bind({"service-url": "http://127.0.0.1:9"})
    with pytest.raises(Exception, match="Connection refused"):
        graph.run(orders=records(orders(5), ORDER)).rows("invoices")
