"""The HTTP application of one worker: routes, error bodies, start and stop."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.tracing import start_tracing
from lifelong_core.values.errors import LifelongError
from lifelong_service import console, metrics
from lifelong_service.guard.errors import on_http_error, on_lifelong_error, on_validation_error
from lifelong_service.guard.hot_paths import HotPaths
from lifelong_service.guard.middleware import RequestMiddleware
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.guard.traced_requests import TracedRequests
from lifelong_service.openapi import openapi
from lifelong_service.process.draining import Draining
from lifelong_service.process.launch import ANSWERING_SECONDS, CLOSING_SECONDS, LISTENING_SECONDS
from lifelong_service.routes import feedback, operations, predictions, probes
from lifelong_service.routes.admin import (
    calibration_sets,
    fingerprints,
    jobs,
    knowledge,
    models,
    promotion_reports,
    retrainings,
    validations,
)
from lifelong_service.transport.root_path import own_path, send_below
from lifelong_service.worker.worker import Worker

API_VERSION = "1.0"
"""Version of the HTTP interface: paths under /v1 stay compatible."""

logger = logging.getLogger(__name__)

_ROUTERS = (
    predictions,
    feedback,
    fingerprints,
    retrainings,
    models,
    calibration_sets,
    knowledge,  # its paths match the path of a task, too
    operations,
    validations,
    jobs,
    promotion_reports,
    probes,
)


def _prediction_routes() -> list[str]:
    """Return the paths of predictions and feedback, whose failures alert rules count."""
    routers = (predictions.router, feedback.router)
    return [route.path for router in routers for route in router.routes if isinstance(route, APIRoute)]


class Application(FastAPI):
    """The application of one worker. Predictions bypass the framework, which answers everything else.

    Args:
        bypasses: whether they do; tests compare both paths.
        prefix: path below which a proxy serves this application; empty: none.
        options: arguments of FastAPI.
    """

    def __init__(self, *, bypasses: bool, prefix: str, **options: Any) -> None:
        super().__init__(**options, servers=[{"url": prefix}] if prefix else None)
        self._prefix = prefix
        self._bypasses = bypasses
        self._hot_paths = HotPaths(self, ())
        self._answer_hot: ASGIApp = self._hot_paths

    def wrap(self, middleware: Callable[[ASGIApp], ASGIApp], hot_routes: Iterable[GuardedRoute]) -> None:
        """Put a middleware around both paths.

        Args:
            middleware: wraps an application.
            hot_routes: routes that bypass the framework.
        """
        self.add_middleware(middleware)
        if self._bypasses:
            self._hot_paths = HotPaths(self, hot_routes)
            self._answer_hot = middleware(self._hot_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if self._prefix and scope["type"] == "http":
            scope, send = own_path(self._prefix, scope), send_below(self._prefix, send)
        if self._hot_paths.answers(scope):
            await self._answer_hot(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_application(settings: Settings, *, worker_name: str = "1", bypasses: bool = True) -> FastAPI:
    """Return the application; nothing is opened before its lifespan begins.

    Args:
        settings: settings of this process.
        worker_name: value of the header X-Lifelong-Worker.
        bypasses: whether predictions bypass the framework.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        metrics.create_request_series(_prediction_routes())
        worker = app.state.worker = Worker(settings)
        # In a thread: the server must go on answering signals while models are loaded.
        await anyio.to_thread.run_sync(worker.start)
        draining.start()
        yield
        with anyio.move_on_after(CLOSING_SECONDS) as patience:
            await anyio.to_thread.run_sync(worker.close, abandon_on_cancel=True)
        if patience.cancelled_caught:
            # A thread waits for a hung database. All answered predictions are in the log or the spool.
            logger.warning("the worker did not stop in time and is left as it is")

    draining = Draining(
        lambda: app.state.worker.drain(),
        listening_seconds=LISTENING_SECONDS,
        seconds=LISTENING_SECONDS + ANSWERING_SECONDS,
    )
    app = Application(
        bypasses=bypasses,
        prefix=settings.root_path,
        title="Lifelong",
        version=API_VERSION,
        summary="Decisions of image classifiers that stay right when the prevalence of diseases shifts.",
        # The documentation pages load files from other hosts, which networks of clinics block.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # our own route answers, in a thread: building the document takes a second
        # Behind a proxy a redirect would name the wrong scheme and host.
        redirect_slashes=False,
        lifespan=lifespan,
    )
    for router in (*(module.router for module in _ROUTERS), *console.ROUTERS):
        app.router.routes.extend(router.routes)
    app.add_exception_handler(LifelongError, on_lifelong_error)
    app.add_exception_handler(RequestValidationError, on_validation_error)
    app.add_exception_handler(HTTPException, on_http_error)
    named = partial(
        RequestMiddleware,
        timeout_seconds=settings.request_timeout_seconds,
        worker=worker_name,
        draining=draining,
    )
    if start_tracing(settings, "service"):
        requests = named
        named = lambda app: TracedRequests(requests(app))  # noqa: E731
    app.wrap(named, [route for route in predictions.router.routes if isinstance(route, GuardedRoute)])
    app.openapi = lambda: openapi(app)
    return app
