"""Counts, after each swap, the decisions before it that the new head would make otherwise."""

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from uuid import UUID

from lifelong_core.errors import LifelongError, RetryableError
from lifelong_core.store import Cycle, Store
from lifelong_core.store.cycles.affected_periods import LATE
from lifelong_core.store.cycles.swaps import AffectedFigures, UncountedSwap
from lifelong_core.store.heads.damaged_heads import DamagedHeadError

log = logging.getLogger(__name__)

SETTLING = timedelta(seconds=5)
"""After this time all workers have swapped, and what they answered before is committed."""
COUNTING_SECONDS = 5.0
"""A tick spends no more on counting than this, and one block of the log; the rest comes right after it."""
RESUME_SECONDS = 1.0


class SwapCounter:
    """Counts a few seconds after each swap, so that people can act, and again when its period is over.

    What a process was counting when it died, the next one counts anew. Two monitors may count the same swap; they find
    the same.

    Args:
        store: with the swaps and the log.
        stopping: asked between two blocks of the log.
    """

    def __init__(self, store: Store, *, stopping: Callable[[], bool] = lambda: False) -> None:
        self._store = store
        self._stopping = stopping
        self._begun: dict[UUID, Iterator[AffectedFigures | None]] = {}

    def count(self, now: datetime) -> tuple[list[Cycle], float | None]:
        """Count what is due, as far as the time of a tick allows.

        Returns:
            The cycles whose figures are new; and the seconds after which to go on, None: with the next tick.

        Raises:
            UnavailableError: the database does not answer.
        """
        until = time.monotonic() + COUNTING_SECONDS
        uncounted = self._store.swaps.uncounted()
        known = {swap.cycle_id for swap in uncounted}
        self._begun = {cycle: pages for cycle, pages in self._begun.items() if cycle in known}
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
            if cycle.id not in self._begun:
                self._begun[cycle.id] = self._store.affected.scan(self._store.affected.period(cycle))
            figures = self._next_figures(cycle.id, until)
        except LifelongError as error:
            if isinstance(error, RetryableError) and not isinstance(error, DamagedHeadError):
                # A generator that raised has ended.
                self._begun.pop(cycle.id, None)
                raise
            # Another try would fail, too.
            log.error("the decisions that cycle %s affects cannot be counted: %s", cycle.id, error)  # noqa: TRY400
            self._store.swaps.record(cycle.id, None, is_final=True)
            return cycle
        if figures is None:
            return None
        del self._begun[cycle.id]
        self._store.swaps.record(cycle.id, figures, is_final=now >= swap.activated_at + LATE + SETTLING)
        return cycle

    def _next_figures(self, cycle_id: UUID, until: float) -> AffectedFigures | None:
        """Read block after block; None: this tick has no more time."""
        for figures in self._begun[cycle_id]:
            if figures is not None:
                return figures
            if time.monotonic() > until or self._stopping():
                break
        return None


def _due_at(swap: UncountedSwap) -> datetime:
    return swap.activated_at + SETTLING + (LATE if swap.is_counted else timedelta(0))
