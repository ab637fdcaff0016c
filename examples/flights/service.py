"""The enrichment service: real HTTP, and of limited speed on every connection.

`POST /enrich` with a JSON array of flights answers with an array of their emissions, in the same
order. Each connection is served at `rate` flights a second, like a client of a service with a
quota: a channel, which has one connection, is as fast as that, and more channels are faster.
"""

import argparse
import asyncio
import signal
import time

from aiohttp import web

from examples.flights.emissions import carbon_dioxide_kilograms

MAX_FLIGHTS = 1000
"""Flights in one request."""


class Service:
    """The service, with the flights a second that it grants to each connection."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.flights = 0

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        application = web.Application(client_max_size=4 * 1024 * 1024)
        application.add_routes([web.post("/enrich", self.enrich), web.get("/healthz", self.health)])
        return application

    async def enrich(self, request: web.Request) -> web.Response:
        """Answer with one emission per flight, not sooner than the rate allows."""
        due = time.monotonic()
        try:
            flights = await request.json()
            if not isinstance(flights, list) or len(flights) > MAX_FLIGHTS:
                raise ValueError(f"send an array of at most {MAX_FLIGHTS} flights")
            answer = [carbon_dioxide_kilograms(flight) for flight in flights]
        except (ValueError, TypeError, KeyError) as error:
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)
        due += len(flights) / self.rate
        await asyncio.sleep(due - time.monotonic())
        self.flights += len(flights)
        return web.json_response(answer)

    async def health(self, _request: web.Request) -> web.Response:
        """Say that we are here, and how much was done."""
        return web.json_response({"flights": self.flights, "rate": self.rate})


async def serve(rate: float, host: str) -> None:
    """Serve on a free port of an address, tell its URL on stdout, and end on SIGTERM."""
    runner = web.AppRunner(Service(rate).application())
    await runner.setup()
    site = web.TCPSite(runner, host, 0)
    await site.start()
    _, port = runner.addresses[0][:2]
    print(f"http://{host}:{port}", flush=True)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    await runner.cleanup()


def main() -> None:
    """Run the service: `python -m examples.flights.service --rate 1000`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, required=True, help="flights/s per connection")
    parser.add_argument("--host", default="127.0.0.1", help="address to serve on")
    parsed = parser.parse_args()
    asyncio.run(serve(parsed.rate, parsed.host))


if __name__ == "__main__":
    main()
