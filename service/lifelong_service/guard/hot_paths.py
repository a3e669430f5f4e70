"""Predictions without the framework: their endpoints are called directly, with the same checks and error bodies.

Routing, dependencies and exit stacks of FastAPI and Starlette take half of the time of a small request. These endpoints
need none of them: they read their requests themselves.
"""

from collections.abc import Iterable
from typing import Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lifelong_core.values.errors import LifelongError
from lifelong_service.guard.errors import on_http_error, on_lifelong_error
from lifelong_service.guard.route import GuardedRoute, Respond

_METHOD: Final = "POST"


class HotPaths:
    """An ASGI application for some routes of another one.

    Args:
        app: the application with all routes, these included; it documents them and answers other methods.
        routes: routes of POST whose endpoints take only the request and return a response.
    """

    def __init__(self, app: FastAPI, routes: Iterable[GuardedRoute]) -> None:
        self._app = app
        self._routes: dict[str, tuple[GuardedRoute, Respond]] = {
            route.path: (route, route.guarded(route.endpoint)) for route in routes
        }

    def answers(self, scope: Scope) -> bool:
        """Whether this application answers a request."""
        return scope["type"] == "http" and scope["method"] == _METHOD and scope["path"] in self._routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request that it answers."""
        route, respond = self._routes[scope["path"]]
        scope["app"], scope["route"], scope["path_params"] = self._app, route, {}
        response = await _response(Request(scope, receive, send), respond)
        await response(scope, receive, send)


async def _response(request: Request, respond: Respond) -> Response:
    try:
        return await respond(request)
    except LifelongError as error:
        return await on_lifelong_error(request, error)
    except HTTPException as error:  # a multipart body that cannot be read
        return await on_http_error(request, error)
