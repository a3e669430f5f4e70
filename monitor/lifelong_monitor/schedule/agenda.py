"""Decides which populations a tick visits, and for which cycle; counts the predictions that no cycle has judged."""

from collections.abc import Collection, Iterable
from datetime import datetime
from uuid import UUID

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.cycles import Cycle
from lifelong_core.store import Store
from lifelong_core.store.cycles.watching import NewestCycle, Population
from lifelong_monitor.cycle.cycle import CycleResult
from lifelong_monitor.cycle.due_times import DueCycle


class Agenda:
    """Keeps the news of each population, when its newest cycle was due, and how its last visit ended."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._unjudged = UnjudgedPredictions(store)
        self._last_due: dict[Population, datetime] = {}
        """time for which the newest cycle was due"""
        self._unfinished: set[Population] = set()
        """whose last visit left work"""
        self._waiting: set[Population] = set()
        """whose last visit failed or could judge nothing: they wait for the next round"""
        self._ready: set[Population] = set()
        """with enough new predictions for an early cycle"""

    def read_news(self) -> frozenset[Population]:
        """Count the predictions that were logged since the last call, and return the populations that have some."""
        news = self._unjudged.read()
        self._note_ready(news)
        return news

    def keep(
        self, watched: Collection[Population], newest: dict[Population, NewestCycle]
    ) -> frozenset[Population]:
        """Note the watched populations and their newest cycles; return the populations whose cycle is new here."""
        changed = self._unjudged.note_cycles(newest, watched)
        for population in self._last_due.keys() - watched:
            del self._last_due[population]
        for populations in (self._unfinished, self._ready):
            populations.intersection_update(watched)
        self._note_ready(watched)
        return changed

    def note_cycle(self, cycle: Cycle) -> None:
        """Note when the newest cycle of a population was due."""
        self._last_due[cycle.model_id, cycle.environment] = cycle.due_at

    def note_last(self, population: Population, last: Cycle | None) -> bool:
        """Note the newest cycle of a population, and return whether it is new here."""
        is_new = self._unjudged.note_cycle(population, last)
        self._note_ready([population])
        return is_new

    def note_result(self, population: Population, due_cycle: DueCycle, result: CycleResult) -> bool:
        """Note the result of a visit, and return whether its newest cycle is new here."""
        is_judged = self.note_last(population, result.last)
        self._unfinished.discard(population)
        if result.again_in is not None:
            self._unfinished.add(population)
        elif not is_judged and (due_cycle.is_early or result.succeeded_at is None):
            self._waiting.add(population)
        return is_judged

    def note_failure(self, population: Population) -> None:
        """Note that a visit failed."""
        self._waiting.add(population)

    def plan_round(
        self, watched: Collection[Population], due_at: datetime
    ) -> tuple[dict[Population, DueCycle], list[Population]]:
        """Return the populations with work to do at a round, each with its cycle, and those without work.

        Raises:
            UnavailableError: the database does not answer.
        """
        clock = DueCycle.by_the_clock(self._settings, due_at)
        summarised, held_back = self._store.watching.summarised(), self._store.watching.held_back()
        idle = [
            population
            for population in watched
            if self._unjudged.is_all_judged(population)
            and population in summarised
            and population not in held_back
            and population not in self._unfinished
            and population not in self._waiting
        ]
        self._waiting.clear()
        due = dict.fromkeys(watched, clock)
        for population in idle:
            del due[population]
        return due, idle

    def plan_look(
        self, watched: Collection[Population], now: datetime, due_at: datetime
    ) -> dict[Population, DueCycle]:
        """Return the populations whose last visit left work, and those with enough news for an early cycle."""
        due = dict.fromkeys(sorted(self._unfinished), DueCycle.by_the_clock(self._settings, due_at))
        ready = self._ready.intersection(watched) - self._waiting - self._unfinished
        for population in sorted(ready):
            early = DueCycle.early(self._settings, population[1], now)
            last_due = self._last_due.get(population)
            if early is not None and (last_due is None or not early.has_run(last_due, now)):
                due[population] = early
        return due

    def _note_ready(self, populations: Iterable[Population]) -> None:
        for population in populations:
            needed = self._settings.new_samples_for(population[1])
            if needed is not None and self._unjudged.count(population) >= needed:
                self._ready.add(population)
            else:
                self._ready.discard(population)


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
        """Count the predictions since the last call; `note_cycles` counts the predictions before the first call.

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
        """Note the cycles that this process or another monitor has recorded.

        Args:
            newest: the newest cycle of each population that has one.
            populations: the watched ones; the others are forgotten.

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
        """Note the newest cycle of a population, and return whether it is new here."""
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
