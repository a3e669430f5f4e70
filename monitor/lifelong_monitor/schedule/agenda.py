"""Which populations a tick visits, and for which cycle."""

from collections.abc import Collection, Iterable
from datetime import datetime

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.cycles.records import Cycle
from lifelong_core.store.cycles.watching import NewestCycle, Population
from lifelong_monitor.cycle.cycle import CycleResult
from lifelong_monitor.schedule.new_predictions import UnjudgedPredictions
from lifelong_monitor.schedule.occasion import Occasion


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
        """Take in which populations are watched and their newest cycles; return those with a cycle that is new here."""
        changed = self._unjudged.note_cycles(newest, watched)
        for population in self._last_due.keys() - watched:
            del self._last_due[population]
        for populations in (self._unfinished, self._ready):
            populations.intersection_update(watched)
        self._note_ready(watched)
        return changed

    def note_cycle(self, cycle: Cycle) -> None:
        """Take in when the newest cycle of a population was due."""
        self._last_due[cycle.model_id, cycle.environment] = cycle.due_at

    def note_last(self, population: Population, last: Cycle | None) -> bool:
        """Take in the newest cycle of a population, and return whether it is new here."""
        is_new = self._unjudged.note_cycle(population, last)
        self._note_ready([population])
        return is_new

    def note_result(self, population: Population, occasion: Occasion, result: CycleResult) -> bool:
        """Take in the result of a visit, and return whether its newest cycle is new here."""
        is_judged = self.note_last(population, result.last)
        self._unfinished.discard(population)
        if result.again_in is not None:
            self._unfinished.add(population)
        elif not is_judged and (occasion.is_early or result.succeeded_at is None):
            self._waiting.add(population)
        return is_judged

    def note_failure(self, population: Population) -> None:
        """Take in that a visit failed."""
        self._waiting.add(population)

    def plan_round(
        self, watched: Collection[Population], due_at: datetime
    ) -> tuple[dict[Population, Occasion], list[Population]]:
        """Return the populations with work to do at a round, each with its cycle, and those without work.

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
            and population not in self._waiting
        ]
        self._waiting.clear()
        due = dict.fromkeys(watched, clock)
        for population in idle:
            del due[population]
        return due, idle

    def plan_look(
        self, watched: Collection[Population], now: datetime, due_at: datetime
    ) -> dict[Population, Occasion]:
        """Return the populations whose last visit left work, and those with enough news for an early cycle."""
        due = dict.fromkeys(sorted(self._unfinished), Occasion.by_the_clock(self._settings, due_at))
        ready = self._ready.intersection(watched) - self._waiting - self._unfinished
        for population in sorted(ready):
            early = Occasion.early(self._settings, population[1], now)
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
