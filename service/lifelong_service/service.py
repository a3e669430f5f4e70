"""The BentoML service. BentoML starts and watches the workers and hands them their socket; every route is ours.

Importing this module must stay cheap: the parent process does it, too. All real work begins in the lifespan of the
application, in each worker.
"""

from typing import Any

import bentoml

from lifelong_core.settings import Settings
from lifelong_service.application import create_application
from lifelong_service.middleware import OnlyOurRoutes

settings = Settings.load()


def worker_name() -> str:
    """BentoML's number of this worker, from 1; a worker that takes the place of a dead one has its number."""
    return str(bentoml.server_context.worker_index or 1)


application = create_application(settings, worker_name=worker_name)


@bentoml.service(
    name="lifelong",
    workers=settings.workers,
    # Its timers outlive their requests and keep them in memory, so it is as short as ours allows; ours answers first.
    traffic={"timeout": settings.request_timeout_seconds + 2},
    http={"host": settings.host, "port": settings.port},  # pyright: ignore[reportArgumentType] - pydantic takes text
    logging={"access": {"enabled": False}},
    # BentoML would label its metrics with every path that a client makes up; ours are in lifelong_service.metrics.
    metrics={"enabled": False},
    tracing={"excluded_urls": ".*"},
    monitoring={"enabled": False},
)
class Lifelong:
    """Images or logits in, decisions out; every answered prediction is in the log."""


_service: Any = Lifelong  # the decorator has made it a bentoml.Service
_service.mount_asgi_app(application, path="/")
_service.add_asgi_middleware(OnlyOurRoutes, ours=application)
