"""Counts, after each swap, the decisions before it that the new head would make otherwise."""

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from uuid import UUID

from lifelong_core.store import Cycle, Registry, Store
from lifelong_core.store.cycles.swaps import LATE, AffectedFigures, UncountedSwap
from lifelong_core.store.cycles.watching import Population
from lifelong_core.store.heads.rows import DamagedHeadError
from lifelong_core.store.log.identifiers import EPOCH
from lifelong_core.values.errors import LifelongError, RetryableError
from lifelong_monitor.cycle.text import format_affected

log = logging.getLogger(__name__)

SETTLING = timedelta(seconds=5)
"""After this time all workers have swapped, and what they answered before is committed."""
COUNTING_SECONDS = 5.0
"""Longest time that one tick spends on counting, beside one block of the log; the next tick goes on."""
RESUME_SECONDS = 1.0
"""Pause before the next tick goes on."""
COUNT_AGAIN = timedelta(minutes=1)
"""Time between two checks whether the period of a swap is over."""


class SwapCounter:
    """Counts a few seconds after each swap, so that people can act, and again when its period is over.

    A count that a process did not finish starts anew in the next one. Two monitors may count the same swap; their
    figures are equal.

    Args:
        store: with the swaps and the log.
        stopping: asked between two blocks of the log.
    """

    def __init__(self, store: Store, *, stopping: Callable[[], bool] = lambda: False) -> None:
        self._store = store
        self._stopping = stopping
        self._scans: dict[UUID, Iterator[AffectedFigures | None]] = {}
        """of the swaps that are being counted, by cycle"""
        self._counted_revision: int | None = None
        """of the registry at the newest count; a swap raises it"""
        self._next_at = EPOCH

    def update(self, now: datetime, registry: Registry) -> tuple[frozenset[Population], float | None]:
        """Count, if there may be something to count, and log the figures that are new.

        Returns:
            The populations whose figures are new; and the seconds after which to go on, None: with the next tick.

        Raises:
            UnavailableError: the database does not answer.
        """
        if registry.revision == self._counted_revision and now < self._next_at:
            return frozenset(), None
        try:
            counted, again_in = self._count(now)
        except Exception as error:  # a failure must not stop the cycles
            unexpected = None if isinstance(error, LifelongError) else error
            log.error("affected decisions could not be counted: %s", error, exc_info=unexpected)  # noqa: TRY400
            return frozenset(), None
        self._counted_revision = registry.revision
        self._next_at = now + (COUNT_AGAIN if again_in is None else timedelta(0))
        figures = self._store.swaps.figures([cycle.id for cycle in counted])
        for cycle in counted:
            if cycle.id in figures and cycle.model_id in registry.models:
                text = format_affected(figures[cycle.id], cycle)
                log.info("%s in %s: %s", registry.models[cycle.model_id].reference, cycle.environment, text)
        return frozenset((cycle.model_id, cycle.environment) for cycle in counted), again_in

    def _count(self, now: datetime) -> tuple[list[Cycle], float | None]:
        """Count the due swaps, as far as the time of a tick allows; as `update` returns it, by cycle."""
        until = time.monotonic() + COUNTING_SECONDS
        uncounted = self._store.swaps.uncounted()
        known = {swap.cycle_id for swap in uncounted}
        self._scans = {cycle: scan for cycle, scan in self._scans.items() if cycle in known}
        counted: list[Cycle] = []
        waits: list[float] = []
        for swap in uncounted:
            wait = (_due_at(swap) - now).total_seconds()
            if wait > 0:
                # The final count of a period can wait for the next tick.
                waits += [] if swap.is_counted else [wait]
                continue
            cycle = self._advance(swap, now, until)
            if cycle is None:
                return counted, RESUME_SECONDS
            counted.append(cycle)
        return counted, min(waits, default=None)

    def _advance(self, swap: UncountedSwap, now: datetime, until: float) -> Cycle | None:
        """Go on counting one swap; None: it takes more time than this tick has."""
        cycle = self._store.cycles.get(swap.cycle_id)
        try:
            if cycle.id not in self._scans:
                self._scans[cycle.id] = self._store.affected.scan(self._store.affected.period(cycle))
            figures = self._next_figures(cycle.id, until)
        except LifelongError as error:
            if isinstance(error, RetryableError) and not isinstance(error, DamagedHeadError):
                # A generator that raised has ended.
                self._scans.pop(cycle.id, None)
                raise
            # Another try would fail, too.
            log.error("the decisions that cycle %s affects cannot be counted: %s", cycle.id, error)  # noqa: TRY400
            self._store.swaps.record(cycle.id, None, is_final=True)
            return cycle
        if figures is None:
            return None
        del self._scans[cycle.id]
        self._store.swaps.record(cycle.id, figures, is_final=now >= swap.activated_at + LATE + SETTLING)
        return cycle

    def _next_figures(self, cycle_id: UUID, until: float) -> AffectedFigures | None:
        """Read block after block; None: this tick has no more time."""
        for figures in self._scans[cycle_id]:
            if figures is not None:
                return figures
            if time.monotonic() > until or self._stopping():
                break
        return None


def _due_at(swap: UncountedSwap) -> datetime:
    return swap.activated_at + SETTLING + (LATE if swap.is_counted else timedelta(0))
