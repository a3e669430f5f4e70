import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, TargetValue, fit_head
from lifelong_core.store import (
    Model,
    RefusedCalibrationError,
    Store,
    WorseModelError,
    examine_candidate,
    promote_calibrated,
    publish_candidate,
    register_calibration,
)
from lifelong_core.store.heads import heads
from lifelong_core.values.errors import ConflictError, InvalidInputError, UnidentifiableError
from lifelong_core.values.preprocessing import Preprocessing
from tests.databases import sqlite_only
from tests.unit.store.samples import CLASSES, COSTS, add_model, blurred, calibration, head


def add_onnx_model(store: Store) -> Model:
    store.tasks.add("lesions", CLASSES, COSTS, actor="test")
    return store.models.add(
        "lesions", "dermatology", kind="onnx", onnx=b"graph", preprocessing=Preprocessing(), actor="test"
    )


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


@sqlite_only
def test_the_head_decides_by_the_rule_of_the_task(store: Store):
    rule = TargetValue("TPR", 0.8, 2)
    store.tasks.add("lesions", CLASSES, COSTS, decision_rule=rule, actor="test")
    model = store.models.add("lesions", "dermatology", kind="external", actor="test")
    labelled = calibration(5)
    head = register_calibration(store, "dermatology", labelled, actor="ann").head
    assert head.digest == fit_head(labelled, COSTS, class_names=CLASSES, decision_rule=rule).digest
    decided = head.apply(labelled.logits).decisions[labelled.labels == 2]
    assert (decided == 2).mean() >= 0.8
    assert store.registry().heads[model.id, None].head == head


@sqlite_only
def test_the_head_can_be_made_for_another_prevalence(store: Store):
    add_model(store)
    target = [0.7, 0.2, 0.1]
    record = register_calibration(store, "dermatology", calibration(), actor="ann", target_prevalence=target)
    assert np.allclose(record.head.assumed_prevalence, target)


@sqlite_only
def test_a_task_that_serves_a_model_goes_on_serving_it(store: Store):
    first = add_model(store, "derm")
    register_calibration(store, "derm@1", calibration(1), actor="ann")
    add_model(store, "derm")
    register_calibration(store, "derm@2", calibration(2), actor="ann")
    assert store.tasks.get("lesions").promoted_model_id == first.id


@sqlite_only
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


@sqlite_only
def test_a_set_that_lacks_a_class_does_not_go_live(store: Store):
    model = add_model(store)
    complete = calibration()
    lacking = complete.select(complete.labels != 1)
    with pytest.raises(UnidentifiableError, match="benign"):
        register_calibration(store, model.reference, lacking, actor="tests")
    assert store.heads.list(model.reference) == []
    assert store.calibration_sets.list(model.reference) == []


@sqlite_only
def test_the_audit_log_keeps_the_report(store: Store):
    add_model(store)
    register_calibration(store, "dermatology", calibration(), actor="ann")
    (entry,) = [one for one in store.audit.list() if one.action == "calibration_sets.add"]
    assert entry.details["report"]["verdict"] == "accepted"
    assert entry.details["report"]["new"]["accuracy"]["value"] > 0.7
    assert "force_reason" not in entry.details


@sqlite_only
def test_a_refused_set_needs_a_reason(store: Store):
    model = add_model(store)
    good = calibration()
    swapped = LabeledLogits(good.logits, np.array([1, 0, 2])[good.labels])
    before = (store.registry(), store.audit.list())
    with pytest.raises(RefusedCalibrationError, match="healthy and benign look swapped") as caught:
        register_calibration(store, model.reference, swapped, actor="ann")
    document = {**caught.value.report.to_document(), "old_head_version": None}
    assert (caught.value.field, caught.value.details) == ("labels", document)
    with pytest.raises(InvalidInputError) as empty:
        register_calibration(store, model.reference, swapped, actor="ann", force_reason="  ")
    assert empty.value.field == "force_reason"
    assert (store.registry(), store.audit.list()) == before
    assert (
        register_calibration(store, "dermatology", swapped, actor="ann", force_reason="a test").version == 1
    )
    (entry,) = [one for one in store.audit.list() if one.action == "calibration_sets.add"]
    assert entry.details["force_reason"] == "a test"
    assert entry.details["report"]["verdict"] == "refused"


@sqlite_only
def test_probabilities_are_no_calibration_set_even_with_a_reason(store: Store):
    model = add_model(store)
    good = calibration()
    exponentials = np.exp(good.logits)
    shares = exponentials / exponentials.sum(axis=1, keepdims=True)
    with pytest.raises(InvalidInputError, match="got probabilities"):
        register_calibration(
            store, model.reference, LabeledLogits(shares, good.labels), actor="ann", force_reason="a test"
        )
    logarithms = LabeledLogits(np.log(shares), good.labels)
    assert register_calibration(store, model.reference, logarithms, actor="ann").version == 1


@sqlite_only
def test_the_set_that_was_compared_with_must_still_be_the_active_one(store: Store):
    model = add_model(store)
    candidate = examine_candidate(store, model.reference, calibration(1))
    register_calibration(store, model.reference, calibration(2), actor="ann")
    with pytest.raises(ConflictError, match="another calibration set"):
        publish_candidate(store, candidate, actor="bob")


@sqlite_only
def test_a_set_whose_predecessor_is_lost_is_judged_alone(store: Store):
    model = add_model(store)
    register_calibration(store, model.reference, calibration(1), actor="ann")
    (record,) = store.calibration_sets.list(model.reference)
    assert examine_candidate(store, model.reference, calibration(2)).report.previous is not None
    store.artifacts.remove(record.digest)
    assert examine_candidate(store, model.reference, calibration(2)).report.previous is None


@sqlite_only
@pytest.mark.parametrize("damage", ["gone", "damaged"])
def test_a_model_whose_stored_graph_is_gone_or_damaged_is_not_promoted(store: Store, damage: str):
    model = add_onnx_model(store)
    register_calibration(store, "dermatology", calibration(), actor="ann")
    assert model.artifact is not None
    graph = store.artifacts.path(model.artifact)
    content = graph.read_bytes()
    graph.unlink() if damage == "gone" else graph.write_bytes(b"other bytes")
    with pytest.raises(ConflictError, match=model.artifact) as refused:
        promote_calibrated(store, "dermatology@1", actor="ann")
    assert "backup" in str(refused.value.hint)
    graph.write_bytes(content)
    assert promote_calibrated(store, "dermatology@1", actor="ann").id == model.id


@sqlite_only
def test_the_first_calibration_promotes_no_model_whose_stored_graph_is_gone(store: Store):
    model = add_onnx_model(store)
    assert model.artifact is not None
    store.artifacts.remove(model.artifact)
    before = store.registry()
    with pytest.raises(ConflictError, match=model.artifact):
        register_calibration(store, "dermatology", calibration(), actor="ann")
    assert store.registry() == before


@sqlite_only
def test_a_version_that_does_worse_than_the_promoted_one_is_named_and_not_promoted(store: Store):
    first = add_model(store)
    register_calibration(store, "dermatology@1", calibration(1, 600), actor="ann")
    add_model(store)
    report = examine_candidate(store, "dermatology@2", blurred(calibration(1, 600))).report
    (found,) = [finding for finding in report.findings if finding.code == "worse_than_promoted"]
    assert found.severity == "warning"
    assert "dermatology@2 does worse than the promoted dermatology@1 on its set: accuracy" in found.text
    register_calibration(store, "dermatology@2", blurred(calibration(1, 600)), actor="ann")
    with pytest.raises(WorseModelError, match="does worse than the promoted dermatology@1"):
        promote_calibrated(store, "dermatology@2", actor="ann")
    assert store.tasks.get("lesions").promoted_model_id == first.id
    with pytest.raises(InvalidInputError, match="reason"):
        promote_calibrated(store, "dermatology@2", actor="ann", force_reason=" ")
    promote_calibrated(store, "dermatology@2", actor="ann", force_reason="the first one leaks memory")
    entry = store.audit.list(limit=1)[0]
    assert entry.action == "models.promote"
    assert entry.details == {"force_reason": "the first one leaks memory", "finding": found.text}


@sqlite_only
def test_a_version_that_is_as_good_is_promoted_without_a_word(store: Store):
    add_model(store)
    register_calibration(store, "dermatology@1", calibration(1, 600), actor="ann")
    second = add_model(store)
    record = examine_candidate(store, "dermatology@2", calibration(2, 600))
    assert "worse_than_promoted" not in [finding.code for finding in record.report.findings]
    register_calibration(store, "dermatology@2", calibration(2, 600), actor="ann")
    promote_calibrated(store, "dermatology@2", actor="ann")
    assert store.tasks.get("lesions").promoted_model_id == second.id


@sqlite_only
def test_a_set_is_compared_with_the_last_one_that_was_not_forced(store: Store):
    add_model(store)
    register_calibration(store, "dermatology", calibration(1, 600), actor="ann")
    register_calibration(
        store, "dermatology", blurred(calibration(2, 600)), actor="ann", force_reason="another scanner"
    )
    report = examine_candidate(store, "dermatology", blurred(calibration(3, 600))).report
    assert [finding.code for finding in report.refusals] == ["worse_than_previous"]
    assert not examine_candidate(store, "dermatology", calibration(3, 600)).report.refusals
