"""One tick: the cycles that are due, by the clock or because much is new, each on its own, and what the exporter shows.

A *round* is the first tick after each multiple of the interval. It looks at every population with predictions, and
asks the database about all of them at once; only those with work to do are visited one by one. The ticks between two
rounds ask how many predictions are new, and visit the populations with enough of them.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from uuid import UUID

from lifelong_core.errors import LifelongError, UnavailableError
from lifelong_core.settings import Settings
from lifelong_core.store import Store, Visit
from lifelong_core.store.access.audit_anchor import AnchorFile
from lifelong_core.store.cycles.records import Cycle
from lifelong_core.store.cycles.watching import Population
from lifelong_core.store.engine.statements import batched
from lifelong_core.store.log.identifiers import EPOCH
from lifelong_core.store.registry.monitors import MonitorProcess, describe_disagreements
from lifelong_core.store.registry.records import Model, Registry
from lifelong_monitor.cycle.cycle import NO_NEWS, CycleResult, run_cycle
from lifelong_monitor.cycle.quantifiers import FittedQuantifiers
from lifelong_monitor.cycle.text import format_affected, format_cycle
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.exporter.population_metrics import PopulationMetrics
from lifelong_monitor.realised.affected_decisions import SwapCounter
from lifelong_monitor.schedule.agenda import Agenda
from lifelong_monitor.schedule.trigger import Occasion
from lifelong_monitor.schedule.visits import Visits

log = logging.getLogger(__name__)

FOLD_SECONDS = 20.0
"""A tick spends no more on summaries than this, and one step for each population; the rest comes right after it. Some
50,000 rows are folded in a second."""

RETENTION_SECONDS = 20.0
"""A round spends no more on deleting what is too old than this."""
RETENTION_AGAIN_SECONDS = 5.0
COUNT_AGAIN = timedelta(minutes=1)
"""How often it is asked whether the period of a swap is over."""
CYCLES_AT_ONCE = 100
"""Recorded cycles that are in memory at once; their reports are long."""
SHOW_SECONDS = 1.0
"""How long the result of a cycle may wait for those of others before it is shown."""


class Ticker:
    """Runs the cycles of all populations; remembers what must survive from one tick to the next."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        exporter: Exporter,
        *,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._settings = settings
        self._exporter = exporter
        self._stopping = stopping
        self._quantifiers = FittedQuantifiers()
        self._registry: Registry | None = None
        self._partitioned_on: date | None = None
        self._fold_until = 0.0
        self._again_in: float | None = None
        self._round_of: datetime | None = None
        self._may_be_expired = True
        self._watched: dict[Population, Model] = {}
        self._agenda = Agenda(store, settings)
        self._display = PopulationMetrics(store, settings, exporter)
        self._first_seen: dict[Population, datetime] = {}
        self._visits = Visits()
        self._skip_reasons: dict[Population, str] = {}
        self._unknown_environments: list[str] = []
        self._disagreements: list[str] = []
        self._swap_counter = SwapCounter(store, stopping=stopping)
        self._counted_revision: int | None = None
        """of the registry when affected decisions were counted last"""
        self._count_at = EPOCH
        self._anchor = AnchorFile(settings.audit_anchor_file)
        self._anchor_problem: str | None = None

    def tick(self, now: datetime, due_at: datetime) -> float | None:
        """Run the cycles that are due.

        Args:
            now: the present time.
            due_at: the latest multiple of the interval. The first tick of each is a round.

        Returns:
            Seconds after which work that was left should be gone on with; None: none was left.

        Raises:
            UnavailableError: the database does not answer.
        """
        self._fold_until = time.monotonic() + FOLD_SECONDS
        self._again_in = None
        is_round = self.is_round(due_at)
        with_news = self._agenda.read_news()
        if is_round:
            self._begin_round(now)
            due, idle = self._agenda.by_the_clock(self._watched, due_at)
            self._note_idle(idle)
        else:
            self._admit(with_news - self._watched.keys(), now)
            due = self._agenda.between(self._watched, now, due_at)
        self._run(due)
        if self._stopping():
            return None
        if is_round:
            self._compute_realised()
            self._round_of, self._may_be_expired = due_at, True
        registry = self._current_registry()
        self._display.refresh(registry)
        # A swap raises the revision; before anything is deleted.
        if registry.revision != self._counted_revision or now >= self._count_at:
            self._count_affected(now, registry)
        if self._may_be_expired:
            self._delete_expired(now.date())
        if is_round:
            self._advance_anchor()
        return self._again_in

    def is_round(self, due_at: datetime) -> bool:
        """Whether the next tick looks at every population."""
        return due_at != self._round_of

    @property
    def visits(self) -> tuple[Visit, ...]:
        """The newest visit of each population that has predictions; the same object while none has come."""
        return self._visits.listed()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _begin_round(self, now: datetime) -> None:
        """Look at all populations at once: which there are, what other monitors and people have done."""
        self._ensure_partitions(now.date())
        self._warn_of_unknown_environments()
        monitors = self._store.monitors.list(visits=False)
        self._warn_of_disagreements(monitors)
        registry = self._current_registry()
        found = self._store.predictions.populations(now - self._settings.window_age)
        self._watched = {
            (model_id, environment): registry.models[model_id]
            for model_id, environment in sorted(found)
            if model_id in registry.models
        }
        self._display.keep(self._watched)
        self._visits.keep(self._watched)
        for population in self._watched:
            self._add(population, registry, now)
        newest = self._store.watching.newest_cycles()
        changed = self._agenda.keep(self._watched, newest)
        self._restore({population: newest[population].id for population in sorted(changed)})
        self._display.note_modes(monitors)
        self._display.refresh(registry)

    def _admit(self, populations: Collection[Population], now: datetime) -> None:
        """Watch populations whose first predictions have come since the round."""
        if not populations:
            return
        registry = self._current_registry()
        for population in sorted(populations):
            model_id, environment = population
            if model_id in registry.models and environment in registry.environments:
                self._watched[population] = registry.models[model_id]
                self._add(population, registry, now)
                last = self._store.cycles.last(*population)
                self._agenda.note_last(population, last)
                self._restore({} if last is None else {population: last.id})

    def _add(self, population: Population, registry: Registry, now: datetime) -> None:
        first_seen = self._first_seen.setdefault(population, now)
        self._display.add(self._watched[population], population[1], registry, first_seen)

    def _restore(self, cycle_ids: Mapping[Population, UUID]) -> None:
        """Show what recorded cycles have found, so that a restart does not blank the dashboard."""
        for some in batched(list(cycle_ids.items()), CYCLES_AT_ONCE):
            try:
                cycles = self._store.cycles.get_all([cycle_id for _, cycle_id in some])
            except (LifelongError, LookupError, TypeError, ValueError):  # one of them is damaged
                for population, cycle_id in some:
                    self._isolated(population, partial(self._restore_one, cycle_id))
            else:
                for cycle in cycles:
                    self._note_restored(cycle)

    def _restore_one(self, cycle_id: UUID) -> None:
        self._note_restored(self._store.cycles.get(cycle_id))

    def _note_restored(self, cycle: Cycle) -> None:
        self._note_cycle(cycle)
        self._note_success((cycle.model_id, cycle.environment), cycle.finished_at)

    def _note_idle(self, populations: Collection[Population]) -> None:
        """Populations without news are watched, too."""
        at = datetime.now(UTC)
        for population in populations:
            model, environment = self._watched[population], population[1]
            self._exporter.count_cycle(model.reference, environment, "skip")
            self._note_success(population, at)
            self._visits.note(population, "skip", NO_NEWS)
            self._log_skip(population, NO_NEWS)

    def _run(self, due: Mapping[Population, Occasion]) -> None:
        shown_at = time.monotonic()
        for population, occasion in due.items():
            if self._stopping():
                return
            self._isolated(population, partial(self._visit, population, occasion))
            if time.monotonic() - shown_at > SHOW_SECONDS:
                self._display.refresh(self._current_registry())
                shown_at = time.monotonic()

    def _compute_realised(self) -> None:
        registry = self._current_registry()
        for model, environment, rests_on in self._display.stale_realised(registry):
            if self._stopping():
                return
            compute = partial(self._display.compute_realised, model, environment, registry, rests_on)
            self._isolated((model.id, environment), compute)

    def _ensure_partitions(self, today: date) -> None:
        """The log of a PostgreSQL server needs a partition for every day; this process is always there to ask."""
        if self._partitioned_on == today:
            return
        try:
            self._store.predictions.ensure_partitions(today)
        except UnavailableError as error:
            # They are made a week ahead, so there is time; and nothing is lost without them.
            log.warning(
                "the partitions of the log could not be made, trying again at the next tick: %s", error
            )
        else:
            self._partitioned_on = today

    def _warn_of_unknown_environments(self) -> None:
        """Say once which environments the settings name that do not exist: the names may be misspelt."""
        unknown = self._settings.unknown_environments(self._store.environments.list())
        for sentence in unknown:
            if sentence not in self._unknown_environments:
                log.warning("%s", sentence)
        self._unknown_environments = unknown

    def _warn_of_disagreements(self, monitors: Sequence[MonitorProcess]) -> None:
        """Say once which monitors watch with different settings."""
        disagreements = describe_disagreements(monitors)
        for sentence in disagreements:
            if sentence not in self._disagreements:
                log.warning(
                    "%s The strictest mode of them holds. Give all monitors the same settings.", sentence
                )
        self._disagreements = disagreements

    def _count_affected(self, now: datetime, registry: Registry) -> None:
        """Count the decisions that swaps affect, and show the figures that are new."""
        try:
            counted, again_in = self._swap_counter.count(now)
        except Exception as error:  # a tick is for its cycles
            unexpected = None if isinstance(error, LifelongError) else error
            log.error("affected decisions could not be counted: %s", error, exc_info=unexpected)  # noqa: TRY400
            return
        self._counted_revision = registry.revision
        self._count_at = now + (COUNT_AGAIN if again_in is None else timedelta(0))
        if again_in is not None:
            self._again_in = min(again_in, self._again_in or again_in)
        figures = self._store.swaps.figures([cycle.id for cycle in counted])
        for cycle in counted:
            population = cycle.model_id, cycle.environment
            if cycle.id in figures and cycle.model_id in registry.models:
                said = format_affected(figures[cycle.id], cycle)
                log.info("%s in %s: %s", registry.models[cycle.model_id].reference, cycle.environment, said)
            if population in self._watched:
                self._display.note_affected(population)
        self._display.refresh(registry)

    def _delete_expired(self, today: date) -> None:
        """Delete what the settings say is old enough; what there is no time for goes right after this tick."""
        try:
            outcome = self._store.retention.delete_expired(
                self._settings.retention_for, today, pause=self._pause, seconds=RETENTION_SECONDS
            )
            jobs = self._store.jobs.delete_expired(self._settings.retention_days, today)
            self._store.console_sessions.delete_expired()
        except Exception as error:  # a tick is for its cycles
            unexpected = None if isinstance(error, LifelongError) else error
            log.error("what is too old could not be deleted: %s", error, exc_info=unexpected)  # noqa: TRY400
            return
        if outcome.predictions or outcome.labels or outcome.requests:
            log.info(
                "deleted as too old: %d predictions (%d days as a whole), %d labels, %d request ids",
                outcome.predictions,
                len(outcome.partitions),
                outcome.labels,
                outcome.requests,
            )
        if jobs:
            log.info("deleted as too old: %d jobs", jobs)
        self._may_be_expired = not outcome.is_done
        if self._may_be_expired:
            self._again_in = min(RETENTION_AGAIN_SECONDS, self._again_in or RETENTION_AGAIN_SECONDS)

    def _advance_anchor(self) -> None:
        """Keep the newest entry of the audit log outside the database; says once if the log is not what it was."""
        problem: str | None = None
        try:
            self._anchor.advance(self._store.audit)
        except LifelongError as error:
            problem = str(error)
            if problem != self._anchor_problem:
                log.error("the audit log cannot be anchored: %s", problem)  # noqa: TRY400 - the message says it all
        self._anchor_problem = problem

    def _pause(self, seconds: float) -> bool:
        time.sleep(seconds)
        return self._stopping()

    def _may_fold(self) -> bool:
        return time.monotonic() < self._fold_until and not self._stopping()

    def _isolated(self, population: Population, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # whatever is wrong with one population, the others go on
            model, environment = self._watched[population], population[1]
            unexpected = None if isinstance(error, LifelongError) else error
            log.error("%s in %s: error. %s", model.reference, environment, error, exc_info=unexpected)  # noqa: TRY400
            self._exporter.count_cycle(model.reference, environment, "error")
            self._visits.note(population, "error", str(error) or type(error).__name__)
            self._agenda.note_failure(population)

    def _visit(self, population: Population, occasion: Occasion) -> None:
        model, environment = self._watched[population], population[1]
        started = time.perf_counter()
        result = run_cycle(
            self._store,
            self._settings,
            model,
            environment,
            occasion.due_at,
            quantifiers=self._quantifiers,
            occasion=occasion,
            read_registry=self._current_registry,
            stopping=self._stopping,
            may_fold=self._may_fold,
        )
        if result.again_in is not None:
            self._again_in = min(result.again_in, self._again_in or result.again_in)
        if result.outcome != "skip":
            self._exporter.observe_duration(time.perf_counter() - started)
        self._exporter.count_cycle(model.reference, environment, result.outcome)
        if self._agenda.note_result(population, occasion, result) and result.last is not None:
            self._note_cycle(result.last)
        self._note_success(population, result.succeeded_at)
        self._visits.note(population, result.outcome, result.reason)
        self._log(population, result)

    def _note_cycle(self, cycle: Cycle) -> None:
        self._agenda.note_cycle(cycle)
        self._display.note_cycle(cycle)

    def _note_success(self, population: Population, at: datetime | None) -> None:
        if self._visits.note_success(population, at):
            self._display.note_success(population, at)

    def _log(self, population: Population, result: CycleResult) -> None:
        if result.outcome == "skip":
            self._log_skip(population, result.reason)
            return
        model = self._watched[population]
        class_names = self._current_registry().tasks[model.task_id].class_names
        log.info("%s in %s: %s", model.reference, population[1], format_cycle(result, class_names))
        self._skip_reasons.pop(population, None)

    def _log_skip(self, population: Population, reason: str) -> None:
        """A reason that stays is said once, not at every tick."""
        if self._skip_reasons.get(population) != reason:
            log.info("%s in %s: skip. %s", self._watched[population].reference, population[1], reason)
        self._skip_reasons[population] = reason

    def _current_registry(self) -> Registry:
        known = None if self._registry is None else self._registry.revision
        self._registry = self._store.registry(known) or self._registry
        if self._registry is None:
            raise UnavailableError("the database has no registry.")
        return self._registry
