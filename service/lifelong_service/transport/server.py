"""The direct way from the server (uvicorn) of this process to our application."""

import functools
import ipaddress
import logging
import resource
from typing import Any

from uvicorn import config
from uvicorn.config import HTTP_PROTOCOLS
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from lifelong_core.configuration.settings import Settings
from lifelong_service.transport.connections import Connections
from lifelong_service.transport.protocol import LimitedProtocol
from lifelong_service.transport.turns import Turns

logger = logging.getLogger(__name__)

OTHER_FILES = 256
"""Files of a worker besides its connections: database, spool, models, libraries."""


def serve_directly(app: Any, settings: Settings) -> None:
    """Let the server of this process, which is created later, call our application, within the limits of the settings.

    BentoML's middlewares and its own paths (schema, metrics, health, static files) are bypassed. Only trusted proxies
    may forward client addresses; uvicorn's default trusts every process of this machine.

    Args:
        app: an ASGI application.
        settings: limits.
    """
    if settings.trusted_proxies:
        app = ProxyHeadersMiddleware(app, trusted_hosts=list(settings.trusted_proxies))
    maximum = _reserve_files(settings.maximum_connections)
    connections = Connections(
        maximum=maximum,
        per_address=settings.maximum_connections_per_address,
        proxies=[ipaddress.ip_network(network) for network in settings.trusted_proxies],
    )
    protocol: Any = functools.partial(
        LimitedProtocol, app=app, connections=connections, turns=Turns(), settings=settings
    )
    HTTP_PROTOCOLS["auto"] = protocol


def _reserve_files(connections: int) -> int:
    """Raise the limit of open files of this process; return how many connections it allows.

    The server accepts up to its whole backlog of connections before it handles the first of them.
    """
    backlog = config.Config("", log_config=None).backlog  # else it would change the loggers
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + backlog + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return connections
    possible = max(1, min(connections, (soft - OTHER_FILES) // 2))
    logger.warning(
        "this process may open %d files only: at most %d connections instead of LIFELONG_MAXIMUM_CONNECTIONS=%d."
        " Raise the limit (`ulimit -Hn`, LimitNOFILE= of systemd) to %d.",
        soft,
        possible,
        connections,
        needed,
    )
    return possible
