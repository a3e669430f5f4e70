"""A recommendation and its refitted heads come into force together, or neither does."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.deploy import Argmax, LabeledLogits, PostProcessingHead, fit_head
from lifelong_core.design import Recommendation
from lifelong_core.store import (
    HeadRecord,
    Model,
    Store,
    attach_and_refit,
    promote_calibrated,
    register_calibration,
)
from lifelong_core.store.heads import refitting
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError
from tests.databases import sqlite_only
from tests.unit.store.design_samples import (
    SENSITIVITY,
    STATED_COSTS,
    binary_recommendation,
    recommendation,
    recommendation_without_costs,
)
from tests.unit.store.samples import CLASSES, COSTS, add_model, add_serving_model, calibration, cycle, head

TARGET = (0.7, 0.2, 0.1)
SITE = "site-a"
OF_SITE = (0.1, 0.3, 0.6)


def everything(store: Store) -> tuple[Any, ...]:
    return (
        store.registry(),
        store.audit.list(),
        store.recommendations.list("lesions"),
        store.heads.list("dermatology"),
    )


def for_target() -> Recommendation:
    return recommendation(
        target_prevalences_known=True,
        target_prevalences=TARGET,
        class_contribution=None,
    )


def of_site(costs: Any = COSTS) -> PostProcessingHead:
    """As a cycle of the site fits it."""
    return fit_head(calibration(), costs, target_prevalence=OF_SITE, class_names=CLASSES)


def publish(store: Store, given: PostProcessingHead, environment: str | None = SITE) -> HeadRecord:
    return store.heads.publish("dermatology", given, environment=environment, actor="ann")


def pin(store: Store, environment: str | None) -> None:
    store.heads.pin("dermatology", environment=environment, reason="study until June", actor="ann")


def serving(store: Store, model: Model, environment: str | None) -> HeadRecord:
    registry = store.registry()
    assert registry is not None
    return registry.head_for(model, environment)


def kept(found: Any) -> list[tuple[str | None, int, str]]:
    return [(one.environment, one.version, one.cause) for one in found.kept]


def test_the_default_head_is_fitted_for_stated_costs_and_class_mix(store: Store):
    model, _ = add_serving_model(store)
    found = attach_and_refit(store, "lesions", for_target(), actor="ann")
    assert (found.attached.version, found.model.id, found.kept) == (1, model.id, ())
    (published,) = found.published
    assert (published.environment, published.record.version, found.default_version) == (None, 2, 2)
    expected = fit_head(calibration(), STATED_COSTS, target_prevalence=TARGET, class_names=CLASSES)
    assert published.record.head.digest == expected.digest
    assert published.record.head.provenance["recommendation"] == 1
    assert serving(store, model, "anywhere") == published.record
    assert np.array_equal(store.tasks.get("lesions").costs, STATED_COSTS)
    assert [entry.action for entry in reversed(store.audit.list(limit=3))] == [
        "tasks.costs",
        "recommendations.attach",
        "heads.publish",
    ]


def test_an_environment_with_a_head_of_its_own_decides_by_the_new_costs_for_its_own_class_mix(store: Store):
    model, _ = add_serving_model(store)
    before = publish(store, of_site())
    logits = calibration(3).logits
    found = attach_and_refit(store, "lesions", for_target(), actor="ann")
    assert [(one.environment, one.record.version) for one in found.published] == [(None, 3), (SITE, 4)]
    present = serving(store, model, SITE)
    assert present == found.published[1].record
    assert present.head.digest == of_site(STATED_COSTS).digest
    assert present.head.provenance["recommendation"] == 1
    assert (present.head.apply(logits).decisions != before.head.apply(logits).decisions).any()
    entry = store.audit.list(limit=1)[0]
    assert (entry.actor, entry.action, entry.subject) == ("ann", "heads.publish", "dermatology@1/site-a")
    store.heads.rollback("dermatology", environment=SITE, actor="ann")
    assert serving(store, model, SITE) == before


@sqlite_only
@pytest.mark.parametrize("pinned", [SITE, None])
def test_a_pinned_head_stays_and_is_named(store: Store, pinned: str | None):
    model, default = add_serving_model(store)
    own = publish(store, of_site())
    pin(store, pinned)
    found = attach_and_refit(store, "lesions", recommendation(), actor="bob")
    assert [one.environment for one in found.published] == [SITE if pinned is None else None]
    assert kept(found) == [(pinned, (default if pinned is None else own).version, "pinned")]
    assert found.kept[0].reason == "it is pinned by ann: 'study until June'."
    assert serving(store, model, pinned) == (default if pinned is None else own)
    assert np.array_equal(found.published[0].record.head.costs, STATED_COSTS)
    assert found.default_version == (default.version if pinned is None else 3)


@sqlite_only
def test_an_environment_that_is_pinned_while_it_uses_the_default_head_keeps_that_one(store: Store):
    model, default = add_serving_model(store)
    store.environments.ensure(SITE, limit=9)
    pin(store, SITE)
    found = attach_and_refit(store, "lesions", recommendation(), actor="bob")
    assert kept(found) == [(SITE, default.version, "pinned")]
    assert serving(store, model, SITE) == default
    assert serving(store, model, "elsewhere") == found.published[0].record
    (step,) = store.heads.activations("dermatology", environment=SITE)
    assert (step.head_version, step.activated_by) == (default.version, "bob")
    subjects = [entry.subject for entry in store.audit.list(limit=2)]
    assert subjects == ["dermatology@1/(default head)", "dermatology@1/site-a"]
    again = attach_and_refit(store, "lesions", recommendation(), actor="bob")
    assert kept(again) == [(None, 2, "fits"), (SITE, default.version, "pinned")]


@sqlite_only
def test_a_head_that_decides_so_already_is_not_published_again(store: Store):
    add_serving_model(store)
    publish(store, of_site())
    attach_and_refit(store, "lesions", for_target(), actor="ann")
    heads = store.heads.list("dermatology")
    for attached in (for_target(), recommendation(decision_rule="none")):
        found = attach_and_refit(store, "lesions", attached, actor="ann")
        assert (found.published, found.default_version) == ((), 3)
        assert kept(found) == [(None, 3, "fits"), (SITE, 4, "fits")]
    assert store.heads.list("dermatology") == heads
    assert store.recommendations.list("lesions")[-1] == found.attached


@sqlite_only
def test_another_decision_rule_is_reason_enough_for_new_heads(store: Store):
    """Argmax is stated; costs are not, so that those of the task stay."""
    add_serving_model(store)
    publish(store, of_site())
    found = attach_and_refit(store, "lesions", recommendation_without_costs(), actor="ann")
    assert store.tasks.get("lesions").decision_rule == Argmax()
    assert [one.environment for one in found.published] == [None, SITE]
    for one in found.published:
        assert one.record.head.decision_rule == Argmax()
        assert np.array_equal(one.record.head.costs, COSTS)
    logits = calibration(3).logits
    own = found.published[1].record.head.apply(logits)
    assert np.array_equal(own.decisions, own.probabilities.argmax(axis=1))
    assert (own.decisions != of_site().apply(logits).decisions).any()
    again = attach_and_refit(store, "lesions", recommendation_without_costs(), actor="ann")
    assert kept(again) == [(None, 3, "fits"), (SITE, 4, "fits")]


@sqlite_only
def test_a_class_mix_for_which_the_rule_has_no_cut_off_is_named_with_its_place(store: Store):
    labels = np.arange(200) % 2
    logits = 2 * np.eye(2)[labels] + np.random.default_rng(0).normal(size=(200, 2))
    store.tasks.add("screening", ("benign", "malignant"), 1 - np.eye(2), actor="ann")
    store.models.add("screening", "skin", kind="external", actor="ann")
    first = register_calibration(store, "skin", LabeledLogits(logits, labels), actor="ann").head
    none_there = replace(first, assumed_prevalence=np.array([1.0, 0.0]))
    store.heads.publish("skin", none_there, environment=SITE, actor="ann")
    before = store.registry(), store.audit.list()
    with pytest.raises(
        InvalidInputError, match=r"^target_prevalence: the head of site-a cannot be fitted again: .* class 1"
    ) as refused:
        attach_and_refit(store, "screening", binary_recommendation(SENSITIVITY), actor="ann")
    assert "positive prevalence" in (refused.value.hint or "")
    assert (store.registry(), store.audit.list()) == before


@sqlite_only
def test_another_class_mix_for_the_use_is_reason_enough_for_a_new_default_head_only(store: Store):
    add_serving_model(store)
    publish(store, of_site())
    attach_and_refit(store, "lesions", recommendation(), actor="ann")
    found = attach_and_refit(store, "lesions", for_target(), actor="ann")
    assert [one.environment for one in found.published] == [None]
    assert np.allclose(found.published[0].record.head.assumed_prevalence, TARGET)
    assert kept(found) == [(SITE, 4, "fits")]


@sqlite_only
def test_what_nobody_stated_stays_as_it_is(store: Store):
    add_serving_model(store)
    publish(store, head(), None)
    found = attach_and_refit(store, "lesions", recommendation(), actor="ann")
    record = found.published[0].record
    assert np.array_equal(record.head.costs, STATED_COSTS)
    assert np.array_equal(record.head.assumed_prevalence, head().assumed_prevalence)


@sqlite_only
def test_a_damaged_head_is_left_alone_where_nobody_knows_its_class_mix(store: Store):
    model, _ = add_serving_model(store)
    publish(store, of_site())
    with store.database.write() as connection:
        connection.execute(sa.update(tables.heads).where(tables.heads.c.version < 3).values(document="{"))
    found = attach_and_refit(store, "lesions", for_target(), actor="ann")
    assert [one.environment for one in found.published] == [None]
    assert kept(found) == [(SITE, 2, "damaged")]
    assert "head 2 is damaged" in found.kept[0].reason
    assert serving(store, model, None) == found.published[0].record


@sqlite_only
def test_there_has_to_be_a_model_that_serves_and_was_calibrated(store: Store):
    add_model(store)
    with pytest.raises(ConflictError, match="no promoted model"):
        attach_and_refit(store, "lesions", recommendation(), actor="ann")
    store.heads.publish("dermatology", head(), environment=None, actor="ann")
    promote_calibrated(store, "dermatology", actor="ann")
    before = everything(store)
    with pytest.raises(ConflictError, match="no calibration set"):
        attach_and_refit(store, "lesions", recommendation(), actor="ann")
    assert everything(store) == before


def swap(store: Store) -> None:
    model = store.models.get("dermatology")
    judged = cycle(model, outcome="swap", due_at=datetime.now(UTC), head_version=2)
    assert store.cycles.finish(judged, candidate=head(1), expected_sequence=None).published_version


MEANWHILE: dict[str, Callable[[Store], Any]] = {
    "calibrated anew": lambda store: store.calibration_sets.add("dermatology", calibration(7), actor="bob"),
    "swapped by a cycle": swap,
    "rolled back": lambda store: store.heads.rollback("dermatology", environment=SITE, actor="bob"),
    "a head elsewhere": lambda store: publish(store, head(), "site-b"),
    "another default head": lambda store: publish(store, head(), None),
    "pinned": lambda store: pin(store, SITE),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE.values(), ids=MEANWHILE)
def test_what_changes_while_heads_are_fitted_is_a_conflict_and_nothing_is_written(
    store: Store, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Store], Any]
):
    add_serving_model(store)
    publish(store, of_site())
    seen: list[Any] = []

    def fit_while_others_work(*arguments: Any, **options: Any) -> Any:
        if not seen:
            meanwhile(store)
            seen.append(everything(store))
        return fit_head(*arguments, **options)

    monkeypatch.setattr(refitting, "fit_head", fit_while_others_work)
    with pytest.raises(ConflictError, match="changed while heads were fitted"):
        attach_and_refit(store, "lesions", recommendation(), actor="ann")
    assert [everything(store)] == seen


@sqlite_only
def test_what_does_not_matter_to_the_heads_may_change_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    add_serving_model(store)
    add_model(store, "other")

    def fit_while_others_work(*arguments: Any, **options: Any) -> Any:
        store.environments.ensure("new", limit=9)
        store.heads.publish("other", head(), environment=None, actor="bob")
        return fit_head(*arguments, **options)

    monkeypatch.setattr(refitting, "fit_head", fit_while_others_work)
    assert attach_and_refit(store, "lesions", recommendation(), actor="ann").published


@pytest.mark.parametrize("published_before", [0, 1])
def test_it_is_all_or_nothing(store: Store, monkeypatch: pytest.MonkeyPatch, published_before: int):
    add_serving_model(store)
    publish(store, of_site())
    before, calls = everything(store), iter(range(9))
    publish_head = refitting.publish_head

    def fail_later(*arguments: Any, **options: Any) -> Any:
        if next(calls) == published_before:
            raise ConflictError("somebody was faster.")
        return publish_head(*arguments, **options)

    monkeypatch.setattr(refitting, "publish_head", fail_later)
    with pytest.raises(ConflictError, match="faster"):
        attach_and_refit(store, "lesions", recommendation(), actor="ann")
    assert everything(store) == before
