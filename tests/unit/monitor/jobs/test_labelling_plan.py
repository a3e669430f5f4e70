"""The kind `labelling_plan`: uncertain predictions of the newest window are chosen with higher probability."""

from typing import Any
from uuid import UUID

import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.operations.labelling_plans import KIND
from lifelong_core.store import Job, Model, Store
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_monitor.jobs.kinds.labelling_plan import make_plan
from lifelong_monitor.jobs.running.work import work_of
from tests.unit.monitor.population import SHIFTED, add_model, draw, label, on_both_databases, predict


def submit(store: Store, size: int, model: str = "lesions@1", **asked: Any) -> Job:
    payload = {"model": model, "environment": "clinic", "size": size, **asked}
    return store.jobs.submit(KIND, payload, actor="ann")


def test_the_kind_is_known() -> None:
    assert work_of(KIND).__module__ == "lifelong_monitor.jobs.kinds.labelling_plan"


@on_both_databases
def test_a_plan_chooses_from_the_newest_window(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 100, seed=2))
    data = draw(SHIFTED, 400, seed=3)
    ids = predict(store, model, "clinic", data)
    label(store, ids[:30], data.labels[:30].tolist())
    job = submit(store, 60, window_samples=400)
    result = make_plan(store, settings, job)
    assert result == {"plan": str(job.id), "size": 60, "window_samples": 400, "labelled_before": 30}
    plan = store.labelling_plans.get(job.id)
    assert (plan.model_id, plan.environment, plan.head_version, plan.created_by) == (
        model.id,
        "clinic",
        1,
        "ann",
    )
    chosen = store.labelling_plans.chosen(job.id)
    before = store.labelling_plans.labelled_before(job.id)
    assert {one.prediction_id for one in before} == set(ids[:30])
    assert {one.propensity for one in before} == {1.0}
    assert {one.prediction_id for one in chosen} <= set(ids[30:])
    assert [one.position for one in chosen] == list(range(60))
    head = store.heads.get(model.reference, 1).head
    decided = dict(zip(ids, head.apply(data.logits).decisions.tolist(), strict=True))
    assert all(one.decision == decided[one.prediction_id] for one in chosen)
    costs = np.array([one.expected_cost for one in chosen])
    propensities = np.array([one.propensity for one in chosen])
    assert 0 < propensities.min() < propensities.max() <= 1
    # Of 60 predictions that the random id of the job draws.
    assert np.corrcoef(costs, propensities)[0, 1] > 0.2
    widths = plan.expected_widths
    assert widths["confidence"] == 0.95
    assert 0 < widths["planned"] < 0.9 * widths["random"]
    assert widths["label_free"] > 0


def test_a_job_that_is_begun_again_returns_its_plan(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 200, seed=3))
    job = submit(store, 20)
    first = make_plan(store, settings, job)
    chosen = store.labelling_plans.chosen(job.id)
    predict(store, model, "clinic", draw(SHIFTED, 50, seed=4))
    assert make_plan(store, settings, job) == first
    assert store.labelling_plans.chosen(job.id) == chosen


def test_window_and_size_are_limited(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 700, seed=3))
    assert make_plan(store, settings, submit(store, 10))["window_samples"] == 600  # of the settings
    assert make_plan(store, settings, submit(store, 9, window_samples=5)) | {"plan": ""} == {
        "plan": "",
        "size": 5,
        "window_samples": 5,
        "labelled_before": 0,
    }
    with pytest.raises(InvalidInputError) as refused:
        make_plan(store, settings, submit(store, 10, window_seconds=1e-6))
    assert refused.value.field == "window"


def test_groups_of_predictions_are_kept_apart_from_the_plan(
    store: Store, settings: Settings, model: Model
) -> None:
    groups = [bytes([index % 40]) * 16 for index in range(200)]
    predict(store, model, "clinic", draw(SHIFTED, 200, seed=3), groups=groups)
    job = submit(store, 20)
    make_plan(store, settings, job)
    assert all(one.group_hash is not None for one in store.labelling_plans.chosen(job.id))


def test_what_cannot_be_planned_is_an_error(store: Store, settings: Settings, model: Model) -> None:
    with pytest.raises(NotFoundError):
        make_plan(store, settings, submit(store, 10))
    data = draw(SHIFTED, 20, seed=3)
    ids = predict(store, model, "clinic", data)
    label(store, ids, data.labels.tolist())
    with pytest.raises(InvalidInputError, match="every prediction of the window has a label"):
        make_plan(store, settings, submit(store, 10))
    raw = add_model(store, "raw", calibrated=False)
    with pytest.raises(ConflictError, match="no calibration set"):
        make_plan(store, settings, submit(store, 10, raw.reference))
    with pytest.raises(InvalidInputError):
        make_plan(store, settings, submit(store, 0))
    assert store.labelling_plans.list() == []


def test_the_draw_depends_on_the_job(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 300, seed=3))
    # An identical job that is still queued would be the same job.
    jobs = [submit(store, 30), store.jobs.submit(KIND, submit(store, 30).payload, actor="bob")]
    plans: list[UUID] = [UUID(make_plan(store, settings, job)["plan"]) for job in jobs]
    one, other = ({row.prediction_id for row in store.labelling_plans.chosen(plan)} for plan in plans)
    assert one != other
