"""Candidates of trials get cycles, heads and figures like any model; the figures name the role of their model."""

from datetime import UTC, datetime

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Model, Store, promote_calibrated, register_calibration, start_trial
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, COSTS, SHIFTED, draw, label, predict

MINUTE = 60
NOW = datetime.now(UTC)
DUE = due_before(NOW, MINUTE)


@pytest.fixture
def models(store: Store) -> tuple[Model, Model]:
    """lesions@1, promoted, and lesions@2."""
    store.tasks.add("lesions", CLASS_NAMES, COSTS, actor="tests")
    for version in (1, 2):
        store.models.add(
            "lesions",
            "lesions",
            kind="onnx",
            onnx=b"graph %d" % version,
            preprocessing=Preprocessing(),
            actor="tests",
        )
        register_calibration(store, f"lesions@{version}", draw(BALANCED, 600, seed=1), actor="tests")
    return store.models.get("lesions@1"), store.models.get("lesions@2")


def roles(exporter: Exporter, name: str) -> dict[tuple[str, str], float]:
    """The values of a gauge without further labels, by model and role."""
    (family,) = (one for one in exporter.registry.collect() if one.name == f"lifelong_{name}")
    return {(one.labels["model"], one.labels["role"]): one.value for one in family.samples}


def test_a_shadow_is_estimated_adapted_and_labelled_like_the_promoted_model(
    store: Store, settings: Settings, models: tuple[Model, Model], exporter: Exporter
) -> None:
    _, candidate = models
    start_trial(store, candidate.reference, stage="shadow", actor="tests")
    drawn = draw(SHIFTED, 600, seed=3)
    for model in models:
        label(store, predict(store, model, "clinic", drawn)[:50], list(drawn.labels[:50]))
    ticker = Ticker(store, settings, exporter)
    ticker.tick(NOW, DUE)
    places = {("lesions@1", "promoted"), ("lesions@2", "shadow")}
    for name in ("prevalence_shift_l1", "window_samples", "realised_accuracy"):
        assert roles(exporter, name).keys() == places
    assert roles(exporter, "head_version") == dict.fromkeys(places, 2.0)
    assert store.heads.activations(candidate.reference, environment="clinic")[-1].reason == "swap"

    def shown() -> set[tuple[str, str]]:
        ticker.tick(datetime.now(UTC), due_before(datetime.now(UTC), MINUTE))
        return set(roles(exporter, "head_version"))

    start_trial(store, candidate.reference, stage="canary", share=0.5, actor="tests")
    assert shown() == {("lesions@1", "promoted"), ("lesions@2", "canary")}
    promote_calibrated(store, candidate.reference, actor="tests")
    assert shown() == {("lesions@1", "former"), ("lesions@2", "promoted")}
