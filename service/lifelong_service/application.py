"""The HTTP application of one worker: our routes, our error bodies, start and stop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from lifelong_core.errors import LifelongError
from lifelong_core.settings import Settings
from lifelong_service.errors import on_http_error, on_lifelong_error, on_validation_error
from lifelong_service.guard import GuardedRoute
from lifelong_service.logs import configure_logging
from lifelong_service.middleware import RequestMiddleware
from lifelong_service.routes import (
    calibration,
    feedback,
    heads,
    history,
    models,
    operations,
    predictions,
    tasks,
    tokens,
)
from lifelong_service.worker import Worker

API_VERSION = "1.0"
"""Of the HTTP interface, not of the product: what is under /v1 stays compatible."""

_ROUTERS = (predictions, feedback, tasks, models, calibration, heads, history, tokens, operations)


def create_application(settings: Settings, *, worker_name: str = "1") -> FastAPI:
    """The application; nothing is opened before its lifespan begins.

    Args:
        settings: of this process.
        worker_name: what the header X-Lifelong-Worker says.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        configure_logging()
        worker = app.state.worker = Worker(settings)
        # In a thread: the server must go on answering signals while models are loaded.
        await run_in_threadpool(worker.start)
        yield
        await run_in_threadpool(worker.close)

    app = FastAPI(
        title="Lifelong",
        version=API_VERSION,
        summary="Decisions of image classifiers that stay right when the prevalence of diseases shifts.",
        # The documentation pages would be fetched from elsewhere: clinics' networks are closed.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    for module in _ROUTERS:
        app.router.routes.extend(module.router.routes)
    app.add_exception_handler(LifelongError, on_lifelong_error)
    app.add_exception_handler(RequestValidationError, on_validation_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_middleware(
        RequestMiddleware, timeout_seconds=settings.request_timeout_seconds, worker=worker_name
    )
    app.openapi = lambda: _openapi(app)
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The description of the API, with the scope that each call needs."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=app.routes,
            tags=app.openapi_tags,
        )
        components = schema.setdefault("components", {})
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for route in app.routes:
            if isinstance(route, GuardedRoute) and route.access.scope is not None:
                for method in route.methods or ():
                    operation = schema["paths"][route.path_format][method.lower()]
                    operation["security"] = [{"token": []}]
                    operation["x-scope"] = route.access.scope.value
        app.openapi_schema = schema
    return app.openapi_schema
