"""Statuses of the populations for the exporter; only a status that may have changed is computed again.

A status depends on the newest cycle, the head that serves, its pin and the role of the model (these three change with
the registry's revision), the mode, the labels, and the recommendation of the task. `PopulationMetrics` gets cycles and
the registry at every tick, and reads the rest once in a round.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from lifelong_core.configuration.settings import Settings
from lifelong_core.decision_rules.rules import needs_cut_off
from lifelong_core.deploy import AdaptationContext, AdaptationReport, PostProcessingHead
from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.registry import Model, Registry
from lifelong_core.store import Store
from lifelong_core.store.cycles.swaps import AffectedFigures
from lifelong_core.store.cycles.watching import HeadChange, Population
from lifelong_core.store.registry.heartbeats import MonitorProcess, strictest_mode
from lifelong_monitor.cycle.reports import Inputs, inputs_of, readable_report_of
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.exporter.status import PopulationStatus, ServingHead
from lifelong_monitor.realised.comparison import PerformanceComparer, error_rates_of
from lifelong_monitor.realised.performance import RealisedPerformances
from lifelong_monitor.realised.records import RealisedPerformance

log = logging.getLogger(__name__)


class PopulationMetrics:
    """Keeps the status of every watched population and shows each status that has changed."""

    def __init__(self, store: Store, settings: Settings, exporter: Exporter) -> None:
        self._store = store
        self._settings = settings
        self._exporter = exporter
        self._realised = RealisedPerformances(store)
        self._comparer = PerformanceComparer(store, settings)
        self._models: dict[Population, Model] = {}
        self._statuses: dict[Population, PopulationStatus] = {}
        self._newest: dict[Population, tuple[Cycle, AdaptationReport | None, Inputs | None]] = {}
        """newest cycle, its report and its inputs, as in `PopulationStatus`"""
        self._proposing: set[Population] = set()
        """whose newest cycle proposed a head"""
        self._judged: set[Population] = set()
        """whose newest cycle is not shown yet"""
        self._counted: set[Population] = set()
        """for whose newest swap the affected decisions were counted"""
        self._changed: set[Population] = set()
        """whose status is not shown yet"""
        self._revision: int | None = None
        """of the registry that is shown"""
        self._rests_on: dict[Population, object] = {}
        """state of labels and recommendation behind the realised performance"""
        self._compared: dict[Population, str] = {}
        """digest of the inputs of the comparison that is shown"""
        self._said: dict[tuple[Population, str], tuple[str, ...]] = {}

    def keep(self, populations: Iterable[Population]) -> None:
        """Forget every population that is not among these."""
        kept = frozenset(populations)
        for known in (self._models, self._statuses, self._newest, self._rests_on, self._compared):
            for population in [one for one in known if one not in kept]:
                del known[population]
        for some in (self._proposing, self._judged, self._counted, self._changed):
            some &= kept
        self._exporter.forget_all_but(
            (status.model, status.environment) for status in self._statuses.values()
        )

    def add(self, model: Model, environment: str, registry: Registry, first_seen: datetime) -> None:
        """Show a population from now on; nothing happens if it is shown already."""
        population = model.id, environment
        self._models[population] = model
        if population not in self._statuses:
            task, role = registry.tasks[model.task_id], registry.role(model.id)
            self._statuses[population] = PopulationStatus(
                model.reference, environment, task.name, task.class_names, role, first_seen
            )
            self._judged.add(population)

    def note_cycle(
        self, cycle: Cycle, report: AdaptationReport | None = None, inputs: Inputs | None = None
    ) -> None:
        """Note the newest cycle of a population, with its report and inputs where this process judged it."""
        population = cycle.model_id, cycle.environment
        report = report or readable_report_of(cycle)
        if report is not None:
            inputs = inputs or inputs_of(cycle)
            report = replace(report, context=AdaptationContext())
        self._newest[population] = replace(cycle, report={}), report, inputs
        self._judged.add(population)
        if cycle.proposal is None:
            self._proposing.discard(population)
        else:
            self._proposing.add(population)

    def note_affected(self, population: Population) -> None:
        """Note that the affected decisions of the newest swap of a population were counted."""
        self._counted.add(population)
        self._judged.add(population)

    def note_success(self, population: Population, at: datetime | None) -> None:
        """Note when a population was last known to be watched."""
        self._set(population, replace(self._statuses[population], last_success=at))

    def note_modes(self, monitors: Sequence[MonitorProcess]) -> None:
        """Note the modes of all monitors."""
        modes = {
            environment: strictest_mode(monitors, environment, self._settings.policy_for(environment).mode)
            for environment in {environment for _, environment in self._statuses}
        }
        for population, status in self._statuses.items():
            if status.mode != modes[population[1]]:
                self._set(population, replace(status, mode=modes[population[1]]))

    def refresh(self, registry: Registry) -> None:
        """Show everything that has changed since the last call.

        Raises:
            UnavailableError: the database does not answer.
        """
        is_changed = registry.revision != self._revision
        judged = list(self._statuses) if is_changed else list(self._judged)
        if judged:
            self._renew(judged, registry)
        self._judged.clear()
        self._revision = registry.revision
        if self._changed:
            self._exporter.show(*(self._statuses[one] for one in self._changed))
            self._changed.clear()

    def find_stale_realised(self, registry: Registry) -> Iterator[tuple[Model, str, object]]:
        """Yield the populations whose realised performance may have changed, with the present state of its inputs."""
        labels, recommendations = self._store.watching.labels(), self._store.watching.recommendations()
        for population, model in list(self._models.items()):
            task = registry.tasks[model.task_id]
            rests_on = labels.get(population), recommendations.get(task.id)
            status = self._statuses[population]
            # A head that is damaged now may be brought back.
            is_certain = status.realised is None or not status.realised.recommended.unscored
            if self._rests_on.get(population, (None, None)) != rests_on or not is_certain:
                yield model, population[1], rests_on

    def compute_realised(self, model: Model, environment: str, registry: Registry, rests_on: object) -> None:
        """Compute the realised performance of a population again."""
        population, task = (model.id, environment), registry.tasks[model.task_id]
        realised = self._realised.compute(
            task,
            model,
            environment,
            limit=self._settings.validation_samples,
            confidence=self._settings.policy_for(environment).confidence,
            error_rates=error_rates_of(self._settings, task),
        )
        self._rests_on[population] = rests_on
        self._set(population, replace(self._statuses[population], realised=realised))
        self._log_left_out(model, environment, realised)

    def find_stale_comparisons(self, registry: Registry) -> Iterator[tuple[Model, str, str]]:
        """Yield the populations whose comparison may have changed, with the digest of its inputs."""
        watching = self._store.watching
        labels, cycles, recommended = watching.labels(), watching.newest_cycles(), watching.recommendations()
        for population, model in list(self._models.items()):
            inputs = self._comparer.digest_inputs(
                registry.tasks[model.task_id],
                population[1],
                labels.get(population),
                cycles.get(population),
                recommended.get(model.task_id),
            )
            if inputs is not None and self._compared.get(population) != inputs:
                yield model, population[1], inputs

    def compare_performance(
        self, model: Model, environment: str, registry: Registry, now: datetime, inputs: str
    ) -> None:
        """Compare estimated and realised performance of a population again."""
        population, task = (model.id, environment), registry.tasks[model.task_id]
        performance = self._comparer.compare(task, model, environment, inputs=inputs, now=now)
        self._compared[population] = inputs
        self._set(population, replace(self._statuses[population], performance=performance))

    def _renew(self, populations: Sequence[Population], registry: Registry) -> None:
        """Compute the statuses again from the newest cycles and the registry."""
        changes, swaps = self._store.watching.head_changes(), self._store.swaps.newest()
        for population in populations:
            status, model = self._statuses[population], self._models[population]
            environment = status.environment
            head = _serving_head(registry, changes, population)
            is_proposed = population in self._proposing and bool(self._store.cycles.proposals(*population))
            cycle, report, inputs = self._newest.get(population, (None, None, None))
            renewed = replace(
                status,
                role=registry.role(model.id),
                head=head,
                affected=self._affected(population, head, is_own=population in registry.heads),
                pinned=registry.pin_for(model, environment) is not None,
                proposed=is_proposed,
                last_swap=swaps.get(population),
                cycle=cycle,
                report=report,
                inputs=inputs,
            )
            self._set(population, renewed)

    def _affected(
        self, population: Population, head: ServingHead | None, *, is_own: bool
    ) -> AffectedFigures | None:
        """Return the affected decisions of the swap that published the head; None for a default head."""
        status = self._statuses[population]
        if head is None or not is_own:
            return None
        is_same = status.head is not None and status.head.activated_at == head.activated_at
        if is_same and population not in self._counted:
            return status.affected
        self._counted.discard(population)
        return self._store.swaps.of_activation(population[0], head.version, head.activated_at)

    def _set(self, population: Population, status: PopulationStatus) -> None:
        self._statuses[population] = status
        self._changed.add(population)

    def _log_left_out(self, model: Model, environment: str, realised: RealisedPerformance | None) -> None:
        """Log once which recommended metrics are not computed, and which labelled predictions are left out."""
        metrics = () if realised is None else realised.recommended.left_out
        said = [f"{metric.label}: {metric.reason}" for metric in metrics]
        self._say_once(model, environment, "recommended metrics that are not watched", said, said)
        predictions = () if realised is None else realised.left_out
        self._say_once(
            model,
            environment,
            "labelled predictions that are left out",
            [f"{some.samples} {some.reason}" for some in predictions],
            [some.reason for some in predictions],
        )

    def _say_once(
        self, model: Model, environment: str, topic: str, said: Sequence[str], reasons: Sequence[str]
    ) -> None:
        """Log sentences if their reasons have changed."""
        key = (model.id, environment), topic
        if tuple(reasons) != self._said.get(key, ()):
            log.info("%s in %s: %s: %s", model.reference, environment, topic, "; ".join(said) or "none")
        self._said[key] = tuple(reasons)


def _serving_head(
    registry: Registry, changes: dict[tuple[int, str | None], HeadChange], population: Population
) -> ServingHead | None:
    model_id, environment = population
    own = registry.heads.get((model_id, environment))
    record = own or registry.heads.get((model_id, None))
    if record is None:
        return None
    # An environment may have come back to the default head: the later of the two changes counts.
    places = ((model_id, environment), *(() if own else ((model_id, None),)))
    activated_at = max(changes[place].at for place in places if place in changes)
    head = record.head
    return ServingHead(
        record.version,
        activated_at,
        head.assumed_prevalence,
        head.digest,
        _rule_class(head),
    )


def _rule_class(head: PostProcessingHead) -> str:
    rule = head.decision_rule
    return head.class_names[rule.positive_class] if needs_cut_off(rule) and rule.metric != "MCC" else ""
