"""Calibration sets that were made with another preprocessing than this installation uses for their model."""

import json
from dataclasses import replace

import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.images.preprocessing_digest import OtherPreprocessingError, preprocessing_digest
from lifelong_core.store import Model, Store, examine_first, promote_calibrated, register_calibration
from lifelong_core.store.heads.checks import CalibratedOtherwiseError
from lifelong_core.store.registry.cache import registry_document, registry_from
from lifelong_core.store.schema import tables
from lifelong_core.values.preprocessing import Preprocessing
from tests.databases import sqlite_only
from tests.unit.store.samples import CLASSES, COSTS, add_model, calibration

PREPROCESSING = Preprocessing.model_validate({"resize": {"height": 8, "width": 8}})
OWN = preprocessing_digest(PREPROCESSING)
OTHER = "ab" * 32


def made_with(digest: str | None, seed: int = 0) -> LabeledLogits:
    return replace(calibration(seed), preprocessing_digest=digest)


@pytest.fixture
def model(store: Store) -> Model:
    store.tasks.add("lesions", CLASSES, COSTS, actor="tests")
    return add_graph(store)


def add_graph(store: Store) -> Model:
    return store.models.add(
        "lesions", "net", kind="onnx", onnx=b"graph", preprocessing=PREPROCESSING, actor="tests"
    )


@pytest.mark.parametrize("digest", [OWN, None])
def test_the_digest_is_recorded_and_comes_back(store: Store, model: Model, digest: str | None):
    record = register_calibration(store, model.reference, made_with(digest), actor="tests")
    (found,) = store.calibration_sets.list(model.reference)
    assert found.preprocessing_digest == digest
    assert store.calibration_sets.load(found.id) == made_with(digest)
    fitted_on = store.calibration_sets.of_head(record).fitted_on
    assert fitted_on is not None
    assert fitted_on.id == found.id
    registry = store.registry()
    assert registry.preprocessing_digests == ({} if digest is None else {model.id: digest})
    assert registry_from(json.loads(json.dumps(registry_document(registry)))) == registry


@sqlite_only
def test_the_same_logits_of_known_and_unknown_preprocessing_are_two_sets(store: Store, model: Model):
    unknown = store.calibration_sets.add(model.reference, made_with(None), actor="tests")
    known = store.calibration_sets.add(model.reference, made_with(OWN), actor="tests")
    assert known.id != unknown.id
    assert store.registry().preprocessing_digests == {model.id: OWN}


@sqlite_only
def test_a_new_set_of_another_preprocessing_is_refused(store: Store, model: Model):
    with pytest.raises(OtherPreprocessingError) as caught:
        register_calibration(store, model.reference, made_with(OTHER), actor="tests", force_reason="try")
    assert caught.value.field == "preprocessing_digest"
    assert "`lifelong calibrate net@1 held_out/`" in str(caught.value.hint)
    assert store.calibration_sets.list(model.reference) == []


@sqlite_only
def test_the_first_set_of_a_model_that_is_not_registered_is_compared_too(store: Store, model: Model):
    task = store.tasks.get("lesions")
    assert not examine_first(store, made_with(OWN), task, PREPROCESSING).refusals
    assert not examine_first(store, made_with(OTHER), task, None).refusals
    with pytest.raises(OtherPreprocessingError, match="preprocessing_digest"):
        examine_first(store, made_with(OTHER), task, PREPROCESSING)


@sqlite_only
def test_external_models_preprocess_elsewhere(store: Store):
    external = add_model(store)
    register_calibration(store, external.reference, made_with(OTHER), actor="tests")
    register_calibration(store, external.reference, made_with("cd" * 32, seed=1), actor="tests")
    first, _ = store.calibration_sets.list(external.reference)
    assert store.calibration_sets.activate(external.reference, first.id, actor="tests").id == first.id


def as_if_made_elsewhere(store: Store, set_id: int) -> None:
    sets = tables.calibration_sets
    with store.database.write() as connection:
        change = sets.update().where(sets.c.id == set_id).values(preprocessing_digest=OTHER)
        connection.execute(change)


@sqlite_only
def test_a_stored_set_of_another_preprocessing_is_not_activated(store: Store, model: Model):
    register_calibration(store, model.reference, made_with(OWN), actor="tests")
    register_calibration(store, model.reference, made_with(OWN, seed=1), actor="tests")
    first, second = store.calibration_sets.list(model.reference)
    as_if_made_elsewhere(store, first.id)
    with pytest.raises(OtherPreprocessingError) as caught:
        store.calibration_sets.activate(model.reference, first.id, actor="tests")
    assert caught.value.field == "calibration_set"
    assert store.models.get(model.reference).calibration_set_id == second.id


@sqlite_only
def test_a_roll_back_is_never_refused(store: Store, model: Model):
    register_calibration(store, model.reference, made_with(OWN), actor="tests")
    register_calibration(store, model.reference, made_with(OWN, seed=1), actor="tests")
    first, _ = store.calibration_sets.list(model.reference)
    as_if_made_elsewhere(store, first.id)
    store.heads.rollback(model.reference, environment=None, actor="tests")
    assert store.registry().preprocessing_digests == {model.id: OTHER}


@sqlite_only
def test_a_model_that_was_calibrated_otherwise_is_promoted_with_a_reason_only(store: Store, model: Model):
    register_calibration(store, model.reference, made_with(OWN), actor="tests")
    second = add_graph(store)
    register_calibration(store, second.reference, made_with(OWN, seed=1), actor="tests")
    as_if_made_elsewhere(store, store.calibration_sets.list(second.reference)[0].id)
    with pytest.raises(CalibratedOtherwiseError) as caught:
        promote_calibrated(store, second.reference, actor="tests")
    assert caught.value.field == "model"
    assert store.tasks.get("lesions").promoted_model_id == model.id
    promote_calibrated(store, second.reference, actor="tests", force_reason="same libjpeg")
    assert store.tasks.get("lesions").promoted_model_id == second.id
    (noted, *_) = store.audit.list(action="models.promote", subject=second.reference)
    assert noted.details["force_reason"] == "same libjpeg"
    assert "another preprocessing" in noted.details["finding"]
