import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, fit_head
from lifelong_core.errors import ConflictError, InvalidInputError, UnidentifiableError
from lifelong_core.store import Store, heads, register_calibration
from tests.unit.store.samples import CLASSES, COSTS, add_model, calibration, head


def test_a_calibrated_model_serves_with_the_head_fitted_on_its_set(store: Store):
    model = add_model(store)
    labelled = calibration(5)
    record = register_calibration(store, "dermatology", labelled, actor="ann")
    registry = store.registry()
    assert registry is not None
    served = registry.resolve_model(None)
    assert served.id == model.id
    assert served.calibration_set_id is not None
    assert store.calibration_sets.load(served.calibration_set_id) == labelled
    assert registry.head_for(served, "anywhere") == record
    assert record.head.digest == fit_head(labelled, COSTS, class_names=CLASSES).digest
    assert record.head.provenance["model"] == "dermatology@1"
    actions = [(entry.action, entry.subject, entry.actor) for entry in store.audit.list(limit=3)]
    assert actions == [
        ("models.promote", "dermatology@1", "ann"),
        ("heads.publish", "dermatology@1/(default head)", "ann"),
        ("calibration_sets.add", "dermatology@1", "ann"),
    ]


def test_the_head_can_be_made_for_another_prevalence(store: Store):
    add_model(store)
    target = [0.7, 0.2, 0.1]
    record = register_calibration(store, "dermatology", calibration(), actor="ann", target_prevalence=target)
    assert np.allclose(record.head.assumed_prevalence, target)


def test_a_task_that_serves_a_model_goes_on_serving_it(store: Store):
    first = add_model(store, "derm")
    register_calibration(store, "derm@1", calibration(1), actor="ann")
    add_model(store, "derm")
    register_calibration(store, "derm@2", calibration(2), actor="ann")
    assert store.tasks.get("lesions").promoted_model_id == first.id


def test_a_set_that_does_not_fit_changes_nothing(store: Store):
    add_model(store)
    before = store.registry()
    with pytest.raises(InvalidInputError, match="expected 3 columns"):
        register_calibration(store, "dermatology", LabeledLogits(np.eye(2), [0, 1]), actor="ann")
    assert store.registry() == before


def test_it_is_all_or_nothing(store: Store, monkeypatch: pytest.MonkeyPatch):
    add_model(store)
    before = (store.registry(), store.audit.list(), store.calibration_sets.list("dermatology"))

    def fail(*_: object, **__: object) -> None:
        raise ConflictError("somebody was faster.")

    monkeypatch.setattr(heads.activations, "activate", fail)
    with pytest.raises(ConflictError, match="faster"):
        register_calibration(store, "dermatology", calibration(), actor="ann")
    assert (store.registry(), store.audit.list(), store.calibration_sets.list("dermatology")) == before
    monkeypatch.undo()
    assert store.heads.publish("dermatology", head(), environment=None, actor="ann").version == 1


def test_a_set_that_lacks_a_class_does_not_go_live(store: Store):
    model = add_model(store)
    complete = calibration()
    lacking = complete.select(complete.labels != 1)
    with pytest.raises(UnidentifiableError, match="benign"):
        register_calibration(store, model.reference, lacking, actor="tests")
    assert store.heads.list(model.reference) == []
    assert store.calibration_sets.list(model.reference) == []
