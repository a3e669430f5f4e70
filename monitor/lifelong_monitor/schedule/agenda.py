"""Which populations a tick visits, and for which cycle."""

from collections.abc import Collection, Iterable
from datetime import datetime

from lifelong_core.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.cycles.records import Cycle
from lifelong_core.store.cycles.watching import NewestCycle, Population
from lifelong_monitor.cycle.cycle import CycleResult
from lifelong_monitor.schedule.new_predictions import UnjudgedPredictions
from lifelong_monitor.schedule.trigger import Occasion


class Agenda:
    """Knows what is new in each population, when its newest cycle was due, and what came of the last visit."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._unjudged = UnjudgedPredictions(store)
        self._last_due: dict[Population, datetime] = {}
        """for when the newest cycle was due"""
        self._unfinished: set[Population] = set()
        """whose last visit has left work"""
        self._in_vain: set[Population] = set()
        """whose last visit failed or could judge nothing: the clock brings the next one"""
        self._ready: set[Population] = set()
        """with enough new predictions for an early cycle"""

    def read_news(self) -> frozenset[Population]:
        """Count what has appeared in the log since the last call; the populations with news."""
        news = self._unjudged.read()
        self._note_ready(news)
        return news

    def keep(
        self, watched: Collection[Population], newest: dict[Population, NewestCycle]
    ) -> frozenset[Population]:
        """Take in which populations are watched and their newest cycles; those whose newest cycle was not known."""
        changed = self._unjudged.note_cycles(newest, watched)
        for population in self._last_due.keys() - watched:
            del self._last_due[population]
        for some in (self._unfinished, self._ready):
            some.intersection_update(watched)
        self._note_ready(watched)
        return changed

    def note_cycle(self, cycle: Cycle) -> None:
        """Take in the newest cycle of a population."""
        self._last_due[cycle.model_id, cycle.environment] = cycle.due_at

    def note_last(self, population: Population, last: Cycle | None) -> bool:
        """Take in the newest cycle of a population that was looked up; says whether it was not known."""
        is_new = self._unjudged.note_cycle(population, last)
        self._note_ready([population])
        return is_new

    def note_result(self, population: Population, occasion: Occasion, result: CycleResult) -> bool:
        """Take in what came of a visit; says whether there is a newer cycle than was known."""
        is_judged = self.note_last(population, result.last)
        self._unfinished.discard(population)
        if result.again_in is not None:
            self._unfinished.add(population)
        elif not is_judged and (occasion.is_early or result.succeeded_at is None):
            self._in_vain.add(population)
        return is_judged

    def note_failure(self, population: Population) -> None:
        """Take in that a visit failed."""
        self._in_vain.add(population)

    def by_the_clock(
        self, watched: Collection[Population], due_at: datetime
    ) -> tuple[dict[Population, Occasion], list[Population]]:
        """Divide the populations into those with work to do at a round, and those without.

        Raises:
            UnavailableError: the database does not answer.
        """
        clock = Occasion.by_the_clock(self._settings, due_at)
        summarised, held_back = self._store.watching.summarised(), self._store.watching.held_back()
        idle = [
            population
            for population in watched
            if self._unjudged.is_all_judged(population)
            and population in summarised
            and population not in held_back
            and population not in self._unfinished
            and population not in self._in_vain
        ]
        self._in_vain.clear()
        due = dict.fromkeys(watched, clock)
        for population in idle:
            del due[population]
        return due, idle

    def between(
        self, watched: Collection[Population], now: datetime, due_at: datetime
    ) -> dict[Population, Occasion]:
        """Of the populations those whose last visit has left work, and those with enough news for an early cycle."""
        due = dict.fromkeys(sorted(self._unfinished), Occasion.by_the_clock(self._settings, due_at))
        ready = self._ready.intersection(watched) - self._in_vain - self._unfinished
        for population in sorted(ready):
            early = Occasion.early(self._settings, population[1], now)
            last_due = self._last_due.get(population)
            if early is not None and (last_due is None or not early.has_run(last_due)):
                due[population] = early
        return due

    def _note_ready(self, populations: Iterable[Population]) -> None:
        for population in populations:
            needed = self._settings.new_samples_for(population[1])
            if needed is not None and self._unjudged.count(population) >= needed:
                self._ready.add(population)
            else:
                self._ready.discard(population)
