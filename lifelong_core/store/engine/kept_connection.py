"""A connection that stays out of the pool between transactions: the pool takes as long as a small commit."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.pool import PoolProxiedConnection


class KeptConnection:
    """Lends one connection of a pool to one thread at a time; another thread gets a connection from the pool meanwhile.

    Args:
        engine: has the pool.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._kept: PoolProxiedConnection | None = None
        self._is_closed = False

    @contextmanager
    def lend(self) -> Generator[PoolProxiedConnection, None, None]:
        """A connection without a transaction; the block ends its own. After an error the pool resets the connection."""
        if not self._lock.acquire(blocking=False):
            pooled = self._engine.raw_connection()
            try:
                yield pooled
            finally:
                pooled.close()
            return
        try:
            pooled, self._kept = self._kept or self._engine.raw_connection(), None
            try:
                yield pooled
            except BaseException:
                pooled.close()
                raise
            self._kept = pooled
        finally:
            self._lock.release()
        if self._is_closed:
            self._give_back_kept()

    def close(self) -> None:
        """Close the connection; one that is lent follows at the end of its block, which may hang."""
        self._is_closed = True
        self._give_back_kept()

    def _give_back_kept(self) -> None:
        if not self._lock.acquire(blocking=False):
            return
        try:
            pooled, self._kept = self._kept, None
        finally:
            self._lock.release()
        if pooled is not None:
            pooled.close()
