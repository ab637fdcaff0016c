"""The enrichment service as the demo runs it: a process of its own, spoken to over HTTP."""

from collections.abc import Iterator

import pytest
from tests.examples.serving import serving


def service_of(rate: float) -> Iterator[str]:
    """Run the service; yield its URL."""
    with serving("examples.flights.service", "--rate", str(rate)) as (process, url):
        yield url
    assert process.returncode == 0


@pytest.fixture(scope="module")
def service_url() -> Iterator[str]:
    """A service that is fast enough not to be waited for."""
    yield from service_of(1_000_000)


@pytest.fixture(scope="module")
def slow_service_url() -> Iterator[str]:
    """A service that grants 200 flights a second to each connection."""
    yield from service_of(200)
