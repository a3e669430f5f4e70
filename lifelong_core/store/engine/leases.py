"""Leases: one of several monitors at a time does a piece of work; a holder that lost its lease cannot write.

A lease is a row with a fencing token that increases with every holder. The holder renews it during its work. Its
writing transactions lock the row and compare the token, so they fail after a loss of the lease.

Clocks may be wrong. The expiry in the row follows the clock of the database (SQLite: of its machine) and decides only
when another process may take over; a wrong clock causes an early takeover, which the token makes harmless. An expiry
beyond the longest lease comes from a clock that was set back, and counts as expired. A holder uses its own monotonic
clock.
"""

import os
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

import sqlalchemy as sa

from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.log.identifiers import EPOCH
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError

_leases = tables.leases
_LONGEST_NAME = 128
"""Largest length of a holder's name in characters."""


@dataclass
class Lease:
    """A lease in the process of its holder; a renewal changes `ends_at` of this object."""

    name: str
    holder: str
    token: int
    """fencing token, larger than that of every earlier holder"""
    seconds: float
    """duration in seconds from the request"""
    ends_at: float
    """end on the monotonic clock of this process, at which the holder stops"""

    @property
    def is_over(self) -> bool:
        """Whether the lease has expired, so that another process may hold it."""
        return time.monotonic() >= self.ends_at


class Leases(Repository):
    """Acquires, renews and releases leases; each call is one short transaction."""

    def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Acquire a free lease.

        Args:
            name: of the work, at most 200 characters.
            holder: name of this process for display, at most 128 characters.
            seconds: duration of the lease unless it is renewed.

        Returns:
            The lease; None: another process holds it.

        Raises:
            UnavailableError: the database does not answer.
        """
        asked_at = time.monotonic()
        try:
            with self._database.write() as connection:
                token = _take(connection, name, holder[:_LONGEST_NAME], seconds)
        except ConflictError:  # another process inserted the row first
            return None
        return None if token is None else Lease(name, holder, token, seconds, asked_at + seconds)

    def renew(self, lease: Lease, seconds: float) -> Lease:
        """Renew a lease from now on; return the same object.

        Raises:
            ConflictError: the lease is lost: it expired, or another process holds it.
            UnavailableError: the database does not answer; the lease stays valid until its end.
        """
        asked_at = time.monotonic()
        with self._database.write() as connection:
            hold_lease(connection, lease)
            values = {
                "expires_at": database_time(connection) + timedelta(seconds=seconds),
                "seconds": seconds,
            }
            connection.execute(sa.update(_leases).where(_leases.c.name == lease.name).values(**values))
        lease.seconds, lease.ends_at = seconds, asked_at + seconds
        return lease

    def release(self, lease: Lease) -> None:
        """Release a lease; a lost one is ignored.

        Raises:
            UnavailableError: the database does not answer; other processes wait until its end.
        """
        with self._database.write() as connection:
            # The row stays to keep its token.
            connection.execute(
                sa.update(_leases)
                .where(_leases.c.name == lease.name, _leases.c.token == lease.token)
                .values(expires_at=EPOCH)
            )


def hold_lease(connection: sa.Connection, lease: Lease) -> None:
    """Check that a writing transaction has the lease, and lock the lease until the commit.

    Raises:
        ConflictError: the lease was lost.
    """
    if connection.dialect.name == "postgresql":
        # A process that hangs here must not block other processes by its locks.
        milliseconds = max(1, int(lease.seconds * 1000))
        connection.execute(sa.text(f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds}"))
    token = connection.execute(
        sa.select(_leases.c.token).where(_leases.c.name == lease.name).with_for_update()
    ).scalar_one_or_none()
    if token != lease.token or lease.is_over:
        raise ConflictError(
            f"the lease {lease.name} was lost: this process did not renew it for {lease.seconds:g} s.",
            field="lease",
            hint="Nothing was written; another process continues it.",
        )


@cache
def this_process() -> str:
    """Return host and process id, the name of a holder."""
    return f"{socket.gethostname()[: _LONGEST_NAME - 12]}/{os.getpid()}"


def _take(connection: sa.Connection, name: str, holder: str, seconds: float) -> int | None:
    """Take the lease and return its new token; None: another process holds the lease."""
    present = connection.execute(
        sa.select(_leases).where(_leases.c.name == name).with_for_update()
    ).one_or_none()
    clock = database_time(connection)
    values = {"holder": holder, "expires_at": clock + timedelta(seconds=seconds), "seconds": seconds}
    if present is None:
        connection.execute(sa.insert(_leases).values(name=name, token=1, **values))
        return 1
    ahead = (present.expires_at - clock).total_seconds()
    # A tolerance of twice the duration keeps leases through small corrections of the clock.
    if 0 < ahead <= 2 * present.seconds:
        return None
    token = present.token + 1
    connection.execute(sa.update(_leases).where(_leases.c.name == name).values(token=token, **values))
    return token
