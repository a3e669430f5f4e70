"""Small labelling plans for tests."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from lifelong_core.entities.labelling import LabellingPlan, LabellingSample, NewPlan
from lifelong_core.store import LogEntry, Prediction, Store, logged_at, new_prediction_id
from tests.unit.store.samples import prediction

WIDTHS = {"confidence": 0.95, "planned": 0.1, "random": 0.15, "label_free": 0.3}


def logged(store: Store, count: int, model_id: int, *groups: bytes | None) -> list[Prediction]:
    """Logged predictions of the environment site-a; the first ones with these groups."""
    store.environments.ensure("site-a", limit=9)
    keys = [*groups, *[None] * (count - len(groups))]
    rows = [prediction(model_id, "site-a", decision=i % 3, group_hash=key) for i, key in enumerate(keys)]
    store.predictions.append([LogEntry((row,)) for row in rows])
    return rows


def new_plan(rows: Sequence[Prediction], **changed: Any) -> NewPlan:
    plan = NewPlan(
        id=new_prediction_id(),
        model_id=rows[0].model_id,
        environment="site-a",
        head_version=1,
        since=logged_at(rows[0].id),
        until=logged_at(rows[-1].id),
        window_limit=20_000,
        log_position=2**60,
        window_samples=len(rows),
        expected_widths=WIDTHS,
    )
    return replace(plan, **changed)


def sample(row: Prediction | UUID, position: int | None, propensity: float = 0.25) -> LabellingSample:
    identity = row if isinstance(row, UUID) else row.id
    decision = 0 if isinstance(row, UUID) else row.decision
    return LabellingSample(identity, position, propensity, decision, 0.5)


def add_plan(
    store: Store,
    rows: Sequence[Prediction],
    *,
    chosen: Sequence[int],
    labelled: Sequence[int] = (),
    propensity: float = 0.25,
    **changed: Any,
) -> LabellingPlan:
    """A plan over a window of these rows that chooses those at these indices, in this order."""
    samples = [sample(rows[index], position, propensity) for position, index in enumerate(chosen)]
    samples += [sample(rows[index], None, 1.0) for index in labelled]
    return store.labelling_plans.add(new_plan(rows, **changed), samples, actor="tests")
