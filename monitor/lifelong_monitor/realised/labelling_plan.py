"""Performance of a plan's window with the labels that have arrived: difference estimate, labels alone, without labels.

The labels of a plan arrive in any order and some never do. Those that have arrived are a valid sample of the plan where
they are a random part of it, as when people label in the order of the file; the notes say so until all are there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Self
from uuid import UUID

import numpy as np

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import FittedQuantifier
from lifelong_core.deploy.performance.labelled.difference import combined_with, difference_estimate
from lifelong_core.deploy.performance.labelled.weighted import weighted_estimate
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.entities.labelling import LabellingPlan, SampledPrediction
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store import Store
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Integers
from lifelong_monitor.cycle.subject import FittedQuantifiers
from lifelong_monitor.realised.judged_window import CONFIDENCE, METRICS, JudgedWindow, judge_window

FEWEST_LABELS = 2
"""Labels of chosen predictions from which on there is an estimate."""
FEW_LABELS = 20
"""Labels of chosen predictions below which simulated intervals of 95 % covered as little as 91 %."""
KEPT_WINDOWS = 4
"""Judged windows that are kept between labels."""


class LabellingEstimates:
    """Estimates performance in the window of the newest plan of each population, when labels of it have arrived."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._quantifiers = FittedQuantifiers()
        self._windows: dict[object, JudgedWindow] = {}

    def update(self, task: Task, model: Model, environment: str) -> Mapping[str, Any] | None:
        """Estimate again, unless no label of the newest plan has changed, and store the estimate with the plan.

        Returns:
            The new estimate, as stored; None: nothing has changed, or there are too few labels.

        Raises:
            UnavailableError: the database or the artifacts do not answer.
        """
        plans = self._store.labelling_plans
        plan = plans.newest(model.id, environment)
        if plan is None or model.calibration_set_id is None:
            return None
        chosen = plans.chosen(plan.id)
        arrived = [one for one in chosen if one.label is not None]
        if len(arrived) < FEWEST_LABELS or not _has_news(plan, arrived):
            return None
        judged = self._judge(plan, model, model.calibration_set_id, classes=len(task.class_names))
        if judged is None:
            return None
        sample = LabelledSample.of(judged.rows, arrived, plans.labelled_before(plan.id), chosen=len(chosen))
        if sample.rows.size < FEWEST_LABELS:
            return None
        rates = self._settings.label_error_rates(task.name, task.class_names)
        estimate = estimate_plan(judged, sample, error_rates=np.array(list(rates.values())))
        plans.note_estimate(plan.id, estimate)
        return estimate

    def _judge(
        self, plan: LabellingPlan, model: Model, calibration_set_id: int, *, classes: int
    ) -> JudgedWindow | None:
        """The plan's window, as far as it is in the log; None: it cannot be judged any more."""
        window = self._store.predictions.window(
            plan.model_id,
            plan.environment,
            limit=plan.window_limit,
            since=plan.since,
            log_position=plan.log_position,
            classes=classes,
        )
        key = plan.id, calibration_set_id, len(window.ids)
        kept = self._windows.pop(key, None)
        if kept is None:
            fitted = self._quantifiers.get(self._store, model, calibration_set_id, self._settings.quantifier)
            if not isinstance(fitted, FittedQuantifier) or not window.ids:
                return None
            head = self._store.heads.get(model.reference, plan.head_version).head
            kept = judge_window(window, fitted, head)
        # The oldest ones come first.
        self._windows[key] = kept
        while len(self._windows) > KEPT_WINDOWS:
            del self._windows[next(iter(self._windows))]
        return kept


@dataclass(frozen=True, eq=False)
class LabelledSample(ArrayValue):
    """Labelled predictions of a window, with the probabilities of having a label."""

    rows: Integers
    """shape (m,), indices in the window"""
    labels: Integers
    """shape (m,)"""
    propensities: Floats
    """shape (m,), in (0, 1]"""
    arrived: int
    """labels of chosen predictions"""
    chosen: int
    """chosen predictions that are still in the log"""

    @classmethod
    def of(
        cls,
        rows: Mapping[UUID, int],
        arrived: Sequence[SampledPrediction],
        before: Sequence[SampledPrediction],
        *,
        chosen: int,
    ) -> Self:
        """Select the labels that can be used.

        Of `chosen` predictions those that `arrived` count as a random part, which makes each propensity smaller by this
        factor.

        Args:
            rows: index of each prediction of the window.
            arrived: chosen predictions with a label.
            before: predictions that had a label before the plan was made.
            chosen: number of chosen predictions.
        """
        factor = len(arrived) / chosen
        used = [(one, one.propensity * factor) for one in arrived] + [(one, 1.0) for one in before]
        found = [(one, share) for one, share in used if one.label is not None and one.prediction_id in rows]
        return cls(
            rows=np.array([rows[one.prediction_id] for one, _ in found], dtype=np.int64),
            labels=np.array([one.label for one, _ in found], dtype=np.int64),
            propensities=np.array([share for _, share in found], dtype=np.float64),
            arrived=len(arrived),
            chosen=chosen,
        )


def estimate_plan(judged: JudgedWindow, sample: LabelledSample, *, error_rates: Floats) -> dict[str, Any]:
    """Estimate performance in a window by three methods, as JSON values.

    Args:
        judged: the window.
        sample: at least two labelled predictions of it.
        error_rates: shape (C,), assumed largest share of wrong labels of each class.

    Returns:
        See `PlanEstimate`.
    """
    difference = difference_estimate(
        judged.posteriors,
        judged.decisions,
        sample.rows,
        sample.labels,
        sample.propensities,
        costs=judged.costs,
        metrics=METRICS,
        groups=judged.groups,
        confidence=CONFIDENCE,
    )
    estimate = combined_with(
        difference,
        judged.label_free.estimates,
        assumption_rejected=judged.is_assumption_rejected,
        confidence=CONFIDENCE,
    )
    alone = weighted_estimate(
        judged.decisions[sample.rows],
        sample.labels,
        classes=judged.posteriors.shape[1],
        costs=judged.costs,
        metrics=METRICS,
        propensities=sample.propensities,
        groups=None if judged.groups is None else judged.groups[sample.rows],
        error_rates=error_rates if error_rates.any() else None,
        confidence=CONFIDENCE,
    )
    return {
        "method": estimate.method,
        "labels": sample.arrived,
        "confidence": CONFIDENCE,
        "labelled": _documents(estimate.estimates),
        "labels_alone": _documents(alone.estimates),
        "label_free": _documents(judged.label_free.estimates),
        "notes": [
            *_notes(sample, error_rates),
            *estimate.cautions,
            *(warning.text for warning in judged.label_free.warnings),
        ],
    }


def _has_news(plan: LabellingPlan, arrived: Sequence[SampledPrediction]) -> bool:
    """Whether labels have arrived or were corrected since the newest estimate."""
    if plan.estimate is None or plan.estimated_at is None:
        return True
    newest = max(one.labelled_at for one in arrived if one.labelled_at is not None)
    return plan.estimate["labels"] != len(arrived) or newest >= plan.estimated_at


def _notes(sample: LabelledSample, error_rates: Floats) -> Iterator[str]:
    if sample.arrived < sample.chosen:
        yield (
            f"{sample.arrived} of {sample.chosen} labels have arrived. The estimates hold if these are a random part of"
            " the plan, as when predictions are labelled in the order of the file."
        )
    if sample.arrived < FEW_LABELS:
        yield f"With fewer than {FEW_LABELS} labels the intervals may be too narrow."
    if error_rates.any():
        yield "Only the interval of the labels alone includes the assumed share of wrong labels."


def _documents(estimates: Mapping[str, EstimatedMetric]) -> dict[str, dict[str, float | None]]:
    return {
        name: {key: number if isfinite(number) else None for key, number in three._asdict().items()}
        for name, three in estimates.items()
    }
