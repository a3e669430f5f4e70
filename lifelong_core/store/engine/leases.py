"""Leases: of several monitors one at a time may do a piece of work, and one that was stopped too long writes nothing.

A lease is a row with a fencing token that grows with every holder. Who holds it renews it while it works, and names it
in the transaction that writes: there the row is locked and its token compared, so a holder that lost the lease fails.

Clocks may be wrong. The row's time is that of the database (on SQLite: of its machine), and decides only who may take
over; a wrong one makes somebody take over too early, which the token makes harmless. A row that ends later than any
lease can comes from a clock that was set back, and counts as ended. A holder itself goes by its monotonic clock.
"""

import os
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

import sqlalchemy as sa

from lifelong_core.errors import ConflictError
from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.database import Database
from lifelong_core.store.log.identifiers import EPOCH
from lifelong_core.store.schema import tables

_leases = tables.leases
_LONGEST_NAME = 128
"""Of a holder."""


@dataclass
class Lease:
    """What a holder knows of its lease; renewing it moves its end, for all who have this object."""

    name: str
    holder: str
    token: int
    """larger than that of every holder before"""
    seconds: float
    """for which it was given, counted from when it was asked for"""
    ends_at: float
    """on the monotonic clock of this process: from then on the holder itself gives it up"""

    @property
    def is_over(self) -> bool:
        """Whether the holder has shown no sign of life for so long that others may have taken over."""
        return time.monotonic() >= self.ends_at


class Leases:
    """Gives, renews and takes back leases; each call is one short transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Take a lease that nobody has.

        Args:
            name: of what is to be done once at a time, at most 200 characters.
            holder: who asks, for people who look; at most 128 characters.
            seconds: until others may take over, unless it is renewed.

        Returns:
            None: somebody has it.

        Raises:
            UnavailableError: the database does not answer.
        """
        asked_at = time.monotonic()
        try:
            with self._database.write() as connection:
                token = _take(connection, name, holder[:_LONGEST_NAME], seconds)
        except ConflictError:  # somebody else was the first ever to take it
            return None
        return None if token is None else Lease(name, holder, token, seconds, asked_at + seconds)

    def renew(self, lease: Lease, seconds: float) -> Lease:
        """Prolong a lease from now on; it is the same object.

        Raises:
            ConflictError: it was lost: its time was over before, or another has it.
            UnavailableError: the database does not answer; the lease goes on until its time is over.
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
        """Let others have it at once; nothing happens if it was lost.

        Raises:
            UnavailableError: the database does not answer; others have to wait until its time is over.
        """
        with self._database.write() as connection:
            # The row stays, for its token.
            connection.execute(
                sa.update(_leases)
                .where(_leases.c.name == lease.name, _leases.c.token == lease.token)
                .values(expires_at=EPOCH)
            )


def hold_lease(connection: sa.Connection, lease: Lease) -> None:
    """Make sure that a writing transaction has the lease, and keep others from taking it until it is committed.

    Raises:
        ConflictError: the lease was lost.
    """
    if connection.dialect.name == "postgresql":
        # A process that is stopped here must not keep the others waiting on its locks.
        milliseconds = max(1, int(lease.seconds * 1000))
        connection.execute(sa.text(f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds}"))
    token = connection.execute(
        sa.select(_leases.c.token).where(_leases.c.name == lease.name).with_for_update()
    ).scalar_one_or_none()
    if token != lease.token or lease.is_over:
        raise ConflictError(
            f"the lease {lease.name} was lost: this process gave no sign of life for {lease.seconds:g} s.",
            field="lease",
            hint="Nothing was written; whoever took over goes on.",
        )


@cache
def this_process() -> str:
    """Host and process, by which people know a holder."""
    return f"{socket.gethostname()[: _LONGEST_NAME - 12]}/{os.getpid()}"


def _take(connection: sa.Connection, name: str, holder: str, seconds: float) -> int | None:
    """The new token; None: somebody has the lease."""
    present = connection.execute(
        sa.select(_leases).where(_leases.c.name == name).with_for_update()
    ).one_or_none()
    clock = database_time(connection)
    values = {"holder": holder, "expires_at": clock + timedelta(seconds=seconds), "seconds": seconds}
    if present is None:
        connection.execute(sa.insert(_leases).values(name=name, token=1, **values))
        return 1
    ahead = (present.expires_at - clock).total_seconds()
    # Twice as far ahead: a clock that is corrected by a little is no reason to take a lease away.
    if 0 < ahead <= 2 * present.seconds:
        return None
    token = present.token + 1
    connection.execute(sa.update(_leases).where(_leases.c.name == name).values(token=token, **values))
    return token
