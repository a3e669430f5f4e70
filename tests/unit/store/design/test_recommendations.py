"""A recommendation is attached with its costs in one transaction, and the workers get the new registry."""

from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.decision_rules.rules import rule_document
from lifelong_core.deploy import Argmax, BayesRule, CutOffs, TargetValue, fit_head
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.store import Registry, Store, register_calibration
from lifelong_core.store.design import recommendations
from lifelong_core.store.heads import registration
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from tests.databases import sqlite_only
from tests.unit.store.at_once import at_once
from tests.unit.store.design_samples import (
    RISK_THRESHOLD,
    SCREENING,
    SENSITIVITY,
    STATED_COSTS,
    WITH_ABSTENTION,
    binary_recommendation,
    recommendation,
    recommendation_without_costs,
)
from tests.unit.store.samples import CLASSES, COSTS, add_model, add_serving_model, calibration

THRESHOLDS = (
    AcceptanceThreshold(metric="EC", value=0.5),
    AcceptanceThreshold(metric="AUROC", value=0.9, class_index=2, by="estimate"),
)


def registry_of(store: Store) -> Registry:
    found = store.registry()
    assert found is not None
    return found


def add_task(store: Store) -> None:
    store.tasks.add("lesions", CLASSES, COSTS, actor="tests")


def attach(store: Store, version: int | None = None, **answers: Any) -> int:
    return store.recommendations.attach(
        "lesions", recommendation(**answers), expected_version=version, actor="ann"
    ).version


def everything(store: Store) -> tuple[Any, ...]:
    return (store.registry(), store.audit.list(), store.recommendations.list("lesions"))


def test_what_is_attached_is_found_again_to_the_letter(store: Store):
    add_task(store)
    assert store.recommendations.current("lesions") is None
    meant = recommendation()
    attached = store.recommendations.attach("lesions", meant, thresholds=THRESHOLDS, actor="ann")
    assert (attached.task, attached.version, attached.created_by) == ("lesions", 1, "ann")
    assert (attached.document, attached.recommendation, attached.thresholds) == (
        meant.to_json(),
        meant,
        THRESHOLDS,
    )
    second = store.recommendations.attach("lesions", recommendation_without_costs(), actor="bob")
    assert (second.version, second.thresholds) == (2, ())
    assert store.recommendations.current("lesions") == second
    assert store.recommendations.get("lesions", 1) == attached
    assert store.recommendations.list("lesions") == [attached, second]


def test_the_stated_costs_become_the_tasks_and_a_worker_learns_of_them(store: Store):
    add_task(store)
    before = registry_of(store)
    attach(store)
    after = store.registry(before.revision)
    assert after is not None
    assert after.revision > before.revision
    (task,) = after.tasks.values()
    assert np.array_equal(task.costs, STATED_COSTS)
    assert store.tasks.get("lesions") == task
    entries = store.audit.list(limit=2)
    digest = store.recommendations.get("lesions", 1).digest
    assert [(entry.actor, entry.action, entry.subject) for entry in entries] == [
        ("ann", "recommendations.attach", "lesions"),
        ("ann", "tasks.costs", "lesions"),
    ]
    assert entries[0].details == {"version": 1, "digest": digest}
    changed = {"old": COSTS.tolist(), "new": [list(row) for row in STATED_COSTS]}
    assert entries[1].details == {"version": 1, "digest": digest, **changed}


@sqlite_only
@pytest.mark.parametrize(
    "attached",
    [
        recommendation_without_costs(decision_rule="cost_benefit"),
        # Without decisions nothing depends on what they cost.
        recommendation(decision_rule="none"),
        recommendation(costs=COSTS.tolist()),
    ],
    ids=["none", "unused", "the same"],
)
def test_costs_on_which_nothing_rests_and_those_of_the_task_change_nothing(store: Store, attached: Any):
    add_task(store)
    store.recommendations.attach("lesions", attached, actor="ann")
    assert np.array_equal(store.tasks.get("lesions").costs, COSTS)
    assert [entry.action for entry in store.audit.list()] == ["recommendations.attach", "tasks.add"]


@sqlite_only
def test_costs_that_reward_errors_become_the_tasks_only_with_a_reason(store: Store):
    add_task(store)
    gains = recommendation(costs=(-COSTS).tolist())
    before = everything(store)
    with pytest.raises(InvalidInputError, match=r"costs: .*the right one"):
        store.recommendations.attach("lesions", gains, actor="ann")
    assert everything(store) == before
    store.recommendations.attach("lesions", gains, force_reason="a test", actor="ann")
    assert np.array_equal(store.tasks.get("lesions").costs, -COSTS)
    details = store.audit.list(limit=2)[1].details
    assert (details["force_reason"], "the right one" in details["finding"]) == ("a test", True)
    store.recommendations.attach("lesions", gains, actor="ann")


def test_the_stated_rule_becomes_the_tasks_and_a_worker_learns_of_it(store: Store):
    store.tasks.add("screening", ("benign", "malignant"), 1 - np.eye(2), actor="tests")
    before = registry_of(store)
    for version, (asked, rule) in enumerate(
        [
            (SENSITIVITY, TargetValue("TPR", 0.9)),
            (RISK_THRESHOLD, CutOffs(0.1)),
            (RISK_THRESHOLD, CutOffs(0.1)),
            (SCREENING, BayesRule()),
        ],
        start=1,
    ):
        store.recommendations.attach("screening", binary_recommendation(asked), actor="ann")
        assert store.tasks.get("screening").decision_rule == rule
        assert store.recommendations.current("screening") == store.recommendations.get("screening", version)
    after = store.registry(before.revision)
    assert after is not None
    assert list(after.tasks.values()) == [store.tasks.get("screening")]
    assert np.array_equal(store.tasks.get("screening").costs, SCREENING["costs"])
    entries = store.audit.list(action="tasks.decision_rule")
    target, threshold, bayes = (
        rule_document(rule) for rule in (TargetValue("TPR", 0.9), CutOffs(0.1), BayesRule())
    )
    changes = [(one.details["version"], one.details["old"], one.details["new"]) for one in entries]
    assert changes == [(4, threshold, bayes), (2, target, threshold), (1, bayes, target)]
    assert {(one.actor, one.subject) for one in entries} == {("ann", "screening")}


OPTIMISED = recommendation_without_costs(decision_rule="optimization", optimised_metric="BA")


@sqlite_only
@pytest.mark.parametrize(
    "attached",
    [
        recommendation(decision_rule="none"),
        # A document of an earlier version: no head decides for the best likelihood ratio.
        OPTIMISED.model_copy(
            update={"fingerprint": OPTIMISED.fingerprint.with_answer("optimised_metric", "LR+")}
        ),
    ],
    ids=["none", "not executed"],
)
def test_a_rule_that_no_head_executes_leaves_that_of_the_task(store: Store, attached: Any):
    store.tasks.add("lesions", CLASSES, COSTS, decision_rule=Argmax(), actor="tests")
    store.recommendations.attach("lesions", attached, actor="ann")
    assert store.tasks.get("lesions").decision_rule == Argmax()


@sqlite_only
def test_a_recommendation_for_other_classes_changes_nothing(store: Store):
    store.tasks.add("lesions", CLASSES[:2], [[0, 1], [1, 0]], actor="tests")
    before = everything(store)
    with pytest.raises(
        InvalidInputError, match=r"^number_of_classes: .* for 3 classes, the task lesions has 2"
    ):
        attach(store)
    assert everything(store) == before


@sqlite_only
@pytest.mark.parametrize("costs", [((0.0, 1.0), (1.0, 0.0)), ((0.0,) * 5,) * 3])
def test_costs_of_another_shape_change_nothing(store: Store, costs: Any):
    """As in a document that nobody's interview gave."""
    add_task(store)
    made = recommendation()
    forged = made.model_copy(update={"fingerprint": made.fingerprint.model_copy(update={"costs": costs})})
    before = everything(store)
    with pytest.raises(InvalidInputError, match=r"^costs: expected shape \(3, 3\) or \(3, 4\)"):
        store.recommendations.attach("lesions", forged, actor="ann")
    assert everything(store) == before


@sqlite_only
@pytest.mark.parametrize(
    "threshold",
    [
        AcceptanceThreshold(metric="MCC", value=0.5),
        AcceptanceThreshold(metric="AUROC", value=0, class_index=3),
    ],
)
def test_thresholds_of_what_is_not_recommended_change_nothing(store: Store, threshold: AcceptanceThreshold):
    add_task(store)
    before = everything(store)
    with pytest.raises(InvalidInputError):
        store.recommendations.attach("lesions", recommendation(), thresholds=[threshold], actor="ann")
    assert everything(store) == before


@sqlite_only
def test_a_head_that_was_published_keeps_its_costs_and_goes_on_serving(store: Store):
    model, record = add_serving_model(store)
    attach(store)
    after = registry_of(store)
    assert after.head_for(after.models[model.id], "anywhere") == record
    assert after.damaged == {}
    assert np.array_equal(record.head.costs, COSTS)
    refitted = register_calibration(store, model.reference, calibration(), actor="ann")
    assert np.array_equal(refitted.head.costs, STATED_COSTS)


@sqlite_only
def test_a_task_may_begin_to_abstain_until_it_has_a_head(store: Store):
    add_task(store)
    attach(store, costs=WITH_ABSTENTION)
    assert store.tasks.get("lesions").costs.shape == (3, 4)
    attach(store)
    add_serving_model(store)
    before = everything(store)
    with pytest.raises(
        ConflictError, match=r"^costs: the heads of lesions decide between 3 options, .* for 4\."
    ):
        attach(store, costs=WITH_ABSTENTION)
    assert everything(store) == before


def test_who_saw_an_older_version_changes_nothing(store: Store):
    add_task(store)
    assert attach(store, 0) == 1
    before = everything(store)
    with pytest.raises(ConflictError, match=r"version 1, expected 0"):
        attach(store, 0, costs=COSTS.tolist())
    assert everything(store) == before
    assert attach(store, 1) == 2
    assert attach(store) == 3


def test_of_several_who_attach_at_once_one_succeeds(store: Store, artifacts_url: str):
    add_task(store)
    outcomes = at_once(store, artifacts_url, *[lambda own: attach(own, 0)] * 4)
    assert sorted(isinstance(one, ConflictError) for one in outcomes) == [False, True, True, True]
    assert [one.version for one in store.recommendations.list("lesions")] == [1]


def test_it_is_all_or_nothing(store: Store, monkeypatch: pytest.MonkeyPatch):
    add_task(store)
    before = everything(store)

    def fail(*_: object, **__: object) -> None:
        raise ConflictError("somebody was faster.")

    monkeypatch.setattr(recommendations, "write_audit", fail)
    with pytest.raises(ConflictError, match="faster"):
        attach(store)
    assert everything(store) == before


@sqlite_only
def test_a_head_is_not_fitted_for_costs_that_changed_meanwhile(store: Store, monkeypatch: pytest.MonkeyPatch):
    model = add_model(store)

    def fit_slowly(*arguments: Any, **options: Any) -> Any:
        attach(store)
        return fit_head(*arguments, **options)

    monkeypatch.setattr(registration, "fit_head", fit_slowly)
    with pytest.raises(ConflictError, match=r"^costs: the costs or the decision rule of lesions changed"):
        register_calibration(store, model.reference, calibration(), actor="ann")
    assert store.heads.list(model.reference) == []
    monkeypatch.undo()
    register_calibration(store, model.reference, calibration(), actor="ann")


@sqlite_only
def test_a_head_is_not_fitted_for_a_rule_that_changed_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    model = add_model(store)

    def fit_slowly(*arguments: Any, **options: Any) -> Any:
        store.recommendations.attach("lesions", recommendation_without_costs(), actor="ann")
        return fit_head(*arguments, **options)

    monkeypatch.setattr(registration, "fit_head", fit_slowly)
    with pytest.raises(ConflictError, match=r"decision rule of lesions changed while the head was fitted"):
        register_calibration(store, model.reference, calibration(), actor="ann")
    assert store.heads.list(model.reference) == []


@sqlite_only
def test_what_is_not_there_is_not_found(store: Store):
    add_task(store)
    for look in (store.recommendations.current, store.recommendations.list):
        with pytest.raises(NotFoundError, match="no task 'other'"):
            look("other")
    with pytest.raises(NotFoundError, match="no task 'other'"):
        store.recommendations.attach("other", recommendation(), actor="ann")
    with pytest.raises(NotFoundError, match="no recommendation 1"):
        store.recommendations.get("lesions", 1)


DAMAGE = {
    "nothing": {"document": ""},
    "another number": {"document": recommendation().to_json().replace("20.0", "21.0")},
    "other thresholds": {"thresholds": "[]"},
    "no thresholds": {"thresholds": "{}"},
}


@sqlite_only
@pytest.mark.parametrize("values", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_one_is_named_when_it_is_read_and_keeps_no_other_from_being_read(
    store: Store, values: dict[str, str]
):
    add_task(store)
    for _ in range(2):
        store.recommendations.attach("lesions", recommendation(), thresholds=THRESHOLDS, actor="ann")
    rows = tables.recommendations
    with store.database.write() as connection:
        connection.execute(sa.update(rows).where(rows.c.version == 1).values(**values))
    first, second = store.recommendations.list("lesions")
    assert (second.recommendation, second.thresholds) == (recommendation(), THRESHOLDS)
    with pytest.raises(UnavailableError, match="recommendation 1 of lesions is damaged"):
        _ = first.recommendation
    with pytest.raises(UnavailableError, match="recommendation 1 of lesions is damaged"):
        _ = first.thresholds


@sqlite_only
@pytest.mark.parametrize("column", ["document", "thresholds"])
def test_text_that_is_not_utf_8_damages_its_own_recommendation_only(store: Store, column: str):
    """PostgreSQL refuses such text; in a file, a bit may have turned."""
    add_task(store)
    for _ in range(2):
        attach(store)
    with store.database.write() as connection:
        changed = f"UPDATE recommendations SET {column} = CAST(x'7bff' || {column} AS TEXT) WHERE version = 1"
        connection.exec_driver_sql(changed)
    first, second = store.recommendations.list("lesions")
    assert second == store.recommendations.current("lesions")
    assert second.recommendation == recommendation()
    assert first.created_by == "ann"
    with pytest.raises(UnavailableError, match="recommendation 1 of lesions is damaged"):
        _ = store.recommendations.get("lesions", 1).recommendation
