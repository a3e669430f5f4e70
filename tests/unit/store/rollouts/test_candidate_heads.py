"""Heads of a candidate: one for each environment whose prevalence the promoted model knows, from its own set."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from lifelong_core.deploy import Argmax, fit_head
from lifelong_core.store import Registry, Store, promote_calibrated, start_trial
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.rollouts.candidate_heads import fit_candidate_heads, publish_candidate_heads
from lifelong_core.values.errors import ConflictError
from tests.databases import sqlite_only
from tests.unit.store.design_samples import recommendation_without_costs
from tests.unit.store.rollouts.images import add_calibrated
from tests.unit.store.samples import CLASSES, COSTS, calibration, cycle, head

SHIFTED = [0.7, 0.2, 0.1]


def registry_of(store: Store) -> Registry:
    registry = store.registry()
    assert registry is not None
    return registry


def judge(
    store: Store, model_id: int, environment: str, prevalence: list[float], outcome: str, *reasons: str
) -> None:
    """Record a cycle of a population with an estimate."""
    model = registry_of(store).models[model_id]
    store.environments.ensure(environment, limit=100, creator="tests")
    found = [{"code": code, "text": code} for code in reasons]
    report = {"outcome": outcome, "prevalence": {"prevalence": prevalence}, "reasons": found}
    due = datetime(2026, 1, 1, tzinfo=UTC)
    recorded = replace(cycle(model, due_at=due, outcome=outcome), environment=environment, report=report)
    store.cycles.finish(recorded, candidate=None, expected_sequence=None)


def test_heads_are_fitted_for_every_known_prevalence_from_the_candidates_own_set(store: Store):
    one = add_calibrated(store)
    store.heads.publish(one.reference, head(), environment="own-head", actor="me")
    judge(store, one.id, "estimated", SHIFTED, "keep")
    judge(store, one.id, "refused", SHIFTED, "refuse")
    judge(store, one.id, "too-few", SHIFTED, "keep", "window_too_small")
    store.environments.ensure("silent", limit=100, creator="tests")
    two = add_calibrated(store, seed=5)
    started = start_trial(store, two.reference, stage="shadow", actor="me")
    assert started.fitted == ("estimated", "own-head")
    heads = registry_of(store).heads
    for environment, prevalence in (("own-head", [0.5, 0.3, 0.2]), ("estimated", SHIFTED)):
        expected = fit_head(calibration(5), COSTS, target_prevalence=prevalence, class_names=CLASSES)
        fitted = heads[two.id, environment].head
        assert fitted.digest == expected.digest
        assert fitted.provenance["origin"] == "rollout"
    assert heads[two.id, "own-head"].head.provenance["prevalence"] == "head 2 of skin@1"
    assert (two.id, "refused") not in heads
    assert (two.id, "too-few") not in heads
    assert (two.id, "silent") not in heads
    assert heads[two.id, None].head.provenance["origin"] == "calibration"


@sqlite_only
def test_candidates_decide_by_the_rule_of_the_task(store: Store):
    one = add_calibrated(store)
    store.heads.publish(one.reference, head(), environment="site-a", actor="me")
    task = registry_of(store).tasks[one.task_id]
    store.recommendations.attach(task.name, recommendation_without_costs(), actor="ann")
    two = add_calibrated(store, seed=5)
    fitted = fit_candidate_heads(store, two)
    assert fitted.heads["site-a"].decision_rule == fitted.decision_rule == Argmax()
    assert registry_of(store).heads[two.id, None].head.decision_rule == Argmax()
    store.recommendations.attach(
        task.name, recommendation_without_costs(decision_rule="cost_benefit"), actor="ann"
    )
    with (
        pytest.raises(ConflictError, match="decision rule of lesions"),
        change_registry(store.database) as connection,
    ):
        publish_candidate_heads(connection, fitted, actor="me")


@sqlite_only
def test_a_promotion_without_a_trial_fits_them_too(store: Store):
    one = add_calibrated(store)
    store.heads.publish(one.reference, head(), environment="site-a", actor="me")
    two = add_calibrated(store, seed=5)
    promote_calibrated(store, two.reference, actor="me")
    np.testing.assert_allclose(
        registry_of(store).heads[two.id, "site-a"].head.assumed_prevalence, [0.5, 0.3, 0.2]
    )


@sqlite_only
def test_heads_that_the_candidate_has_are_kept_and_only_those_of_a_trial_follow(store: Store):
    one = add_calibrated(store)
    two = add_calibrated(store, seed=5)
    for environment in ("a", "b", "c"):
        store.heads.publish(one.reference, head(), environment=environment, actor="me")
    store.heads.publish(two.reference, head(2.0), environment="a", actor="me")
    assert start_trial(store, two.reference, stage="shadow", actor="me").fitted == ("b", "c")
    assert start_trial(store, two.reference, stage="canary", share=0.1, actor="me").fitted == ()
    store.heads.pin(two.reference, environment="c", reason="under audit", actor="me")
    for environment in ("a", "b", "c"):
        moved = replace(head(), assumed_prevalence=np.array(SHIFTED))
        store.heads.publish(one.reference, moved, environment=environment, actor="me")
    assert start_trial(store, two.reference, stage="canary", share=0.5, actor="me").fitted == ("b",)
    heads = registry_of(store).heads
    np.testing.assert_allclose(heads[two.id, "b"].head.assumed_prevalence, SHIFTED)
    assert heads[two.id, "a"].head.digest == head(2.0).digest


def test_nothing_is_published_when_the_task_changed_meanwhile(store: Store):
    one = add_calibrated(store)
    store.heads.publish(one.reference, head(), environment="site-a", actor="me")
    two, three = add_calibrated(store, seed=5), add_calibrated(store, seed=6)
    fitted = fit_candidate_heads(store, two)
    promote_calibrated(store, three.reference, actor="me")
    with (
        pytest.raises(ConflictError, match="changed while heads were fitted"),
        change_registry(store.database) as connection,
    ):
        publish_candidate_heads(connection, fitted, actor="me")
    assert (two.id, "site-a") not in registry_of(store).heads


@sqlite_only
def test_a_lost_calibration_set_stops_no_promotion(store: Store):
    one = add_calibrated(store)
    store.heads.publish(one.reference, head(), environment="site-a", actor="me")
    two = add_calibrated(store, seed=5)
    for known in store.calibration_sets.list(two.reference):
        store.artifacts.remove(known.digest)
    assert promote_calibrated(store, two.reference, actor="me").id == two.id
