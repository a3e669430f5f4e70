"""The gate: nothing that misses its acceptance thresholds is promoted, unless there is a reason."""

import json
import re
from typing import Any

import pytest

from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.store import (
    Evaluation,
    Model,
    NotAcceptedError,
    Store,
    WorseModelError,
    check_accepted,
    check_promotion,
    promote_calibrated,
    register_calibration,
)
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from tests.databases import sqlite_only
from tests.unit.store.design_samples import recommendation_without_costs
from tests.unit.store.samples import add_model, add_serving_model, blurred, calibration, head, record_report

THRESHOLD = AcceptanceThreshold(metric="BA", value=0.7)
MISSED = {
    "threshold": {"metric": "BA", "value": 0.7, "class_index": None, "by": "interval"},
    "value": 0.61,
    "passed": False,
    "why": "The lower end of the 95 % interval, 0.61, is below 0.7.",
}


@pytest.fixture
def challenger(store: Store) -> Model:
    """A calibrated model of a task that serves another one and has a threshold."""
    add_serving_model(store)
    model = add_model(store)
    register_calibration(store, model.reference, calibration(2), actor="ann")
    attach(store, THRESHOLD)
    return model


def attach(store: Store, *thresholds: AcceptanceThreshold) -> None:
    store.recommendations.attach(
        "lesions", recommendation_without_costs(), thresholds=thresholds, actor="ann"
    )


def default_head(store: Store, model: Model) -> str:
    registry = store.registry()
    assert registry is not None
    return registry.heads[(model.id, None)].head.digest


def evaluate(store: Store, model: Model, *, accepted: bool | None, **changes: Any) -> Evaluation:
    outcomes = [MISSED | {"passed": accepted}]
    given: dict[str, Any] = {
        "result": json.dumps({"acceptance": outcomes}).encode(),
        "report": None,
        "labelled_set": b"a set",
        "head": default_head(store, model),
        "recommendation_version": 1,
        "accepted": accepted,
        "samples": 120,
        "actor": "ann",
    }
    return store.evaluations.put(model.reference, **given | changes)


def promoted(store: Store) -> int | None:
    return store.tasks.get("lesions").promoted_model_id


def test_an_accepted_model_is_promoted(store: Store, challenger: Model) -> None:
    evaluate(store, challenger, accepted=True)
    assert check_accepted(store, challenger.reference) is None
    promote_calibrated(store, challenger.reference, actor="ann")
    assert promoted(store) == challenger.id
    assert "force_reason" not in (store.audit.list(action="models.promote", limit=1)[0].details or {})


@sqlite_only
@pytest.mark.parametrize("verdict", [False, None])
def test_a_missed_or_undecided_threshold_keeps_it_back(
    store: Store, challenger: Model, verdict: bool | None
) -> None:
    evaluate(store, challenger, accepted=True)
    newest = evaluate(store, challenger, accepted=verdict)
    with pytest.raises(NotAcceptedError) as refused:
        promote_calibrated(store, challenger.reference, actor="ann")
    error = refused.value
    assert "BA: the lower end of the 95 % interval, 0.61, is below 0.7." in error.message
    assert (error.code, error.field) == ("not_accepted", "model")
    assert "--force-because" in (error.hint or "")
    assert error.details is not None
    assert error.details["evaluation"]["id"] == str(newest.id)
    assert error.details["outcomes"] == [MISSED | {"passed": verdict}]
    assert promoted(store) != challenger.id


@sqlite_only
def test_a_model_that_was_never_validated_is_kept_back_with_the_command_that_validates_it(
    store: Store, challenger: Model
) -> None:
    with pytest.raises(NotAcceptedError, match="never validated") as refused:
        promote_calibrated(store, challenger.reference, actor="ann")
    assert f"lifelong models validate {challenger.reference}" in (refused.value.hint or "")
    assert refused.value.details is not None
    assert refused.value.details["evaluation"] is None


def test_an_evaluation_counts_for_the_present_recommendation_only(store: Store, challenger: Model) -> None:
    evaluate(store, challenger, accepted=True)
    attach(store, THRESHOLD)
    with pytest.raises(NotAcceptedError, match="present recommendation of its task, version 2"):
        check_accepted(store, challenger.reference)
    evaluate(store, challenger, accepted=True, recommendation_version=2)
    check_accepted(store, challenger.reference)


@sqlite_only
def test_an_evaluation_counts_for_the_present_default_head_only(store: Store, challenger: Model) -> None:
    evaluate(store, challenger, accepted=True)
    store.heads.publish(challenger.reference, head(3.0), environment=None, actor="ann")
    with pytest.raises(NotAcceptedError, match="present default head"):
        check_accepted(store, challenger.reference)
    evaluate(store, challenger, accepted=True)
    check_accepted(store, challenger.reference)


def test_a_reason_overrides_it_and_goes_to_the_audit_log(store: Store, challenger: Model) -> None:
    evaluate(store, challenger, accepted=False)
    with pytest.raises(InvalidInputError, match="reason"):
        promote_calibrated(store, challenger.reference, actor="ann", force_reason=" ")
    promote_calibrated(
        store, challenger.reference, actor="ann", force_reason="the scanner of the old one broke"
    )
    details = store.audit.list(action="models.promote", limit=1)[0].details
    assert details is not None
    assert details["force_reason"] == "the scanner of the old one broke"
    assert "misses the acceptance thresholds" in details["finding"]
    assert promoted(store) == challenger.id


@sqlite_only
def test_both_findings_are_logged_where_a_reason_overrides_both(store: Store) -> None:
    add_model(store)
    register_calibration(store, "dermatology@1", calibration(1, 600), actor="ann")
    add_model(store)
    register_calibration(store, "dermatology@2", blurred(calibration(1, 600)), actor="ann")
    attach(store, THRESHOLD)
    promote_calibrated(store, "dermatology@2", actor="ann", force_reason="the old one leaks memory")
    details = store.audit.list(action="models.promote", limit=1)[0].details
    assert details is not None
    assert "never validated" in details["finding"]
    assert "does worse than the promoted" in details["finding"]


@sqlite_only
def test_without_thresholds_nothing_is_asked_for(store: Store) -> None:
    add_serving_model(store)
    model = add_model(store)
    register_calibration(store, model.reference, calibration(2), actor="ann")
    check_accepted(store, model.reference)
    attach(store)
    promote_calibrated(store, model.reference, actor="ann")
    assert promoted(store) == model.id


@sqlite_only
def test_the_served_model_is_not_asked_for_again(store: Store) -> None:
    model, _ = add_serving_model(store)
    attach(store, THRESHOLD)
    promote_calibrated(store, model.reference, actor="ann")
    assert promoted(store) == model.id


@sqlite_only
def test_the_first_model_of_a_task_takes_over_with_its_calibration(store: Store) -> None:
    model = add_model(store)
    attach(store, THRESHOLD)
    register_calibration(store, model.reference, calibration(), actor="ann")
    assert promoted(store) == model.id


@sqlite_only
def test_a_refusal_stands_without_the_stored_result(store: Store, challenger: Model) -> None:
    found = evaluate(store, challenger, accepted=False)
    store.artifacts.remove(found.result)
    with pytest.raises(
        NotAcceptedError, match=r"misses the acceptance thresholds of its task on 120 cases\."
    ):
        check_accepted(store, challenger.reference)


@sqlite_only
def test_an_unknown_model_is_named(store: Store) -> None:
    with pytest.raises(NotFoundError):
        check_accepted(store, "nobody@1")


@sqlite_only
def test_a_model_that_its_newest_report_advises_against_is_promoted_only_with_a_reason(
    store: Store, challenger: Model
) -> None:
    evaluate(store, challenger, accepted=True)
    record_report(store, challenger, against="other@7", advice="reject")
    assert check_promotion(store, challenger.reference) is None, "a report against another model"
    record_report(store, challenger, against="dermatology@1", advice="reject")
    said = f"report of {challenger.reference} against dermatology@1, of .* UTC, says: Do not promote: it is worse"
    for force in (None, " "):
        with pytest.raises(WorseModelError if force is None else InvalidInputError) as refused:
            promote_calibrated(store, challenger.reference, actor="ann", force_reason=force)
        if force is None:
            assert re.search(said, refused.value.message)
    promote_calibrated(store, challenger.reference, actor="ann", force_reason="the old one leaks memory")
    (entry,) = store.audit.list(action="models.promote", limit=1)
    assert entry.details["force_reason"] == "the old one leaks memory"
    assert re.search(said, entry.details["finding"])


@sqlite_only
def test_a_newer_report_takes_back_the_advice_of_an_older_one(store: Store, challenger: Model) -> None:
    evaluate(store, challenger, accepted=True)
    record_report(store, challenger, against="dermatology@1", advice="reject")
    record_report(store, challenger, against="dermatology@1", advice="decide")
    assert check_promotion(store, challenger.reference) is None
