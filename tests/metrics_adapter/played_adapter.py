"""An adapter that the console's page is tried with: one job, and what it is asked for."""

import asyncio
import time
from typing import Any

from aiohttp import web

from streamgraft_metrics_adapter.api.console.routes import FILES, HEADERS

API = "/console/api"


def stage_load() -> dict[str, Any]:
    """Return what a decision tells of a stage."""
    capacity = {"true_rate": 1000, "width": 2}
    load = {"input_rate": 400, "largest_shard": 0.1, "capacity": capacity}
    return {"load": load, "fit": {}, "backlog": 0}


def element(number: int, **other: Any) -> dict[str, Any]:
    """Return a PE of a job, that runs unless told otherwise."""
    place = {"id": number, "name": f"j-{number}", "channel": number, "pod": f"p{number}"}
    told = {"phase": "Running", "launches": 1, "busy": 0.5, "lag": 0, "message": ""}
    return {**place, **told, "shards": [number], **other}


class PlayedAdapter:
    """Has one job with a region of two channels; notes what it is asked for."""

    def __init__(self) -> None:
        self.job = ("n", "j")
        self.regions = ["r"]
        self.pes = [element(0), element(1)]
        self.down = False
        self.rates: list[float | None] = [400, 400, 400, 400]
        self.age = 0.0
        self.refusal = ""
        self.held: dict[str, asyncio.Event] = {}
        self.asked: list[str] = []
        self.written: list[Any] = []

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        path = request.path
        if not path.startswith((f"{API}/", "/api/")):
            name = path.removeprefix("/console/") or "index.html"
            return web.FileResponse(FILES / name, headers=HEADERS)
        self.asked.append(request.raw_path)
        if self.down:
            return web.json_response({"message": "no API server"}, status=503)
        if path.endswith("/log"):
            pod = path.split("/")[-2]
            if pod in self.held:
                await self.held[pod].wait()
            return web.Response(text=f"said by {pod}")
        if request.method in ("PUT", "DELETE"):
            self.written.append((path, await request.json() if request.can_read_body else None))
        if path.endswith("/replay") and self.refusal:
            return web.json_response({"message": self.refusal}, status=503)
        return web.json_response(self._document(path))

    def _document(self, path: str) -> Any:
        if path == f"{API}/session":
            return {"user": "u", "csrf": "c"}
        if path == f"{API}/jobs":
            return []
        if path.startswith(API):
            return self._job()
        if path.endswith("/history"):
            first = time.time() - self.age - 10 * (len(self.rates) - 1)
            widths = {"width": 4, "wantedWidth": 4, "signals": {}}
            rates = [{"inputRate": rate, "processingRate": rate} for rate in self.rates]
            times = [{"time": first + 10 * index} for index in range(len(rates))]
            return {"items": [t | rate | widths for t, rate in zip(times, rates, strict=True)]}
        if path.endswith("/replay"):
            return self._replay()
        policy = {"target_utilization": 0.8}
        inputs = {
            "stages": {"0": stage_load()},
            "stage": "0",
            "needed": 6,
            "held": [],
            "policy": policy,
        }
        return {"signals": {"demand": {"value": 6, "inputs": inputs}}}

    def _replay(self) -> dict[str, Any]:
        """Return a replay of two runs, with one width change."""
        first = time.time() - self.age - 10 * (len(self.rates) - 1)
        steps = [
            {"time": first + at, "width": 4 + (at > 50), "wantedWidth": 5, "lag": 0}
            for at in (10, 20, 60, 70)
        ]
        replayed = {"changes": 1, "channelHours": 4.25, "largestBacklog": 1234.4}
        happened = {"changes": 3, "channelHours": 3.96, "largestBacklog": None}
        figures = {"replayed": replayed, "happened": happened, "longestWaitSeconds": 12.04}
        return {"targetUtilization": 0.6, "seconds": 3540, "steps": steps, **figures}

    def _job(self) -> dict[str, Any]:
        namespace, name = self.job
        told = {"phase": "Healthy", "pes": 2, "ready": 2, "message": "", "deleting": False}
        stage = {"name": "st", "region": "r", "operators": [], "realTime": False}
        size = {"width": 2, "serving": 2, "maxWidth": 8, "maySleep": True, "resizing": False}
        regions = [{"name": f"j-{r}", "region": r, "changes": [], **size} for r in self.regions]
        parts = {
            "conditions": [],
            "stages": [stage | {"pes": self.pes}],
            "streams": [],
            "regions": regions,
        }
        return {"namespace": namespace, "name": name, **told, **parts}
