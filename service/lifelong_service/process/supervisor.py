"""The supervisor of the workers accepts no commands from outside its process, and replaces workers everywhere.

BentoML watches its workers with circus, which listens for commands on two TCP ports of 127.0.0.1, without
authentication: every local user could start programs as the user of the service. Nothing in production sends commands.
In a container, BentoML would not replace a worker that has died.
"""

import functools
from typing import Any

from circus.arbiter import Arbiter

from lifelong_core.values.errors import ConfigurationError


def prepare_supervisors() -> None:
    """Keep the control sockets of all later supervisors inside this process, and let them replace dead workers.

    `inproc` is ZeroMQ's transport between threads: there is no port and no socket file to connect to.
    """
    initialise = Arbiter.__init__
    if getattr(initialise, "__wrapped__", None) is not None:
        return

    @functools.wraps(initialise)
    def initialise_inside(
        arbiter: Arbiter, watchers: list[Any], endpoint: str, pubsub_endpoint: str, **options: Any
    ) -> None:
        del endpoint, pubsub_endpoint
        if options.get("plugins"):
            raise ConfigurationError(
                "the supervisor cannot run plugins: they need its control socket, which is closed.",
                hint="Start the service without `--reload`.",
            )
        for watcher in watchers:
            watcher.respawn = True
        name = f"inproc://{id(arbiter)}"
        initialise(arbiter, watchers, f"{name}-control", f"{name}-events", **options)

    Arbiter.__init__ = initialise_inside  # pyright: ignore[reportAttributeAccessIssue] - BentoML names its arguments
