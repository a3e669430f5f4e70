"""A recommendation and the head that follows from it come into force together, or neither does."""

from typing import Any

import numpy as np
import pytest

from lifelong_core.deploy import fit_head
from lifelong_core.design import Recommendation
from lifelong_core.errors import ConflictError
from lifelong_core.store import Store, attach_and_refit, refitting
from tests.unit.store.design_samples import STATED_COSTS, recommendation, recommendation_without_costs
from tests.unit.store.samples import CLASSES, COSTS, add_model, add_serving_model, calibration, head

TARGET = (0.7, 0.2, 0.1)


def everything(store: Store) -> tuple[Any, ...]:
    return (
        store.registry(),
        store.audit.list(),
        store.recommendations.list("lesions"),
        store.heads.list("dermatology"),
    )


def for_target() -> Recommendation:
    return recommendation(
        decision_rule="argmax",
        target_prevalences_known=True,
        target_prevalences=TARGET,
        class_contribution=None,
    )


def test_the_default_head_is_fitted_for_stated_costs_and_class_mix(store: Store):
    model, _ = add_serving_model(store)
    elsewhere = store.heads.publish("dermatology", head(), environment="site-a", actor="ann")
    attached, of, record = attach_and_refit(store, "lesions", for_target(), actor="ann")
    assert (attached.version, of.id, record.version) == (1, model.id, elsewhere.version + 1)
    expected = fit_head(calibration(), STATED_COSTS, target_prevalence=TARGET, class_names=CLASSES)
    assert record.head.digest == expected.digest
    assert record.head.provenance["recommendation"] == 1
    registry = store.registry()
    assert registry is not None
    assert registry.head_for(of, "anywhere") == record
    assert registry.head_for(of, "site-a") == elsewhere
    assert np.array_equal(registry.tasks[of.task_id].costs, STATED_COSTS)
    assert {entry.action for entry in store.audit.list(limit=3)} == {
        "heads.publish",
        "recommendations.attach",
        "tasks.costs",
    }


def test_what_nobody_stated_stays_as_it_is(store: Store):
    add_serving_model(store)
    store.heads.publish("dermatology", head(), environment=None, actor="ann")
    _, _, record = attach_and_refit(store, "lesions", recommendation_without_costs(), actor="ann")
    assert np.array_equal(record.head.costs, COSTS)
    assert np.array_equal(record.head.assumed_prevalence, head().assumed_prevalence)
    assert record.head.digest != head().digest


def test_there_has_to_be_a_model_that_serves_and_was_calibrated(store: Store):
    add_model(store)
    with pytest.raises(ConflictError, match="no promoted model"):
        attach_and_refit(store, "lesions", recommendation(), actor="ann")
    store.heads.publish("dermatology", head(), environment=None, actor="ann")
    store.models.promote("dermatology", actor="ann")
    before = everything(store)
    with pytest.raises(ConflictError, match="no calibration set"):
        attach_and_refit(store, "lesions", recommendation(), actor="ann")
    assert everything(store) == before


def test_a_model_that_was_calibrated_anew_meanwhile_keeps_its_head(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    add_serving_model(store)

    def fit_while_others_work(*arguments: Any, **options: Any) -> Any:
        store.calibration_sets.add("dermatology", calibration(7), actor="bob")
        return fit_head(*arguments, **options)

    monkeypatch.setattr(refitting, "fit_head", fit_while_others_work)
    with pytest.raises(ConflictError, match="changed while the head was fitted"):
        attach_and_refit(store, "lesions", recommendation(), actor="ann")
    assert store.recommendations.current("lesions") is None
    assert len(store.heads.list("dermatology")) == 1


def test_it_is_all_or_nothing(store: Store, monkeypatch: pytest.MonkeyPatch):
    add_serving_model(store)
    before = everything(store)

    def fail(*_: object, **__: object) -> None:
        raise ConflictError("somebody was faster.")

    monkeypatch.setattr(refitting, "publish_head", fail)
    with pytest.raises(ConflictError, match="faster"):
        attach_and_refit(store, "lesions", recommendation(), actor="ann")
    assert everything(store) == before
