"""Compares estimated and realised performance of a population, and stores the comparison for service and people."""

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.performance import (
    ComparedPeriod,
    HeadSwap,
    LabelCheck,
    MetricAtClassMix,
    PopulationPerformance,
    RealisedRuleMetric,
)
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store import LabelledPredictions, Store, logged_at
from lifelong_core.store.cycles.watching import LabelState, NewestCycle
from lifelong_core.store.engine.clock import midnight
from lifelong_core.store.heads.rows import DamagedHeadError
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import NotFoundError, UnavailableError
from lifelong_monitor.cycle.context import list_head_services
from lifelong_monitor.cycle.reports import readable_report_of
from lifelong_monitor.realised.answered_predictions import check_calibration, check_selection
from lifelong_monitor.realised.class_mixes import compute_class_mixes
from lifelong_monitor.realised.periods import Evidence, compare_days, compare_heads
from lifelong_monitor.realised.rule_metric import realised_rule_metric

log = logging.getLogger(__name__)

DAYS = 30
"""Days that a comparison covers, up to the newest cycle or label."""
MOST_PERIODS = 90
"""Largest number of days times head versions; of more, the newest."""
MOST_COMPARED = 20_000
"""Largest number of predictions that labelled ones are compared with."""
_DAY = timedelta(days=1)


class PerformanceComparer:
    """Computes and stores comparisons.

    Args:
        store: with estimates of cycles, labels and heads.
        settings: number of labels, confidence, assumed share of wrong labels.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def digest_inputs(
        self,
        task: Task,
        environment: str,
        labels: LabelState | None,
        cycle: NewestCycle | None,
        recommendation: int | None = None,
    ) -> str | None:
        """Digest of what the comparison of a population depends on; None: there is neither a label nor a cycle.

        `recommendation` is the version in force; None: the task has none.
        """
        if labels is None and cycle is None:
            return None
        parts = {
            "labels": None if labels is None else [labels.count, labels.newest.isoformat()],
            "cycle": None if cycle is None else str(cycle.id),
            "limit": self._settings.validation_samples,
            "confidence": self._confidence(environment),
            "label_errors": [
                self._settings.label_error_rate,
                self._settings.task_label_error_rates.get(task.name, {}),
            ],
            "costs": task.costs.tolist(),
            "recommendation": recommendation,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def compare(
        self, task: Task, model: Model, environment: str, *, inputs: str, now: datetime
    ) -> PopulationPerformance | None:
        """Return the comparison of a population, computed unless the stored one has the same inputs.

        Returns:
            None where no cycle has estimated the performance and no prediction has a label.
        """
        try:
            stored = self._store.performance.get(model.id, environment)
        except UnavailableError:  # damaged: it is computed again
            stored = None
        if stored is not None and stored.inputs == inputs:
            return stored
        computed = self._compute(task, model, environment, inputs, now)
        if computed.days or stored is not None:
            self._store.performance.store(model.id, environment, computed)
        return computed if computed.days else None

    def _compute(
        self, task: Task, model: Model, environment: str, inputs: str, now: datetime
    ) -> PopulationPerformance:
        store, classes = self._store, len(task.class_names)
        labelled = store.labels.newest_labelled(
            model.id, environment, limit=self._settings.validation_samples, classes=classes
        )

        @cache
        def head_of(version: int) -> PostProcessingHead:
            return store.heads.get(model.reference, version).head

        def costs_of(version: int) -> Floats:
            try:
                return head_of(version).costs
            except (NotFoundError, DamagedHeadError):
                return task.costs

        last = store.cycles.last(model.id, environment)
        newest = _newest(labelled, last, now)
        since = midnight(newest.astimezone(UTC).date()) - (DAYS - 1) * _DAY
        labelled = _logged_since(labelled, since)
        estimates = store.performance.daily_estimates(model.id, environment, since=since)
        evidence = Evidence(
            estimates, labelled, costs_of, error_rates_of(self._settings, task), self._confidence(environment)
        )
        days = compare_days(evidence)[-MOST_PERIODS:]
        # Earlier heads and class mixes say nothing of the present one.
        present = _of_newest_head(labelled)
        drift = check_calibration(present, head_of, classes=classes)
        if isinstance(drift, LabelCheck):
            for k, name in enumerate(task.class_names):
                drift = replace(drift, text=drift.text.replace(f"class {k} is", f"{name!r} is"))
        selection = self._check_selection(model, environment, present, classes)
        return PopulationPerformance(
            computed_at=now,
            confidence=evidence.confidence,
            inputs=inputs,
            heads=compare_heads(evidence, days),
            days=days,
            swaps=self._swaps(model, environment, days),
            calibration_drift=drift if isinstance(drift, LabelCheck) else None,
            selection=selection if isinstance(selection, LabelCheck) else None,
            left_out=tuple(text for text in (drift, selection) if isinstance(text, str)),
            class_mixes=self._class_mixes(task, labelled, last),
            rule_metric=_rule_metric(present, head_of, evidence),
        )

    def _class_mixes(
        self, task: Task, labelled: LabelledPredictions, last: Cycle | None
    ) -> tuple[MetricAtClassMix, ...]:
        attached = self._store.recommendations.current(task.name)
        if attached is None or not labelled.ids:
            return ()
        report = None if last is None else readable_report_of(last)
        estimate = None if report is None else report.prevalence
        try:
            return compute_class_mixes(attached, labelled, estimate, task.class_names)
        except UnavailableError as error:
            # The other figures do not depend on it.
            log.warning("%s: no expected cost at other prevalences: %s", attached.name, error)
            return ()

    def _check_selection(
        self, model: Model, environment: str, labelled: LabelledPredictions, classes: int
    ) -> LabelCheck | str | None:
        if not labelled.ids:
            return None
        window = self._store.predictions.window(
            model.id,
            environment,
            limit=MOST_COMPARED,
            since=logged_at(labelled.ids[0]),
            until=midnight(logged_at(labelled.ids[-1]).date()) + _DAY,
            classes=classes,
        )
        return check_selection(labelled, window)

    def _swaps(
        self, model: Model, environment: str, days: tuple[ComparedPeriod, ...]
    ) -> tuple[HeadSwap, ...]:
        """The changes of the head within the days; the first head of all replaced none."""
        if not days:
            return ()
        own = self._store.heads.activations(model.reference, environment=environment)
        services = list_head_services(own, self._store.heads.activations(model.reference))
        return tuple(
            HeadSwap(service.since, service.head_version)
            for service in services[1:]
            if days[0].since <= service.since < days[-1].until
        )

    def _confidence(self, environment: str) -> float:
        return self._settings.policy_for(environment).confidence


def _rule_metric(
    present: LabelledPredictions, head_of: Callable[[int], PostProcessingHead], evidence: Evidence
) -> RealisedRuleMetric | None:
    """The metric of the rule of the head that decided the newest labelled prediction."""
    if not present.ids:
        return None
    version = int(present.head_versions[-1])
    try:
        head = head_of(version)
    except (NotFoundError, DamagedHeadError):
        return None
    return realised_rule_metric(
        present, head, version, error_rates=evidence.error_rates, confidence=evidence.confidence
    )


def error_rates_of(settings: Settings, task: Task) -> Floats | None:
    """Assumed largest share of wrong labels of each class, shape (C,); None: every label is right.

    Raises:
        ConfigurationError: the setting names a class that the task lacks.
    """
    rates = np.array(list(settings.label_error_rates(task.name, task.class_names).values()))
    return rates if rates.any() else None


def _newest(labelled: LabelledPredictions, cycle: Cycle | None, now: datetime) -> datetime:
    """Time of the newest label's prediction or cycle; not the present, so that an idle population keeps its days."""
    times: list[datetime] = [logged_at(labelled.ids[-1])] if labelled.ids else []
    if cycle is not None:
        times.append(cycle.due_at)
    return max(times, default=now)


def _logged_since(labelled: LabelledPredictions, since: datetime) -> LabelledPredictions:
    """Leave out earlier predictions; they are in order of time."""
    times = np.array([logged_at(one).timestamp() for one in labelled.ids])
    return labelled.select(np.flatnonzero(times >= since.timestamp()))


def _of_newest_head(labelled: LabelledPredictions) -> LabelledPredictions:
    """The predictions that the head of the newest labelled prediction decided."""
    versions = labelled.head_versions
    return labelled.select(np.flatnonzero(versions == versions[-1:]))
