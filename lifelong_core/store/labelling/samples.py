"""Rows of the samples of labelling plans: written and deleted in batches, read with what is known of the predictions.

A plan can hold 20,000 predictions. Its rows are written in several short transactions, so that the log of predictions
does not wait, and before the row of the plan: a plan that can be read is complete. Rows of a plan that was never
completed have no effect and expire with their predictions.
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.labelling import LabellingSample, NewPlan, PlanProgress, SampledPrediction
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.deletion import Batches, delete_rows, never_stop
from lifelong_core.store.engine.statements import batched
from lifelong_core.store.log.identifiers import logged_on
from lifelong_core.store.schema import tables

_log, _labels = tables.predictions, tables.labels
_plans, _samples = tables.labelling_plans, tables.labelling_samples
_same_prediction = (_log.c.logged_on == _samples.c.logged_on) & (_log.c.id == _samples.c.prediction_id)
_same_label = (_labels.c.logged_on == _samples.c.logged_on) & (
    _labels.c.prediction_id == _samples.c.prediction_id
)


def write_samples(database: Database, plan: NewPlan, samples: Sequence[LabellingSample]) -> None:
    """Write the samples of a plan in batches; predictions that are no longer in the log are left out."""
    batches = Batches(database, never_stop)
    left = list(samples)
    while left:
        part, left = left[: batches.size], left[batches.size :]
        with batches.write(len(part)) as connection:
            logged = _lock_logged(connection, [sample.prediction_id for sample in part])
            rows = [_row(plan, sample) for sample in part if sample.prediction_id in logged]
            if rows:
                connection.execute(sa.insert(_samples), rows)


def delete_samples(database: Database, plan_id: UUID) -> None:
    """Delete all samples of a plan, in batches."""
    batches = Batches(database, never_stop)
    key = list(_samples.primary_key.columns)
    while True:
        query = sa.select(*key).where(_samples.c.plan_id == plan_id).limit(batches.size)
        with database.read() as connection:
            rows = [tuple(row) for row in connection.execute(query)]
        if not rows:
            return
        with batches.write(len(rows)) as connection:
            delete_rows(connection, _samples, rows)


def read_samples(connection: sa.Connection, plan_id: UUID, *, chosen: bool) -> list[SampledPrediction]:
    """The samples of a plan that are still in the log.

    Args:
        connection: of a transaction.
        plan_id: of the plan.
        chosen: only those that the plan chose, in their random order; else those that had a label before.
    """
    is_chosen = _samples.c.position.is_not(None)
    query = (
        sa.select(_samples, _log.c.group_hash, _labels.c.label, _labels.c.recorded_at.label("labelled_at"))
        .join(_log, _same_prediction)
        .outerjoin(_labels, _same_label)
        .where(_samples.c.plan_id == plan_id, is_chosen if chosen else ~is_chosen)
        .order_by(_samples.c.position, _samples.c.prediction_id)
    )
    return [read_record(row, SampledPrediction) for row in connection.execute(query)]


def count_progress(connection: sa.Connection, plan_ids: Collection[UUID]) -> dict[UUID, PlanProgress]:
    """How many of the chosen predictions of each plan have a label."""
    query = (
        sa.select(
            _samples.c.plan_id,
            sa.func.count(_samples.c.position).label("chosen"),
            sa.func.count(_labels.c.label).label("labelled"),
        )
        .outerjoin(_labels, _same_label)
        .where(_samples.c.plan_id.in_(plan_ids), _samples.c.position.is_not(None))
        .group_by(_samples.c.plan_id)
    )
    found = {row.plan_id: PlanProgress(row.chosen, row.labelled) for row in connection.execute(query)}
    return {plan_id: found.get(plan_id, PlanProgress(0, 0)) for plan_id in plan_ids}


def planned_propensities(connection: sa.Connection, ids: Collection[UUID]) -> dict[UUID, float]:
    """Probability with which the newest plan that chose a prediction did so, by prediction.

    Predictions that no plan chose are left out, also those that had a label before their plan was made.
    """
    propensities: dict[UUID, float] = {}
    for some in batched(sorted(ids)):
        query = (
            sa.select(_samples.c.prediction_id, _samples.c.propensity)
            .join(_plans, _plans.c.id == _samples.c.plan_id)
            .where(_samples.c.logged_on.in_({logged_on(one) for one in some}))
            .where(_samples.c.prediction_id.in_(some), _samples.c.position.is_not(None))
            .order_by(_samples.c.plan_id)
        )
        propensities |= {row.prediction_id: row.propensity for row in connection.execute(query)}
    return propensities


def _lock_logged(connection: sa.Connection, ids: Sequence[UUID]) -> set[UUID]:
    """Those of the predictions that are in the log, locked against deletion until the transaction ends."""
    logged: set[UUID] = set()
    for some in batched(ids):
        query = (
            sa.select(_log.c.id)
            .where(_log.c.logged_on.in_({logged_on(one) for one in some}), _log.c.id.in_(some))
            .with_for_update(read=True, key_share=True)
        )
        logged |= set(connection.execute(query).scalars())
    return logged


def _row(plan: NewPlan, sample: LabellingSample) -> dict[str, Any]:
    return {
        **vars(sample),
        "logged_on": logged_on(sample.prediction_id),
        "plan_id": plan.id,
        "model_id": plan.model_id,
        "environment": plan.environment,
    }
