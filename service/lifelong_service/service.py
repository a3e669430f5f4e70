"""The BentoML service: BentoML starts and restarts the workers and passes their socket; all routes are ours.

The parent process imports this module, too, and serves nothing: only workers load the application. All real work
begins in the lifespan of the application.
"""

import gc
import logging
import sys
from typing import Any

import bentoml

from lifelong_core.configuration.serving_plan import serving_plan
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.files import restrict_new_files
from lifelong_core.runtime.logs import configure_logging
from lifelong_core.values.errors import LifelongError
from lifelong_service.process import signals
from lifelong_service.process.launch import REFUSED, await_checker, report

restrict_new_files()
settings = Settings.load()
plan = serving_plan(settings)
# After BentoML has configured its loggers, in the parent and in each worker.
configure_logging(settings.log_format)
logger = logging.getLogger(__name__)


@bentoml.service(
    name="lifelong",
    workers=plan.workers,
    http={"host": settings.host, "port": settings.port},  # pyright: ignore[reportArgumentType] - pydantic takes text
    logging={"access": {"enabled": False}},
    # BentoML labels its metrics with every path that clients send; ours are in lifelong_service.metrics.
    metrics={"enabled": False},
    tracing={"excluded_urls": ".*"},
    monitoring={"enabled": False},
)
class Lifelong:
    """Images or logits in, decisions out; every answered prediction is in the log."""

    @bentoml.on_deployment
    @staticmethod
    def check() -> None:
        """Check the installation in the parent, before the workers: BentoML would restart failing ones for ever."""
        signals.insist()
        if status := await_checker():
            sys.exit(status)
        from lifelong_service.process import metric_files  # the start of the parent is faster without it
        from lifelong_service.process.supervisor import prepare_supervisors  # workers need no supervisor

        prepare_supervisors()
        try:
            metric_files.make_files(settings, plan.workers)
        except LifelongError as error:
            report(error)
            sys.exit(REFUSED)
        logger.info(
            "starting to listen on %s",
            settings.listening_url(settings.port),
            extra={"details": {"workers": plan.workers, "threads": plan.threads, "cores": plan.cores}},
        )
        gc.enable()


def mount(service: Any, worker_index: int) -> None:
    """Let our application answer the requests; BentoML starts and stops it.

    Args:
        service: the bentoml.Service of the class.
        worker_index: number of the worker, from 1; a restarted worker keeps its number.
    """
    # Objects loaded here stay alive; collecting garbage would take a fifth of the start.
    # The worker enables the collector when it has loaded its models.
    gc.disable()
    from lifelong_service.process.metric_files import share_metrics

    share_metrics(worker_index)  # before any metric is created
    from lifelong_service.application import create_application
    from lifelong_service.graphs.limits import limit_memory
    from lifelong_service.transport.server import serve_directly

    limit_memory(settings, plan)
    application = create_application(settings, worker_name=str(worker_index))
    service.mount_asgi_app(application, path="/")  # for start and stop
    serve_directly(application, settings)


if bentoml.server_context.worker_index is not None:
    mount(Lifelong, bentoml.server_context.worker_index)
