"""Trials: at most one of a task, its stages and shares, and which requests a canary chooses."""

from datetime import UTC, datetime

import pytest

from lifelong_core.store import Rollout, Store, WorseModelError, promote_calibrated, start_trial
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from tests.databases import sqlite_only
from tests.unit.store.rollouts.images import TASK, add_calibrated, newest_audit
from tests.unit.store.samples import add_model, record_report


def canary(share: float, *, rollout_id: int = 1) -> Rollout:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return Rollout(
        id=rollout_id,
        task_id=1,
        model_id=2,
        stage="canary",
        share=share,
        started_at=moment,
        started_by="me",
        changed_at=moment,
    )


def test_a_trial_goes_through_its_stages_and_ends_with_the_promotion(store: Store):
    add_calibrated(store)
    model = add_calibrated(store, seed=1)
    assert store.rollouts.current(TASK) is None
    before = store.revision()
    shadow = start_trial(store, model.reference, stage="shadow", actor="me").rollout
    assert store.revision() > before
    assert (shadow.model_id, shadow.stage, shadow.share) == (model.id, "shadow", 0)
    assert store.rollouts.current(TASK) == shadow
    larger = start_trial(store, model.reference, stage="canary", share=0.2, actor="you").rollout
    assert (larger.id, larger.stage, larger.share) == (shadow.id, "canary", 0.2)
    assert (larger.started_at, larger.started_by) == (shadow.started_at, "me")
    assert larger.changed_at >= shadow.changed_at
    assert newest_audit(store, "rollouts.change") == (
        model.reference,
        {"stage": "canary", "share": 0.2, "heads": [], "before": {"stage": "shadow", "share": 0.0}},
    )
    registry = store.registry()
    assert registry is not None
    assert dict(registry.rollouts) == {model.task_id: larger}
    promote_calibrated(store, model.reference, actor="me")
    assert store.rollouts.current(TASK) is None
    ended = store.rollouts.list(TASK)[0]
    assert (ended.outcome, ended.ended_by) == ("promoted", "me")
    assert newest_audit(store, "rollouts.end")[1]["outcome"] == "promoted"


@sqlite_only
def test_a_canary_whose_promotion_would_be_refused_needs_a_reason_and_a_shadow_does_not(store: Store):
    promoted, candidate = add_calibrated(store), add_calibrated(store, seed=1)
    record_report(store, candidate, against=promoted.reference, advice="reject")
    start_trial(store, candidate.reference, stage="shadow", actor="me")
    with pytest.raises(WorseModelError, match="Do not promote: it is worse"):
        start_trial(store, candidate.reference, stage="canary", share=0.1, actor="me")
    start_trial(store, candidate.reference, stage="canary", share=0.1, actor="me", force_reason="a study")
    assert newest_audit(store, "rollouts.change")[1]["force_reason"] == "a study"


@sqlite_only
def test_an_ended_trial_is_kept_and_another_may_start(store: Store):
    add_calibrated(store)
    first, second = add_calibrated(store, seed=1), add_calibrated(store, seed=2)
    trial = start_trial(store, first.reference, stage="shadow", actor="me").rollout
    with pytest.raises(ConflictError, match="skin@2 is on trial"):
        start_trial(store, second.reference, stage="shadow", actor="me")
    with pytest.raises(ConflictError, match="it is on trial"):
        store.remove_model(first.reference, actor="me")
    ended = store.rollouts.end(TASK, actor="op")
    assert (ended.id, ended.outcome, ended.ended_by) == (trial.id, "ended", "op")
    with pytest.raises(NotFoundError, match="on trial"):
        store.rollouts.end(TASK, actor="op")
    again = start_trial(store, second.reference, stage="shadow", actor="me").rollout
    assert again.id > trial.id
    assert [one.model_id for one in store.rollouts.list(TASK)] == [first.id, second.id]


@sqlite_only
@pytest.mark.parametrize("share", [0, -0.1, 1.0001, float("nan"), float("inf")])
def test_a_share_is_above_0_and_at_most_1(store: Store, share: float):
    add_calibrated(store)
    model = add_calibrated(store, seed=1)
    with pytest.raises(InvalidInputError) as error:
        start_trial(store, model.reference, stage="canary", share=share, actor="me")
    assert error.value.field == "share"
    assert start_trial(store, model.reference, stage="canary", share=1, actor="me").rollout.share == 1


@sqlite_only
def test_models_that_cannot_be_tried_are_refused(store: Store):
    one = add_calibrated(store)
    with pytest.raises(ConflictError, match="promoted model of lesions already"):
        start_trial(store, one.reference, stage="shadow", actor="me")
    bare = store.models.add(TASK, "skin", kind="onnx", onnx=b"x", preprocessing=one.preprocessing, actor="me")
    with pytest.raises(ConflictError, match="no head yet"):
        start_trial(store, bare.reference, stage="shadow", actor="me")
    two = add_calibrated(store, seed=1)
    assert two.artifact is not None
    store.artifacts.remove(two.artifact)
    with pytest.raises(ConflictError, match="stored graph"):
        start_trial(store, two.reference, stage="shadow", actor="me")
    with pytest.raises(NotFoundError):
        start_trial(store, "skin@9", stage="shadow", actor="me")
    assert store.rollouts.list(TASK) == []


@sqlite_only
def test_external_models_are_not_tried(store: Store):
    from lifelong_core.store import register_calibration
    from tests.unit.store.samples import calibration

    add_calibrated(store)
    external = add_model(store, "elsewhere")
    register_calibration(store, external.reference, calibration(), actor="me")
    with pytest.raises(ConflictError, match="elsewhere@1 runs elsewhere"):
        start_trial(store, external.reference, stage="shadow", actor="me")


def test_a_canary_chooses_its_share_of_the_groups_and_keeps_them_when_it_grows():
    groups = [f"patient {number}".encode() for number in range(10_000)]
    chosen = {share: {group for group in groups if canary(share).chooses(group)} for share in (0.2, 0.6, 1)}
    assert len(chosen[0.2]) == pytest.approx(2000, abs=4 * 40)  # four standard deviations
    assert len(chosen[0.6]) == pytest.approx(6000, abs=4 * 49)
    assert chosen[0.2] < chosen[0.6] < chosen[1]
    assert chosen[1] == set(groups)
    # Another trial chooses other groups, so that the same patients are not always the first.
    other = {group for group in groups if canary(0.2, rollout_id=2).chooses(group)}
    assert len(other & chosen[0.2]) == pytest.approx(400, abs=4 * 20)


def test_the_choice_never_changes_between_versions():
    """Values of the first release: workers of different versions, and restarted ones, must agree."""
    keys = [f"g{number}".encode() for number in range(16)]
    assert "".join(str(int(canary(0.5).chooses(key))) for key in keys) == "0110110110010010"


def test_a_shadow_chooses_nothing():
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    shadow = Rollout(
        id=1,
        task_id=1,
        model_id=2,
        stage="shadow",
        share=1.0,
        started_at=moment,
        started_by="me",
        changed_at=moment,
    )
    assert not any(shadow.chooses(f"g{number}".encode()) for number in range(100))
