"""Databases that are away while a block runs."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults.postgresql import MortalPostgreSQL


@contextmanager
def killed(server: MortalPostgreSQL) -> Iterator[None]:
    """SIGKILL to the server; afterwards it is started again."""
    server.kill()
    yield
    server.start()
