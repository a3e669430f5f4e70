"""A lease that a thread renews while it is held."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.store.engine.leases import Lease, Leases, this_process
from lifelong_core.values.errors import ConflictError, UnavailableError

log = logging.getLogger(__name__)

_RENEWALS = 3
"""Within the time of a lease: one may fail, and the next still comes in time."""


class _Renewals:
    """A thread that renews a lease until it is released."""

    def __init__(self, leases: Leases, lease: Lease) -> None:
        self._lease = lease
        self._leases = leases
        self._thread = BackgroundThread("lease", self._keep)
        self._thread.start()

    def give_back(self) -> None:
        """Stop renewing, and release the lease."""
        # A renewal after the release would keep the others waiting.
        self._thread.close()
        with suppress(UnavailableError):  # then it ends by itself
            self._leases.release(self._lease)

    def _keep(self) -> None:
        while not self._thread.stopping.wait(self._lease.seconds / _RENEWALS):
            try:
                self._leases.renew(self._lease, self._lease.seconds)
            except ConflictError as error:
                # What is written under it will be refused.
                log.warning("%s", error)
                return
            except UnavailableError as error:
                log.warning("the lease %s could not be renewed: %s", self._lease.name, error)


@contextmanager
def hold_renewed_lease(leases: Leases, name: str, seconds: float) -> Iterator[Lease | None]:
    """Hold a lease while the block runs; None: another process has it.

    Raises:
        UnavailableError: the database does not answer.
    """
    lease = leases.acquire(name, this_process(), seconds)
    if lease is None:
        yield None
        return
    renewals = _Renewals(leases, lease)
    try:
        yield lease
    finally:
        renewals.give_back()
