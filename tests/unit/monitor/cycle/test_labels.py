"""Labels of a window as evidence of its prevalence: which count, what is recorded, and a replay."""

import time
from datetime import UTC, datetime, timedelta

import numpy as np

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.store import Model, NewLabel, Store
from lifelong_monitor.cycle.cycle import run_cycle
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import report_of
from tests.unit.monitor.population import BALANCED, draw, label, on_both_databases, predict

USING_LABELS = PolicySettings(labelled_evidence=True)


@on_both_databases
def test_labels_of_the_window_count_where_the_policy_says_so(
    store: Store, settings: Settings, model: Model
) -> None:
    settings = settings.model_copy(update={"environment_policies": {"clinic": USING_LABELS}})
    drawn = draw(BALANCED, 600, seed=2)
    groups = [bytes([index // 2 % 256, index // 512]) * 8 for index in range(600)]
    ids = predict(store, model, "clinic", drawn, groups=groups)
    label(store, ids[:200], list(drawn.labels[:200]))
    other = predict(store, model, "elsewhere", drawn)
    label(store, other[:200], list(drawn.labels[:200]))
    due_at = datetime.now(UTC)
    result, elsewhere = (
        run_cycle(store, settings, model, environment, due_at) for environment in ("clinic", "elsewhere")
    )
    labelled = result.report.context.labelled
    assert labelled.groups is not None
    np.testing.assert_array_equal(labelled.labels, drawn.labels[:200])
    assert np.unique(labelled.groups).size == 100
    assert result.report.prevalence_without_labels is not None
    assert (elsewhere.report.context.labelled, elsewhere.report.prevalence_without_labels) == (None, None)
    # Labels that came after the cycle change no replay.
    label(store, ids[200:300], [0] * 100)
    assert replay(store, result.last.id) == report_of(store.cycles.get(result.last.id))


def test_labels_of_predictions_before_the_window_do_not_count(
    store: Store, settings: Settings, model: Model
) -> None:
    settings = settings.model_copy(update={"policy": USING_LABELS, "window_samples": 300})
    early = draw(BALANCED, 300, seed=2)
    label(store, predict(store, model, "clinic", early), list(early.labels))
    time.sleep(0.01)  # ids of one millisecond share their time
    predict(store, model, "clinic", draw(BALANCED, 300, seed=3))
    result = run_cycle(store, settings, model, "clinic", datetime.now(UTC) + timedelta(seconds=1))
    assert result.report.context.labelled is None


def test_labelling_probabilities_go_with_the_labels(store: Store, settings: Settings, model: Model) -> None:
    settings = settings.model_copy(update={"policy": USING_LABELS})
    drawn = draw(BALANCED, 600, seed=2)
    ids = predict(store, model, "clinic", drawn)
    chosen = [
        NewLabel(one, int(true), propensity=0.25) for one, true in zip(ids[:60], drawn.labels, strict=False)
    ]
    store.labels.record(chosen)
    label(store, ids[60:90], [2] * 30)
    result = run_cycle(store, settings, model, "clinic", datetime.now(UTC))
    labelled = result.report.context.labelled
    assert labelled.propensities.tolist() == [0.25] * 60
