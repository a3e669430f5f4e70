"""One tick: the cycles that are due, each population on its own, then what the exporter shows.

A *round* is the first tick after each multiple of the interval. It lists the populations with predictions, and asks
the database about all of them at once; it visits only those with work to do. The ticks between two rounds, the
*looks*, ask how many predictions are new, and visit the populations with enough of them.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue
from uuid import UUID

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import AdaptationReport
from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.registry import Model, Registry
from lifelong_core.store import Job, Store, Visit
from lifelong_core.store.cycles.watching import Population
from lifelong_core.store.engine.statements import batched
from lifelong_core.values.errors import LifelongError
from lifelong_monitor.cycle.cycle import NO_NEWS, CycleResult, run_cycle
from lifelong_monitor.cycle.due_times import DueCycle
from lifelong_monitor.cycle.reports import Inputs, inputs_of, report_of
from lifelong_monitor.cycle.subject import FittedQuantifiers
from lifelong_monitor.cycle.text import CycleLog
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.exporter.population_metrics import PopulationMetrics
from lifelong_monitor.proposals.proposer import RetrainingProposer
from lifelong_monitor.realised.affected_decisions import SwapCounter
from lifelong_monitor.realised.labelling_plan import LabellingEstimates
from lifelong_monitor.schedule.agenda import Agenda
from lifelong_monitor.schedule.housekeeping import Housekeeping
from lifelong_monitor.schedule.tick_state import RegistryReader, Visits

log = logging.getLogger(__name__)

FOLD_SECONDS = 20.0
"""Longest time that one tick spends on window summaries, beside one step for each population; the next tick goes on at
once. About 50,000 rows are folded in a second."""
CYCLES_AT_ONCE = 100
"""Recorded cycles that are in memory at once; their reports are long."""
LABELS_SECONDS = 60.0
"""Shortest time from one computation of the realised performance to the next, between two rounds; it is at least
LABELS_SHARE times as long as the computation took."""
LABELS_SHARE = 10.0
SHOW_SECONDS = 1.0
"""Longest time between two updates of the exporter while cycles run."""


class Ticker:
    """Runs the cycles of all populations; holds the state between ticks.

    Args:
        store: open.
        settings: of this monitor.
        exporter: shows the populations.
        stopping: asked between two steps; True ends the tick early.
    """

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
        self._registry = RegistryReader(store)
        self._fold_until = 0.0
        self._again_in: float | None = None
        self._labels_at = 0.0
        """when the labels are looked at again, on the monotonic clock"""
        self._round_of: datetime | None = None
        self._watched: dict[Population, Model] = {}
        self._first_seen: dict[Population, datetime] = {}
        self._agenda = Agenda(store, settings)
        self._display = PopulationMetrics(store, settings, exporter)
        self._visits = Visits()
        self._cycle_log = CycleLog()
        self._swap_counter = SwapCounter(store, stopping=stopping)
        self._labelling = LabellingEstimates(store, settings)
        self._proposer = RetrainingProposer(store, settings, exporter.proposals)
        self._housekeeping = Housekeeping(store, settings, stopping=stopping)
        self._requested: SimpleQueue[UUID] = SimpleQueue()
        """jobs of this monitor that ran a cycle, or skipped it"""

    def tick(self, now: datetime, due_at: datetime) -> float | None:
        """Run the cycles that are due.

        Args:
            now: the present time.
            due_at: the latest multiple of the interval. The first tick of each is a round.

        Returns:
            Seconds after which to tick again to finish the work that is left; None: no work is left.

        Raises:
            UnavailableError: the database does not answer.
        """
        self._fold_until = time.monotonic() + FOLD_SECONDS
        self._again_in = None
        is_round = self.is_round(due_at)
        with_news = self._agenda.read_news()
        # After the news: the first prediction of an environment creates it.
        registry = self._registry.refresh()
        if is_round:
            self._begin_round(registry, now)
            due, idle = self._agenda.plan_round(self._watched, due_at)
            self._note_idle(idle)
        else:
            self._admit(with_news - self._watched.keys(), registry, now)
            due = self._agenda.plan_look(self._watched, now, due_at)
        self._note_requested_cycles()
        self._run(due)
        if self._stopping():
            return None
        if is_round or time.monotonic() >= self._labels_at:
            self._follow_labels(now)
        if is_round:
            self._round_of = due_at
        self._display.refresh(self._registry.registry)
        self._proposer.show(is_round=is_round)
        # Before anything is deleted.
        self._count_affected(now)
        self._ask_again(self._housekeeping.delete_expired(now.date(), is_round=is_round))
        if is_round:
            self._exporter.show_knowledge(self._store.knowledge.state())
            self._housekeeping.advance_anchor()
        if not self._requested.empty():
            self._ask_again(SHOW_SECONDS)
        return self._again_in

    def note_job(self, job: Job) -> bool:
        """Note a job of this monitor that has succeeded, from any thread.

        Returns:
            Whether the next tick has a cycle to show.
        """
        if job.kind != "cycle":
            return False
        self._requested.put(job.id)
        return True

    def is_round(self, due_at: datetime) -> bool:
        """Whether the next tick looks at every population."""
        return due_at != self._round_of

    @property
    def visits(self) -> tuple[Visit, ...]:
        """The newest visit of each population that has predictions; the same object while there is no newer one."""
        return self._visits.list()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _begin_round(self, registry: Registry, now: datetime) -> None:
        """List the populations, and take in what other monitors and operators have done."""
        self._housekeeping.warn_of_clocks()
        self._housekeeping.ensure_partitions(now.date())
        monitors = self._store.monitors.list(visits=False)
        self._housekeeping.warn_of_settings(registry.environments, monitors)
        self._watch_populations(registry, now)
        self._restore_newest_cycles()
        self._display.note_modes(monitors)
        self._display.refresh(registry)

    def _watch_populations(self, registry: Registry, now: datetime) -> None:
        populations = self._store.predictions.populations(now - self._settings.window_age)
        self._watched = {
            (model_id, environment): registry.models[model_id]
            for model_id, environment in sorted(populations)
            if model_id in registry.models
        }
        self._display.keep(self._watched)
        self._visits.keep(self._watched)
        for population in self._watched:
            self._add(population, registry, now)

    def _restore_newest_cycles(self) -> None:
        """Show the newest recorded cycles, so that a restart does not blank the dashboard."""
        newest = self._store.watching.newest_cycles()
        changed = self._agenda.keep(self._watched, newest)
        cycle_ids = [(population, newest[population].id) for population in sorted(changed)]
        for batch in batched(cycle_ids, CYCLES_AT_ONCE):
            try:
                cycles = self._store.cycles.get_all([cycle_id for _, cycle_id in batch])
            except (LifelongError, LookupError, TypeError, ValueError):  # one of them is damaged
                for population, cycle_id in batch:
                    self._run_isolated(population, partial(self._restore, cycle_id))
            else:
                for cycle in cycles:
                    self._note_restored(cycle)

    def _restore(self, cycle_id: UUID) -> None:
        self._note_restored(self._store.cycles.get(cycle_id))

    def _note_restored(self, cycle: Cycle) -> None:
        self._note_cycle(cycle)
        self._note_success((cycle.model_id, cycle.environment), cycle.finished_at)

    def _note_requested_cycles(self) -> None:
        while not self._requested.empty():
            for cycle in self._store.cycles.get_all([self._requested.get()]):
                population = cycle.model_id, cycle.environment
                if population in self._watched:
                    self._run_isolated(population, partial(self._note_requested_cycle, cycle))

    def _note_requested_cycle(self, cycle: Cycle) -> None:
        population = cycle.model_id, cycle.environment
        model, environment = self._watched[population], cycle.environment
        result = CycleResult.of_recorded(cycle, report_of(cycle), inputs_of(cycle))
        self._agenda.note_last(population, cycle)
        self._note_cycle(cycle, result.report, result.inputs)
        self._exporter.count_cycle(model.reference, environment, result.outcome)
        self._note_result(population, result)

    def _note_result(self, population: Population, result: CycleResult) -> None:
        """Show and log the result of a visit."""
        model, environment = self._watched[population], population[1]
        self._note_success(population, result.succeeded_at)
        self._visits.note(population, result.outcome, result.reason)
        class_names = self._registry.registry.tasks[model.task_id].class_names
        self._cycle_log.log_result(model, environment, result, class_names)
        if result.report is not None and result.last is not None:
            self._proposer.consider(model, result.last, self._registry.registry)

    def _admit(self, populations: Collection[Population], registry: Registry, now: datetime) -> None:
        """Watch populations whose first predictions have come since the round."""
        for population in sorted(populations):
            model_id, environment = population
            if model_id in registry.models and environment in registry.environments:
                self._watched[population] = registry.models[model_id]
                self._add(population, registry, now)
                last = self._store.cycles.last(*population)
                self._agenda.note_last(population, last)
                if last is not None:
                    self._note_restored(last)

    def _add(self, population: Population, registry: Registry, now: datetime) -> None:
        first_seen = self._first_seen.setdefault(population, now)
        self._display.add(self._watched[population], population[1], registry, first_seen)

    def _note_idle(self, populations: Collection[Population]) -> None:
        """Record a success for populations without news: they are watched, too."""
        at = datetime.now(UTC)
        for population in populations:
            model, environment = self._watched[population], population[1]
            self._exporter.count_cycle(model.reference, environment, "skip")
            self._note_success(population, at)
            self._visits.note(population, "skip", NO_NEWS)
            self._cycle_log.log_skip(model, environment, NO_NEWS)

    def _run(self, due: Mapping[Population, DueCycle]) -> None:
        shown_at = time.monotonic()
        for population, due_cycle in due.items():
            if self._stopping():
                return
            self._run_isolated(population, partial(self._visit, population, due_cycle))
            if time.monotonic() - shown_at > SHOW_SECONDS:
                self._display.refresh(self._registry.registry)
                shown_at = time.monotonic()

    def _visit(self, population: Population, due_cycle: DueCycle) -> None:
        model, environment = self._watched[population], population[1]
        started = time.perf_counter()
        result = run_cycle(
            self._store,
            self._settings,
            model,
            environment,
            due_cycle.due_at,
            quantifiers=self._quantifiers,
            due_cycle=due_cycle,
            read_registry=self._registry.refresh,
            stopping=self._stopping,
            may_fold=self._may_fold,
        )
        self._ask_again(result.again_in)
        if result.outcome != "skip":
            self._exporter.observe_duration(time.perf_counter() - started)
        if result.outcome == "swap":
            self._registry.refresh()
        self._exporter.count_cycle(model.reference, environment, result.outcome)
        if self._agenda.note_result(population, due_cycle, result) and result.last is not None:
            self._note_cycle(result.last, result.report, result.inputs)
        self._note_result(population, result)

    def _run_isolated(self, population: Population, step: Callable[[], object]) -> None:
        """Run a step of one population; its failure is logged and counted, and does not stop the others."""
        try:
            step()
        except Exception as error:  # whatever is wrong with one population, the others go on
            model, environment = self._watched[population], population[1]
            unexpected = None if isinstance(error, LifelongError) else error
            log.error("%s in %s: error. %s", model.reference, environment, error, exc_info=unexpected)  # noqa: TRY400
            self._exporter.count_cycle(model.reference, environment, "error")
            self._visits.note(population, "error", str(error) or type(error).__name__)
            self._agenda.note_failure(population)

    def _follow_labels(self, now: datetime) -> None:
        """Compute the realised performance of the populations with new labels, and compare estimates with it."""
        started = time.monotonic()
        self._compute_realised()
        self._compare_performance(now)
        ended = time.monotonic()
        self._labels_at = ended + max(LABELS_SECONDS, LABELS_SHARE * (ended - started))

    def _compute_realised(self) -> None:
        registry = self._registry.registry
        for model, environment, rests_on in self._display.find_stale_realised(registry):
            if self._stopping():
                return
            compute = partial(self._display.compute_realised, model, environment, registry, rests_on)
            self._run_isolated((model.id, environment), compute)
            task = registry.tasks[model.task_id]
            follow_plan = partial(self._labelling.update, task, model, environment)
            self._run_isolated((model.id, environment), follow_plan)

    def _compare_performance(self, now: datetime) -> None:
        registry = self._registry.registry
        for model, environment, inputs in self._display.find_stale_comparisons(registry):
            if self._stopping():
                return
            compare = partial(self._display.compare_performance, model, environment, registry, now, inputs)
            self._run_isolated((model.id, environment), compare)

    def _count_affected(self, now: datetime) -> None:
        """Count the decisions that swaps affect, and show the new figures."""
        registry = self._registry.registry
        populations, again_in = self._swap_counter.update(now, registry)
        self._ask_again(again_in)
        for population in populations & self._watched.keys():
            self._display.note_affected(population)
        self._display.refresh(registry)

    def _ask_again(self, seconds: float | None) -> None:
        """Let the next tick come after so many seconds, or earlier if it was asked for already."""
        if seconds is not None:
            self._again_in = min(seconds, self._again_in or seconds)

    def _may_fold(self) -> bool:
        return time.monotonic() < self._fold_until and not self._stopping()

    def _note_cycle(
        self, cycle: Cycle, report: AdaptationReport | None = None, inputs: Inputs | None = None
    ) -> None:
        self._agenda.note_cycle(cycle)
        self._display.note_cycle(cycle, report, inputs)

    def _note_success(self, population: Population, at: datetime | None) -> None:
        if self._visits.note_success(population, at):
            self._display.note_success(population, at)
