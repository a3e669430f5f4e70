"""The history of promotions, and roll-backs: one call to the model before, and further back with each call."""

import pytest

from lifelong_core.store import Store, promote_calibrated, register_calibration, start_trial
from lifelong_core.values.errors import ConflictError, NotFoundError
from tests.databases import sqlite_only
from tests.unit.store.rollouts.images import TASK, add_calibrated, newest_audit, promoted
from tests.unit.store.samples import add_serving_model, calibration


def history(store: Store) -> list[tuple[int, int | None, str]]:
    return [(one.model_id, one.previous, one.reason) for one in store.promotions.list(TASK)]


def test_every_promotion_is_recorded_the_automatic_first_one_included(store: Store):
    one, two = add_calibrated(store), add_calibrated(store, seed=1)
    assert history(store) == [(one.id, None, "first")]
    promote_calibrated(store, two.reference, actor="me")
    promote_calibrated(store, two.reference, actor="me")  # it is promoted already: no step of its own
    assert history(store) == [(one.id, None, "first"), (two.id, 1, "promote")]
    assert store.promotions.list(TASK)[1].promoted_by == "me"


def test_a_rollback_restores_the_model_before_and_the_next_one_goes_further_back(store: Store):
    one, two, three = (add_calibrated(store, seed=seed) for seed in range(3))
    for model in (two, three):
        promote_calibrated(store, model.reference, actor="me")
    before = store.revision()
    assert store.promotions.roll_back(TASK, actor="op") == two
    assert store.revision() > before
    assert promoted(store) == two.reference
    assert newest_audit(store, "models.rollback") == (
        two.reference,
        {"task": TASK, "from": three.reference},
    )
    assert store.promotions.roll_back(TASK, actor="op") == one
    with pytest.raises(ConflictError, match="no other model"):
        store.promotions.roll_back(TASK, actor="op")
    assert history(store)[-2:] == [(two.id, 1, "rollback"), (one.id, None, "rollback")]
    # A promotion starts a new step.
    promote_calibrated(store, three.reference, actor="me")
    assert store.promotions.roll_back(TASK, actor="op") == one


def test_two_callers_do_not_roll_back_twice(store: Store):
    _, two, three = (add_calibrated(store, seed=seed) for seed in range(3))
    for model in (two, three):
        promote_calibrated(store, model.reference, actor="me")
    assert store.promotions.roll_back(TASK, actor="a", expected_sequence=3) == two
    with pytest.raises(ConflictError, match="changed meanwhile") as error:
        store.promotions.roll_back(TASK, actor="b", expected_sequence=3)
    assert error.value.field == "expected_sequence"
    assert promoted(store) == two.reference


@sqlite_only
def test_a_rollback_says_what_stops_it(store: Store):
    with pytest.raises(NotFoundError):
        store.promotions.roll_back("unknown", actor="me")
    one = add_calibrated(store)
    with pytest.raises(ConflictError, match="no other model") as error:
        store.promotions.roll_back(TASK, actor="me")
    assert error.value.field == "task"
    promote_calibrated(store, add_calibrated(store, seed=1).reference, actor="me")
    assert store.promotions.rollback_model(TASK) == one
    assert one.artifact is not None
    store.artifacts.remove(one.artifact)
    with pytest.raises(ConflictError, match="stored graph"):
        store.promotions.roll_back(TASK, actor="me")
    assert promoted(store) == "skin@2"


@sqlite_only
def test_a_removed_model_is_passed_over_and_the_restorable_one_cannot_be_removed(store: Store):
    one, two, three = (add_calibrated(store, seed=seed) for seed in range(3))
    for model in (two, three):
        promote_calibrated(store, model.reference, actor="me")
    with pytest.raises(ConflictError, match="a roll-back of the task lesions restores it"):
        store.remove_model(two.reference, actor="me")
    promote_calibrated(store, one.reference, actor="me")  # now a roll-back restores three
    store.remove_model(two.reference, actor="me")
    assert store.promotions.roll_back(TASK, actor="me") == three
    assert store.promotions.roll_back(TASK, actor="me") == one  # not two, which is gone


@sqlite_only
def test_a_canary_stops_rollbacks_and_promotions_of_other_models(store: Store):
    _, two, three = (add_calibrated(store, seed=seed) for seed in range(3))
    promote_calibrated(store, two.reference, actor="me")
    start_trial(store, three.reference, stage="canary", share=0.5, actor="me")
    with pytest.raises(ConflictError, match="canary of lesions"):
        store.promotions.roll_back(TASK, actor="me")
    with pytest.raises(ConflictError, match="skin@3 is on trial"):
        promote_calibrated(store, "skin@1", actor="me")
    start_trial(store, three.reference, stage="shadow", actor="me")
    assert store.promotions.roll_back(TASK, actor="me").reference == "skin@1"


@sqlite_only
def test_a_rollback_to_the_model_on_trial_ends_its_trial(store: Store):
    one, two = add_calibrated(store), add_calibrated(store, seed=1)
    promote_calibrated(store, two.reference, actor="me")
    start_trial(store, one.reference, stage="shadow", actor="me")
    store.promotions.roll_back(TASK, actor="op")
    assert store.rollouts.current(TASK) is None
    assert [trial.outcome for trial in store.rollouts.list(TASK)] == ["promoted"]


def test_the_registry_names_restorable_and_released_models(store: Store):
    models = [add_calibrated(store, seed=seed) for seed in range(4)]
    for model in models[1:3]:
        promote_calibrated(store, model.reference, actor="me")
    registry = store.registry()
    assert registry is not None
    task_id = models[0].task_id
    assert dict(registry.rollback_models) == {task_id: models[1].id}
    assert registry.released == {models[0].id}  # not the fourth, which was never promoted
    start_trial(store, models[0].reference, stage="shadow", actor="me")
    registry = store.registry()
    assert registry is not None
    assert registry.released == frozenset()
    assert registry.rollouts[task_id].model_id == models[0].id


@sqlite_only
def test_external_models_are_rolled_back_too_and_never_released(store: Store):
    add_serving_model(store)
    for version in (2, 3):
        model = store.models.add("lesions", "dermatology", kind="external", actor="me")
        register_calibration(store, model.reference, calibration(version), actor="me")
        promote_calibrated(store, model.reference, actor="me")
    registry = store.registry()
    assert registry is not None
    assert registry.released == frozenset()
    assert store.promotions.roll_back(TASK, actor="me").reference == "dermatology@2"
