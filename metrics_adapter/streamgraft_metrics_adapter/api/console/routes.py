"""The routes of the console: files, sessions, jobs, logs."""

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from streamgraft_common import names
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.resources.base import ObjectName
from streamgraft_metrics_adapter.access.guard import USER
from streamgraft_metrics_adapter.access.sessions import (
    SESSION_SECONDS,
    Sessions,
    cookie,
    cookie_name,
)
from streamgraft_metrics_adapter.api.console.calls import Calls, token_of
from streamgraft_metrics_adapter.api.console.graph import View

FILES = Path(__file__).with_name("static")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src"
        " 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_API = "/console/api"
_JOB = _API + "/namespaces/{namespace}/jobs/{name}"


Name = Annotated[str, PathParameter(max_length=names.MAX_OBJECT_NAME, pattern=names.OBJECT_NAME)]
Authorization = Annotated[str, Header(include_in_schema=False)]


class SavepointWanted(BaseModel):
    """A savepoint that is to be taken."""

    name: ObjectName


class Files(StaticFiles):
    """The page and its parts, which run nothing that is not ours."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file."""
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


def add_console(app: FastAPI, cluster: KubeConfig, sessions: Sessions) -> None:
    """Add the console to an application that stands behind SessionsAsTokens and the guard."""
    router = APIRouter(include_in_schema=False)
    _add_sessions(router, sessions)
    _add_jobs(router, Calls(cluster))
    app.include_router(router)
    app.mount("/console", Files(directory=FILES, html=True))


def _add_sessions(router: APIRouter, sessions: Sessions) -> None:
    @router.post(f"{_API}/tickets")
    async def ticket(request: Request, authorization: Authorization = "") -> dict[str, str]:
        return {"ticket": sessions.ticket(_user(request), token_of(authorization))}

    @router.post(f"{_API}/session")
    async def sign_in(
        request: Request, response: Response, authorization: Authorization = ""
    ) -> dict[str, str]:
        sessions.end(cookie(request.headers) or "")  # whose cookie goes: no page could use it
        secret, session = sessions.begin(_user(request), token_of(authorization))
        response.set_cookie(
            cookie_name(request.headers.get("host", "")),
            secret,
            max_age=int(SESSION_SECONDS),
            secure=True,
            httponly=True,
            samesite="strict",
        )
        return {"user": _user(request), "csrf": session.csrf}

    @router.delete(f"{_API}/session")
    async def sign_out(request: Request, response: Response) -> dict[str, str]:
        sessions.end(cookie(request.headers) or "")
        ours = cookie_name(request.headers.get("host", ""))
        response.delete_cookie(ours, secure=True, httponly=True, samesite="strict")
        return {}


def _user(request: Request) -> str:
    return str(request.scope["state"][USER])


def _add_jobs(router: APIRouter, calls: Calls) -> None:
    @router.get(f"{_API}/jobs")
    async def jobs(namespace: str = "", authorization: Authorization = "") -> list[View]:
        async with calls.as_caller(authorization) as client:
            return await calls.jobs(client, namespace)

    @router.get(_JOB)
    async def job(namespace: Name, name: Name, authorization: Authorization = "") -> View:
        async with calls.as_caller(authorization) as client:
            return await calls.job(client, namespace, name)

    @router.delete(_JOB)
    async def cancel(
        namespace: Name, name: Name, authorization: Authorization = ""
    ) -> dict[str, Any]:
        async with calls.as_caller(authorization) as client:
            await calls.cancel(client, namespace, name)
        return {}

    @router.post(_JOB + "/savepoints")
    async def savepoint(
        namespace: Name, name: Name, wanted: SavepointWanted, authorization: Authorization = ""
    ) -> dict[str, Any]:
        async with calls.as_caller(authorization) as client:
            await calls.savepoint(client, namespace, name, wanted.name)
        return {}

    @router.get(_API + "/namespaces/{namespace}/pods/{pod}/log")
    async def log(
        namespace: Name,
        pod: Name,
        tail: Annotated[int, Query(ge=1, le=5000)] = 300,
        authorization: Authorization = "",
    ) -> Response:
        async with calls.as_caller(authorization) as client:
            return PlainTextResponse(await calls.log(client, namespace, pod, tail))
