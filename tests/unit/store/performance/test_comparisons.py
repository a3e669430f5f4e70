"""Estimates of cycles by day and head; the stored comparison of a population."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.deploy.performance.labelled.agreement import Agreement
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric, PerformanceEstimate
from lifelong_core.entities.performance import (
    PopulationPerformance,
    Realised,
)
from lifelong_core.store import Model, Store
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import InvalidInputError, UnavailableError
from tests.databases import sqlite_only
from tests.unit import performance_samples as samples
from tests.unit.store.samples import add_serving_model, cycle

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def model(store: Store) -> Model:
    added, _ = add_serving_model(store)
    store.environments.ensure("clinic", limit=9)
    return added


def estimate(accuracy: float) -> PerformanceEstimate:
    return PerformanceEstimate(
        method="TS",
        estimates={"AC": EstimatedMetric(accuracy, accuracy - 0.05, accuracy + 0.05)},
        confusion_matrix=np.eye(3) / 3,
        prevalence=np.full(3, 1 / 3),
        confidence=0.95,
        samples=500,
        effective_samples=500.0,
        validated_error=None,
        assumptions=(),
        warnings=(),
        head_digest="0" * 64,
    )


def judge(
    store: Store,
    model: Model,
    due_at: datetime,
    performance: object,
    *,
    environment: str = "clinic",
    head_version: int = 1,
) -> UUID:
    document = performance.to_document() if isinstance(performance, PerformanceEstimate) else performance
    made = cycle(model, due_at=due_at)
    report = {**made.report, "performance": document}
    if performance is ...:
        report = made.report
    made = replace(made, environment=environment, report=report, head_version=head_version)
    store.cycles.finish(made, candidate=None, expected_sequence=None)
    return made.id


def accuracies(
    store: Store, model: Model, *, since: datetime = NOON - 9 * DAY
) -> list[tuple[int, int, float]]:
    found = store.performance.daily_estimates(model.id, "clinic", since=since)
    return [(one.day.day, one.head_version, one.estimate.estimates["AC"].value) for one in found]


def test_the_last_estimate_of_each_day_and_head_counts(store: Store, model: Model):
    judge(store, model, NOON, estimate(0.81))
    last = judge(store, model, NOON + HOUR, estimate(0.82))
    judge(store, model, NOON + 2 * HOUR, estimate(0.9), head_version=2)
    judge(store, model, NOON + DAY, estimate(0.83))
    judge(store, model, NOON, estimate(0.1), environment="default")
    assert accuracies(store, model) == [(4, 1, 0.82), (4, 2, 0.9), (5, 1, 0.83)]
    assert store.performance.daily_estimates(model.id, "clinic", since=NOON)[0].cycle_id == last
    assert accuracies(store, model, since=NOON + 2 * HOUR) == [(4, 2, 0.9), (5, 1, 0.83)]


@sqlite_only
def test_a_cycle_without_an_estimate_hides_no_earlier_one(store: Store, model: Model):
    judge(store, model, NOON, estimate(0.81))
    judge(store, model, NOON + HOUR, None)
    judge(store, model, NOON + 2 * HOUR, ...)
    judge(store, model, NOON + DAY, {"schema_version": 99})
    assert accuracies(store, model) == [(4, 1, 0.81)]


@sqlite_only
def test_a_cycle_at_midnight_belongs_to_the_day_that_ends(store: Store, model: Model):
    judge(store, model, datetime(2026, 3, 5, tzinfo=UTC), estimate(0.8))
    assert accuracies(store, model) == [(4, 1, 0.8)]


def comparison(accuracy: float = 0.8) -> PopulationPerformance:
    """With all that a document may hold: undefined values, missing sides, too few labels."""
    first, *_, last = samples.comparison().days
    undefined = Realised(40, {"AC": EstimatedMetric(accuracy, math.nan, math.nan)})
    few = Agreement("too_few_labels", None, None, None, 0.05, "too few")
    days = (replace(first, realised=undefined, agreement={"AC": few}), replace(last, estimated=None))
    return replace(samples.comparison(), days=days, computed_at=NOON, left_out=("something",))


def test_a_comparison_is_read_as_it_was_stored_and_the_newest_replaces_it(store: Store, model: Model):
    assert store.performance.get(model.id, "clinic") is None
    store.performance.store(model.id, "clinic", comparison())
    store.performance.store(model.id, "default", comparison(0.5))
    store.performance.store(model.id, "clinic", replace(comparison(0.9), computed_at=NOON + HOUR))
    found = store.performance.get(model.id, "clinic")
    assert found is not None
    assert found.to_document() == replace(comparison(0.9), computed_at=NOON + HOUR).to_document()
    assert found.days[0].realised is not None
    assert math.isnan(found.days[0].realised.metrics["AC"].low)
    assert [head.agrees for head in found.heads] == [True, False]
    assert [day.agrees for day in found.days] == [None, False]
    assert store.performance.populations() == {
        (model.id, "clinic"): NOON + HOUR,
        (model.id, "default"): NOON,
    }


@sqlite_only
@pytest.mark.parametrize("text", ["{}", "[]", "no JSON", '{"schema_version": 2}', '{"schema_version": 1}'])
def test_a_damaged_comparison_is_reported(store: Store, model: Model, text: str):
    store.performance.store(model.id, "clinic", comparison())
    with store.database.write() as connection:
        connection.execute(sa.update(tables.performance_comparisons).values(document=text))
    with pytest.raises(UnavailableError, match="damaged"):
        store.performance.get(model.id, "clinic")


def test_a_value_of_another_form_is_refused():
    with pytest.raises(InvalidInputError, match=r"days\.0\.since"):
        PopulationPerformance.from_document({**comparison().to_document(), "days": [{}]})


def test_it_is_deleted_with_its_model_and_with_its_environment(store: Store, model: Model):
    other = store.models.add("lesions", "unused", kind="external", actor="tests")
    store.environments.ensure("empty", limit=9)
    store.performance.store(other.id, "clinic", comparison())
    store.performance.store(model.id, "empty", comparison())
    store.remove_model(other.reference, actor="tests")
    assert set(store.performance.populations()) == {(model.id, "empty")}
    store.environments.delete("empty", actor="tests")
    assert store.performance.populations() == {}
