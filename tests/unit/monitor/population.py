"""A classifier with known behaviour: Gaussian logits around one centre per class, so the true prevalence is known."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.decision_rules.rules import DecisionRule
from lifelong_core.deploy import LabeledLogits
from lifelong_core.store import (
    LogEntry,
    Model,
    NewLabel,
    Prediction,
    Store,
    new_prediction_id,
    register_calibration,
)
from lifelong_monitor.cycle.due_times import due_before
from tests import databases

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
DUE = due_before(datetime.now(UTC), MINUTE)
"""A due time of cycles whose interval is a minute."""
on_both_databases = pytest.mark.parametrize("database_kind", databases.KINDS, indirect=True)

CLASS_NAMES = ("benign", "unclear", "malignant")
COSTS = ((0.0, 1.0, 2.0), (1.0, 0.0, 1.0), (5.0, 3.0, 0.0))
BALANCED = (1 / 3, 1 / 3, 1 / 3)
SHIFTED = (0.85, 0.1, 0.05)


def draw(prevalence: Sequence[float], samples: int, *, seed: int) -> LabeledLogits:
    """Logits with exactly these class shares (up to rounding), shuffled; about 80 % are right when balanced."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), np.round(np.array(prevalence) * samples).astype(int))
    rng.shuffle(labels)
    logits = 2.5 * np.eye(3)[labels] + rng.normal(scale=1.25, size=(labels.size, 3))
    return LabeledLogits(logits, labels)


def settings_for(folder: Path, **changes: object) -> Settings:
    """Settings of an installation in this folder, with a window of the newest 600.

    Swaps need no approval, though the predictions come without a token and within a second.
    """
    policy = PolicySettings(unusual_traffic="report")
    return Settings(data_directory=folder, window_samples=600, policy=policy).model_copy(update=changes)


def open_store(settings: Settings) -> Store:
    """A new, empty store for these settings."""
    Store.migrate(settings.resolved_database_url)
    return Store.from_settings(settings)


def add_model(
    store: Store, name: str = "lesions", *, calibrated: bool = True, rule: DecisionRule | None = None
) -> Model:
    """An external model of a task of the same name, with a default head when calibrated."""
    store.tasks.add(name, CLASS_NAMES, COSTS, actor="tests", decision_rule=rule)
    model = store.models.add(name, name, kind="external", actor="tests")
    if calibrated:
        register_calibration(store, model.reference, draw(BALANCED, 600, seed=1), actor="tests")
    return store.models.get(model.reference)


def predict(
    store: Store,
    model: Model,
    environment: str,
    logits: LabeledLogits,
    *,
    groups: Sequence[bytes] | None = None,
    head_version: int | None = None,
) -> tuple[UUID, ...]:
    """Decide with the serving head and log it, as the service does; all in one transaction."""
    store.environments.ensure(environment, limit=100)
    registry = store.registry()
    record = registry.head_for(model, environment)
    predictions = tuple(
        Prediction(
            id=new_prediction_id(),
            model_id=model.id,
            environment=environment,
            head_version=record.version if head_version is None else head_version,
            decision=int(decision),
            logits=row,
            group_hash=None if groups is None else groups[index],
        )
        for index, (row, decision) in enumerate(
            zip(logits.logits, record.head.apply(logits.logits).decisions, strict=True)
        )
    )
    store.predictions.append([LogEntry((prediction,)) for prediction in predictions])
    return tuple(prediction.id for prediction in predictions)


def label(store: Store, ids: Sequence[UUID], labels: Sequence[int]) -> None:
    """Record the true classes."""
    store.labels.record([NewLabel(one, int(true)) for one, true in zip(ids, labels, strict=True)])
