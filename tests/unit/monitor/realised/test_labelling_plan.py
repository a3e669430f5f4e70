"""Labels of a plan, as they arrive, narrow the estimate; every estimate states what it assumes."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.performance.labelled.difference import NOT_COMBINED
from lifelong_core.entities.labelling import SampledPrediction
from lifelong_core.store import Model, Store
from lifelong_core.store.lifecycle import erasure
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.jobs.kinds.labelling_plan import make_plan
from lifelong_monitor.realised.labelling_plan import LabelledSample, LabellingEstimates
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.jobs.test_labelling_plan import on_both_databases, submit
from tests.unit.monitor.population import COSTS, SHIFTED, draw, label, predict

Update = Callable[[], Any]
GROUP = b"p" * 16


@pytest.fixture
def data() -> LabeledLogits:
    """A shift of another kind: every second logit vector is blurred."""
    drawn = draw(SHIFTED, 500, seed=3)
    noise = np.random.default_rng(5).normal(scale=1.5, size=drawn.logits.shape)
    noise[::2] = 0
    return LabeledLogits((drawn.logits + noise).astype(np.float32), drawn.labels)


@pytest.fixture
def ids(store: Store, model: Model, data: LabeledLogits) -> tuple[UUID, ...]:
    groups = [GROUP if index < 5 else bytes([index % 250, index // 250]) * 8 for index in range(500)]
    return predict(store, model, "clinic", data, groups=groups)


@pytest.fixture
def update(store: Store, settings: Settings, model: Model) -> Update:
    estimates = LabellingEstimates(store, settings)
    return lambda: estimates.update(store.tasks.get("lesions"), model, "clinic")


def chosen_labels(store: Store, ids: tuple[UUID, ...], data: LabeledLogits, plan: UUID) -> dict[UUID, int]:
    """The true classes of the chosen predictions, in their order."""
    known = dict(zip(ids, data.labels.tolist(), strict=True))
    return {one.prediction_id: known[one.prediction_id] for one in store.labelling_plans.chosen(plan)}


def true_cost(store: Store, model: Model, data: LabeledLogits) -> float:
    decisions = store.heads.get(model.reference, 1).head.apply(data.logits).decisions
    return float(np.array(COSTS)[data.labels, decisions].mean())


def is_near(interval: Mapping[str, float], truth: float) -> bool:
    """Whether twice the interval holds the truth; the draw depends on the random id of the job: one may miss."""
    reach = (interval["high"] - interval["low"]) / 2
    return interval["low"] - reach < truth < interval["high"] + reach


@on_both_databases
def test_the_estimate_with_all_labels_covers_the_truth_and_is_narrower_than_labels_alone(
    store: Store, settings: Settings, model: Model, data: LabeledLogits, ids: tuple[UUID, ...], update: Update
) -> None:
    label(store, ids[:20], data.labels[:20].tolist())
    plan = UUID(make_plan(store, settings, submit(store, 100))["plan"])
    assert update() is None
    wanted = chosen_labels(store, ids, data, plan)
    label(store, list(wanted), list(wanted.values()))
    estimate = update()
    cost, alone = estimate["labelled"]["EC"], estimate["labels_alone"]["EC"]
    truth = true_cost(store, model, data)
    assert is_near(cost, truth)
    assert is_near(alone, truth)
    assert cost["high"] - cost["low"] < alone["high"] - alone["low"]
    assert set(estimate["label_free"]) == set(estimate["labelled"]) == {"AC", "EC"}
    assert estimate["labels"] == 100
    assert not any("have arrived" in note for note in estimate["notes"])
    assert store.labelling_plans.get(plan).estimate == estimate


def test_the_estimate_changes_only_with_the_labels(
    store: Store, settings: Settings, data: LabeledLogits, ids: tuple[UUID, ...], update: Update
) -> None:
    assert update() is None
    plan = UUID(make_plan(store, settings, submit(store, 40))["plan"])
    wanted = list(chosen_labels(store, ids, data, plan).items())
    label(store, [wanted[0][0]], [wanted[0][1]])
    assert update() is None  # one label has no interval
    label(store, [one for one, _ in wanted[1:19]], [true for _, true in wanted[1:19]])
    assert any("fewer than 20 labels" in note for note in update()["notes"])
    label(store, [wanted[19][0]], [wanted[19][1]])
    first = update()
    assert not any("fewer than 20 labels" in note for note in first["notes"])
    assert first["labels"] == 20
    assert "20 of 40 labels have arrived" in first["notes"][0]
    assert update() is None
    # Labels of other predictions tell nothing: how they were selected is not known.
    others = [one for one in ids if one not in dict(wanted)]
    label(store, others[:50], [0] * 50)
    assert update() is None
    label(store, [wanted[0][0]], [(wanted[0][1] + 1) % 3])
    corrected = update()
    assert corrected["labels"] == 20
    assert corrected["labels_alone"] != first["labels_alone"]


def test_a_part_of_the_labels_is_less_probable_than_the_whole() -> None:
    def planned(number: int, propensity: float, true: int | None) -> SampledPrediction:
        return SampledPrediction(UUID(int=number), 0, propensity, 0, 0.5, None, true, None)

    rows = {UUID(int=number): number for number in range(10)}
    arrived = [planned(3, 0.5, 1), planned(4, 1.0, 2), planned(77, 0.5, 0)]  # 77 is no longer in the window
    sample = LabelledSample.of(rows, arrived, [planned(8, 1.0, 0), planned(9, 1.0, None)], chosen=4)
    assert sample.rows.tolist() == [3, 4, 8]
    assert sample.labels.tolist() == [1, 2, 0]
    assert sample.propensities.tolist() == [0.375, 0.75, 1.0]
    assert (sample.arrived, sample.chosen) == (3, 4)


def test_a_first_part_of_the_labels_estimates_the_whole_window(
    store: Store, settings: Settings, model: Model, data: LabeledLogits, ids: tuple[UUID, ...], update: Update
) -> None:
    label(store, ids[:200], data.labels[:200].tolist())
    plan = UUID(make_plan(store, settings, submit(store, 100))["plan"])
    wanted = list(chosen_labels(store, ids, data, plan).items())[:50]
    label(store, [one for one, _ in wanted], [true for _, true in wanted])
    estimate = update()
    truth = true_cost(store, model, data)
    for method in ("labelled", "labels_alone"):
        cost = estimate[method]["EC"]
        assert is_near(cost, truth)


def test_erased_predictions_are_left_out(
    store: Store,
    settings: Settings,
    data: LabeledLogits,
    ids: tuple[UUID, ...],
    update: Update,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(erasure, "SETTLING_SECONDS", 0)
    label(store, ids[:5], data.labels[:5].tolist())
    plan = UUID(make_plan(store, settings, submit(store, 400))["plan"])
    wanted = chosen_labels(store, ids, data, plan)
    label(store, list(wanted), list(wanted.values()))
    first = update()
    store.erasure.erase([GROUP], actor="tests")
    assert store.labelling_plans.labelled_before(plan) == []
    some = next(iter(wanted))
    label(store, [some], [(wanted[some] + 1) % 3])
    assert update()["labels"] == first["labels"] == 400


def test_wrong_labels_that_are_assumed_are_noted(
    store: Store, settings: Settings, model: Model, data: LabeledLogits, ids: tuple[UUID, ...]
) -> None:
    plan = UUID(make_plan(store, settings, submit(store, 40))["plan"])
    wanted = chosen_labels(store, ids, data, plan)
    label(store, list(wanted), list(wanted.values()))
    noisy = settings.model_copy(update={"label_error_rate": 0.05})
    estimate = LabellingEstimates(store, noisy).update(store.tasks.get("lesions"), model, "clinic")
    assert any("assumed share of wrong labels" in note for note in estimate["notes"])


@pytest.mark.parametrize(("is_blurred", "method"), [(False, "combined"), (True, "difference")])
def test_the_label_free_estimate_counts_only_where_its_assumption_is_not_rejected(
    store: Store,
    settings: Settings,
    model: Model,
    data: LabeledLogits,
    update: Update,
    method: str,
    *,
    is_blurred: bool,
) -> None:
    answered = data if is_blurred else draw(SHIFTED, 500, seed=3)
    ids = predict(store, model, "clinic", answered)
    plan = UUID(make_plan(store, settings, submit(store, 60))["plan"])
    wanted = chosen_labels(store, ids, answered, plan)
    label(store, list(wanted), list(wanted.values()))
    estimate = update()
    assert estimate["method"] == method
    assert (NOT_COMBINED in estimate["notes"]) == is_blurred
    cost, truth = estimate["labelled"]["EC"], true_cost(store, model, answered)
    assert is_near(cost, truth)


def test_a_round_of_the_monitor_estimates_again(
    store: Store, settings: Settings, data: LabeledLogits, ids: tuple[UUID, ...]
) -> None:
    plan = UUID(make_plan(store, settings, submit(store, 40))["plan"])
    wanted = chosen_labels(store, ids, data, plan)
    label(store, list(wanted), list(wanted.values()))
    ticker = Ticker(store, settings, Exporter(cycle_interval_seconds=3600))
    now = datetime.now(UTC)
    ticker.tick(now, due_before(now, timedelta(hours=1)))
    estimate = store.labelling_plans.get(plan).estimate
    assert estimate["labels"] == 40
