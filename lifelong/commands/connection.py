"""Where a command carries its operation out: in the service that LIFELONG_URL names, else in the local store."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from lifelong.client import Client
from lifelong.commands.common import actor, local_store, service_url
from lifelong_core.operations.operation import Answer, Call, Context
from lifelong_core.store.registry.serving import WORKERS_PATIENCE_SECONDS


class Connection(Protocol):
    """Carries operations out."""

    def send(self, call: Call[Answer]) -> Answer:
        """Carry out an operation.

        Raises:
            LifelongError: it was refused, or the service or the database does not answer.
        """
        ...


@dataclass(frozen=True)
class LocalStore:
    """The store of this machine as a connection."""

    context: Context

    def send(self, call: Call[Answer]) -> Answer:
        """Carry out an operation in the store."""
        return call.operation(self.context, call)


@contextmanager
def connect() -> Iterator[Connection]:
    """The connection of a command, closed at the end.

    With LIFELONG_URL it is that service, with the token in LIFELONG_TOKEN; else the store that the settings name.
    """
    if url := os.environ.get("LIFELONG_URL"):
        with Client(service_url(url), os.environ.get("LIFELONG_TOKEN")) as client:
            yield client
        return
    with local_store() as (store, settings):
        yield LocalStore(Context(store, settings, actor(), WORKERS_PATIENCE_SECONDS, may_take_long=True))
