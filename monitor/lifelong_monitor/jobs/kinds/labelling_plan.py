"""The kind `labelling_plan`: chooses which predictions of the newest window to label next."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy.performance.labelled.planning import LabellingChoice, choose_labels
from lifelong_core.entities.labelling import (
    LARGEST_WINDOW,
    LabellingPayload,
    LabellingPlan,
    LabellingSample,
    NewPlan,
)
from lifelong_core.store import Job, Store, logged_at
from lifelong_core.store.log.records import Window
from lifelong_core.values.errors import ConflictError
from lifelong_monitor.cycle.subject import FittedQuantifiers, Subject, load_subject
from lifelong_monitor.realised.judged_window import CONFIDENCE, JudgedWindow, judge_window


def work(store: Store, job: Job) -> dict[str, Any]:
    """Make the plan with the settings of the monitor; see `make_plan`."""
    return make_plan(store, Settings.load(), job)


def make_plan(store: Store, settings: Settings, job: Job) -> dict[str, Any]:
    """Choose predictions and store them with their probabilities; the plan has the id of its job.

    A restarted job whose plan is stored returns that plan.

    Returns:
        `plan`: its id; `size`: number of chosen predictions; `window_samples`: predictions among which it chose;
        `labelled_before`: number of these predictions that had a label.

    Raises:
        NotFoundError: there is no such model or environment.
        ConflictError: the population has no head, or the model no calibration set.
        InvalidInputError: the window is empty, or each of its predictions has a label.
    """
    plan = store.labelling_plans.find(job.id) or _add_plan(store, settings, job)
    return {
        "plan": str(plan.id),
        "size": plan.size,
        "window_samples": plan.window_samples,
        "labelled_before": plan.labelled_before,
    }


def _add_plan(store: Store, settings: Settings, job: Job) -> LabellingPlan:
    asked = LabellingPayload.from_document(job.payload)
    model = store.models.get(asked.model)
    environment = store.environments.get(asked.environment).name
    subject = load_subject(store, model, environment, store.registry)
    if isinstance(subject, str):
        raise ConflictError(f"{subject}.", field="model")
    limit = min(asked.window_samples or settings.window_samples, LARGEST_WINDOW)
    age = timedelta(seconds=asked.window_seconds or settings.window_seconds)
    window = store.predictions.window(
        model.id, environment, limit=limit, since=datetime.now(UTC) - age, classes=subject.classes
    )
    fitted = FittedQuantifiers().get(store, model, subject.calibration_set_id, settings.quantifier)
    judged = judge_window(window, fitted, subject.head.head)
    known = store.labelling_plans.labelled(model.id, environment, first=window.ids[0], last=window.ids[-1])
    labelled = np.array([one in known for one in window.ids], dtype=np.bool_)
    choice = choose_labels(
        judged.posteriors,
        judged.decisions,
        judged.costs,
        asked.size,
        labelled=labelled,
        confidence=CONFIDENCE,
        rng=np.random.default_rng(job.id.int),
    )
    plan = _plan(job, subject, environment, window, limit, _widths(judged, choice))
    return store.labelling_plans.add(plan, _samples(judged, choice, labelled), actor=job.created_by)


def _plan(
    job: Job, subject: Subject, environment: str, window: Window, limit: int, widths: dict[str, float | None]
) -> NewPlan:
    return NewPlan(
        id=job.id,
        model_id=subject.model.id,
        environment=environment,
        head_version=subject.head.version,
        since=logged_at(window.ids[0]),
        until=logged_at(window.ids[-1]),
        window_limit=limit,
        log_position=window.log_position,
        window_samples=len(window.ids),
        expected_widths=widths,
    )


def _widths(judged: JudgedWindow, choice: LabellingChoice) -> dict[str, float | None]:
    """Expected widths of the interval on expected cost; None: undefined."""
    cost = judged.label_free.estimates["EC"]
    widths = {
        "planned": choice.expected_width,
        "random": choice.random_width,
        "label_free": cost.high - cost.low,
    }
    return {
        "confidence": CONFIDENCE,
        **{name: width if math.isfinite(width) else None for name, width in widths.items()},
    }


def _samples(judged: JudgedWindow, choice: LabellingChoice, labelled: np.ndarray) -> list[LabellingSample]:
    """The chosen predictions in their order, then the predictions that had a label."""
    costs = (judged.posteriors * judged.costs.T[judged.decisions]).sum(axis=1)
    chosen = [(int(row), position) for position, row in enumerate(choice.chosen)]
    before = [(int(row), None) for row in np.flatnonzero(labelled)]
    return [
        LabellingSample(
            prediction_id=judged.ids[row],
            position=position,
            propensity=float(choice.propensities[row]),
            decision=int(judged.decisions[row]),
            expected_cost=float(costs[row]),
        )
        for row, position in (*chosen, *before)
    ]
