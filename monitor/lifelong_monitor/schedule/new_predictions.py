"""Number of predictions of each population that no cycle has judged, updated by one query for all populations."""

from collections.abc import Collection
from uuid import UUID

from lifelong_core.store import Store
from lifelong_core.store.cycles.records import Cycle
from lifelong_core.store.cycles.watching import NewestCycle, Population


class UnjudgedPredictions:
    """Counts the predictions that came since the newest cycle of each population.

    The count may be too large by what a cycle read after the last look; it is never too small.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._log_position: int | None = None
        self._counts: dict[Population, int] = {}
        self._cycles: dict[Population, UUID] = {}

    def read(self) -> frozenset[Population]:
        """Count the predictions since the last call; `note_cycles` counts those before the first call.

        Returns:
            The populations with news.

        Raises:
            UnavailableError: the database does not answer.
        """
        if self._log_position is None:
            self._log_position = self._store.predictions.log_position()
            return frozenset()
        news = self._store.watching.news(self._log_position)
        self._log_position = news.log_position
        for population, count in news.counts.items():
            self._counts[population] = self._counts.get(population, 0) + count
        return frozenset(news.counts)

    def note_cycles(
        self, newest: dict[Population, NewestCycle], populations: Collection[Population]
    ) -> frozenset[Population]:
        """Take in the cycles that this process or another monitor has recorded.

        Args:
            newest: the newest cycle of each population that has one.
            populations: those that are watched; the others are forgotten.

        Returns:
            The populations whose newest cycle is new here.

        Raises:
            UnavailableError: the database does not answer.
        """
        watched = frozenset(populations)
        self._counts = {one: count for one, count in self._counts.items() if one in watched}
        self._cycles = {one: cycle for one, cycle in self._cycles.items() if one in watched}
        changed = frozenset(
            one for one in watched if one in newest and newest[one].id != self._cycles.get(one)
        )
        if changed:
            oldest = min(newest[one].log_position for one in changed)
            counts = self._store.watching.count_unjudged(oldest, self._log_position or 0)
            for one in changed:
                self._cycles[one] = newest[one].id
                self._counts[one] = counts.get(one, 0)
        return changed

    def note_cycle(self, population: Population, last: Cycle | None) -> bool:
        """Take in the newest cycle of a population, and return whether it is new here."""
        if last is None or self._cycles.get(population) == last.id:
            return False
        self._cycles[population] = last.id
        is_all = self._log_position is None or last.log_position >= self._log_position
        self._counts[population] = (
            0
            if is_all
            else self._store.predictions.count_between(
                *population, last.log_position, self._log_position or 0
            )
        )
        return True

    def is_all_judged(self, population: Population) -> bool:
        """Whether a cycle has judged all that is known of the population."""
        return population in self._cycles and not self._counts.get(population)

    def count(self, population: Population) -> int:
        """Predictions that no cycle has judged; of a population without cycles, those since the first `read`."""
        return self._counts.get(population, 0)
