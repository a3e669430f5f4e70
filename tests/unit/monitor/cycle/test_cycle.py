from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.deploy import FittedQuantifier, LabeledLogits
from lifelong_core.store import Cycle, Heartbeat, Model, Store, new_prediction_id, register_calibration
from lifelong_core.store.health import Health
from lifelong_core.values.errors import NotFoundError
from lifelong_monitor.cycle.cycle import ELSEWHERE, CycleResult, run_cycle
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import inputs_of, readable_report_of, report_of
from lifelong_monitor.cycle.subject import FittedQuantifiers
from lifelong_monitor.cycle.text import format_cycle
from tests.unit.monitor.population import (
    BALANCED,
    DUE,
    MINUTE,
    SHIFTED,
    add_model,
    draw,
    on_both_databases,
    predict,
)

LATER = DUE + MINUTE


def active_version(store: Store, model: Model, environment: str) -> int:
    registry = store.registry()
    return registry.head_for(model, environment).version


def cycle_at(model: Model, due_at: datetime) -> Cycle:
    return Cycle(
        id=new_prediction_id(),
        model_id=model.id,
        environment="clinic",
        due_at=due_at,
        started_at=due_at,
        finished_at=due_at,
        outcome="keep",
        report={},
        window_samples=600,
        log_position=1,
        head_version=1,
        published_version=None,
    )


def test_the_head_is_kept_while_the_mix_is_that_of_development(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    result = run_cycle(store, settings, model, "clinic", DUE)
    assert result.outcome == "keep"
    assert result.reason
    (recorded,) = store.cycles.list()
    assert recorded == result.last
    assert (recorded.window_samples, recorded.due_at, recorded.published_version) == (600, DUE, None)
    assert result.succeeded_at == recorded.finished_at
    assert active_version(store, model, "clinic") == 1


@on_both_databases
def test_a_shift_swaps_the_head_of_its_environment_only(
    store: Store, settings: Settings, model: Model
) -> None:
    ids = predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    predict(store, model, "other", draw(BALANCED, 600, seed=4))
    result = run_cycle(store, settings, model, "clinic", DUE)
    assert result.outcome == "swap"
    assert result.last.published_version == 2
    assert active_version(store, model, "clinic") == 2
    assert active_version(store, model, "other") == 1
    assert active_version(store, model, "default") == 1
    head = store.heads.get(model.reference, 2).head
    assert np.abs(head.assumed_prevalence - SHIFTED).sum() < 0.15
    assert head.provenance["cycle"] == str(result.last.id)
    assert head.provenance["window"] == {"first": str(ids[0]), "last": str(ids[-1]), "samples": 600}
    assert head.provenance["quantifier"] == settings.quantifier == "auto"
    entry = store.audit.list()[0]
    assert (entry.actor, entry.action, entry.subject) == (
        "monitor",
        "heads.swap",
        f"{model.reference}/clinic",
    )


def test_the_stricter_mode_of_another_living_monitor_holds(
    store: Store, settings: Settings, model: Model
) -> None:
    shadowing = Heartbeat("other", "ward-3", 8, DUE, 60.0, "auto", {"clinic": "shadow"}, None, ())
    store.monitors.record_heartbeat(shadowing)
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    predict(store, model, "other", draw(SHIFTED, 600, seed=3))
    result = run_cycle(store, settings, model, "clinic", DUE)
    assert (result.outcome, result.last.published_version) == ("swap", None)
    assert result.last.report["policy"]["mode"] == "shadow"
    assert active_version(store, model, "clinic") == 1
    run_cycle(store, settings, model, "other", DUE)
    assert active_version(store, model, "other") == 2
    store.monitors.forget("other")
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=4))
    run_cycle(store, settings, model, "clinic", LATER + MINUTE)
    assert active_version(store, model, "clinic") == 3


def test_a_rolled_back_calibration_stays_rolled_back(store: Store, settings: Settings, model: Model) -> None:
    right = model.calibration_set_id
    assert right is not None
    swapped = draw(BALANCED, 600, seed=6)
    swapped = LabeledLogits(swapped.logits, np.array([2, 1, 0])[swapped.labels])
    register_calibration(store, model.reference, swapped, actor="ann", force_reason="labels are right")
    poisoned = store.heads.get(model.reference, 2).head
    store.heads.publish(model.reference, poisoned, environment="poisoned", actor="ann")
    for environment in ("clinic", "poisoned"):
        predict(store, model, environment, draw(BALANCED, 600, seed=2))

    store.heads.rollback(model.reference, environment=None, actor="ann")
    restored = store.models.get(model.reference)
    assert run_cycle(store, settings, restored, "clinic", DUE).outcome == "keep"
    assert active_version(store, model, "clinic") == 1
    assert restored.calibration_set_id == right
    # The head of an environment that was fitted on the withdrawn set does not outlive it.
    assert run_cycle(store, settings, restored, "poisoned", DUE).outcome == "swap"
    version = active_version(store, model, "poisoned")
    digest = store.heads.get(model.reference, version).head.provenance["calibration_digest"]
    assert digest == store.heads.get(model.reference, 1).head.provenance["calibration_digest"]


def test_the_default_environment_gets_a_head_of_its_own_too(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "default", draw(SHIFTED, 600, seed=3))
    assert run_cycle(store, settings, model, "default", DUE).outcome == "swap"
    assert active_version(store, model, "default") == 2
    assert active_version(store, model, "elsewhere") == 1


def test_a_small_window_is_kept_whatever_it_holds(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 100, seed=3))
    assert run_cycle(store, settings, model, "clinic", DUE).outcome == "keep"


def test_the_window_holds_the_newest_and_none_that_are_too_old(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    predict(store, model, "clinic", draw(BALANCED, 600, seed=5))
    assert run_cycle(store, settings, model, "clinic", DUE).outcome == "keep"
    future = datetime.now(UTC) + settings.window_age + MINUTE
    predict(store, model, "other", draw(SHIFTED, 600, seed=3))
    assert (
        run_cycle(store, settings, model, "other", future).reason == "no prediction within the window's age"
    )
    assert len(store.cycles.list()) == 1


def test_the_same_cycle_never_runs_twice(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    first = run_cycle(store, settings, model, "clinic", DUE)
    predict(store, model, "clinic", draw(BALANCED, 600, seed=5))
    second = run_cycle(store, settings, model, "clinic", DUE)
    assert (second.outcome, second.last) == ("skip", first.last)
    assert second.succeeded_at == first.last.finished_at
    assert len(store.cycles.list()) == 1


@on_both_databases
def test_while_a_monitor_runs_a_cycle_another_leaves_it_alone_and_comes_back(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    meanwhile: list[CycleResult] = []

    def another_comes() -> bool:
        meanwhile.append(run_cycle(store, settings, model, "clinic", DUE))
        return False

    result = run_cycle(store, settings, model, "clinic", DUE, stopping=another_comes)
    assert [result.outcome, *(other.outcome for other in meanwhile)] == ["swap", "skip"]
    assert meanwhile[0].reason == ELSEWHERE
    assert meanwhile[0].again_in == settings.lease_seconds
    assert len(store.cycles.list()) == 1
    assert len(store.heads.list(model.reference)) == 2
    # The lease was given back: nobody waits for its end.
    predict(store, model, "clinic", draw(SHIFTED, 60, seed=4))
    assert run_cycle(store, settings, model, "clinic", LATER).outcome == "keep"


def test_without_a_new_prediction_nothing_is_judged_or_written(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    run_cycle(store, settings, model, "clinic", DUE)
    predict(store, model, "other", draw(SHIFTED, 600, seed=3))
    result = run_cycle(store, settings, model, "clinic", LATER)
    assert (result.outcome, result.reason) == ("skip", "no new prediction")
    assert result.succeeded_at is not None
    assert len(store.cycles.list()) == 1
    predict(store, model, "clinic", draw(BALANCED, 3, seed=9))
    assert run_cycle(store, settings, model, "clinic", LATER).outcome == "keep"


@on_both_databases
@pytest.mark.parametrize("changed", ["clinic", None])
def test_a_head_that_somebody_published_meanwhile_wins(
    store: Store, settings: Settings, model: Model, changed: str | None
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    head = store.heads.get(model.reference, 1).head

    def somebody_publishes() -> bool:
        store.heads.publish(model.reference, head, environment=changed, actor="a person")
        return False

    result = run_cycle(store, settings, model, "clinic", DUE, stopping=somebody_publishes)
    assert (result.outcome, result.succeeded_at) == ("skip", None)
    assert store.cycles.list() == []
    assert active_version(store, model, "clinic") == 2
    assert run_cycle(store, settings, model, "clinic", LATER).outcome == "swap"
    assert active_version(store, model, "clinic") == 3


@on_both_databases
def test_a_head_that_changed_and_came_back_meanwhile_stops_the_swap(
    store: Store, settings: Settings, model: Model
) -> None:
    """The same head serves again, but a person was at work: what they look at must not change under their hands."""
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    head = store.heads.get(model.reference, 1).head

    def somebody_publishes_and_rolls_back() -> bool:
        store.heads.publish(model.reference, head, environment="clinic", actor="a person")
        store.heads.rollback(model.reference, environment="clinic", actor="a person")
        return False

    result = run_cycle(store, settings, model, "clinic", DUE, stopping=somebody_publishes_and_rolls_back)
    assert (result.outcome, result.succeeded_at) == ("skip", None)
    assert "activation 2, expected 0" in result.reason
    assert store.cycles.list() == []
    assert active_version(store, model, "clinic") == 1


@on_both_databases
def test_what_appears_while_a_cycle_reads_is_left_to_the_next(
    store: Store, settings: Settings, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = predict(store, model, "clinic", draw(BALANCED, 300, seed=3))
    read = store.predictions.log_position

    def log_position_and_then_more() -> int:
        log_position = read()
        predict(store, model, "clinic", draw(SHIFTED, 60, seed=4))
        return log_position

    monkeypatch.setattr(store.predictions, "log_position", log_position_and_then_more)
    cycle = run_cycle(store, settings, model, "clinic", DUE).last
    monkeypatch.undo()
    assert cycle.window_samples == len(ids)
    assert (
        store.predictions.count_between(
            model.id, "clinic", cycle.log_position, store.predictions.log_position()
        )
        == 60
    )
    second = run_cycle(store, settings, model, "clinic", LATER).last
    assert second.window_samples == 360
    assert inputs_of(second).new_samples == 60
    assert replay(store, cycle.id) == report_of(cycle)


def test_every_cycle_has_its_own_seed_and_the_same_one_whoever_runs_it(
    store: Store, settings: Settings, model: Model
) -> None:
    other = add_model(store, "other")
    seeds: list[int] = []
    for one, environment, due_at in (
        (model, "clinic", DUE),
        (model, "ward", DUE),
        (other, "clinic", DUE),
        (model, "clinic", LATER),
    ):
        predict(store, one, environment, draw(BALANCED, 30, seed=3))
        cycle = run_cycle(store, settings, one, environment, due_at).last
        assert cycle is not None
        seeds.append(report_of(cycle).seed)
    assert len(set(seeds)) == 4
    with store.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM cycles")
    zoned = DUE.astimezone(timezone(timedelta(hours=5)))
    again = run_cycle(store, settings, model, "clinic", zoned).last
    assert again is not None
    assert report_of(again).seed == seeds[0]


def test_a_report_that_cannot_be_read_does_not_stop_the_watch(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    first = run_cycle(store, settings, model, "clinic", DUE).last
    with store.database.write() as connection:
        connection.exec_driver_sql("""UPDATE cycles SET report = '{"schema_version": 99}'""")
    unreadable = store.cycles.get(first.id)
    assert readable_report_of(unreadable) is None
    predict(store, model, "clinic", draw(BALANCED, 300, seed=4))
    result = run_cycle(store, settings, model, "clinic", LATER)
    assert result.outcome == "keep"
    assert "Window: 600 predictions." in format_cycle(replace(result, last=unreadable), ("a", "b", "c"))


def test_a_monitor_that_is_stopping_writes_nothing(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    result = run_cycle(store, settings, model, "clinic", DUE, stopping=lambda: True)
    assert (result.outcome, result.succeeded_at) == ("skip", None)
    assert store.cycles.list() == []
    assert run_cycle(store, settings, model, "clinic", DUE).outcome == "swap"


def test_a_model_without_a_calibration_set_is_skipped(store: Store, settings: Settings, model: Model) -> None:
    bare = add_model(store, "bare", calibrated=False)
    head = replace(store.heads.get(model.reference, 1).head, provenance={})
    store.heads.publish(bare.reference, head, environment=None, actor="a person")
    predict(store, bare, "clinic", draw(SHIFTED, 600, seed=3))
    result = run_cycle(store, settings, bare, "clinic", DUE)
    assert (result.outcome, result.succeeded_at) == ("skip", None)
    assert "no calibration set" in result.reason


def test_a_model_without_a_head_is_skipped(store: Store, settings: Settings, model: Model) -> None:
    bare = add_model(store, "bare", calibrated=False)
    store.calibration_sets.add(bare.reference, draw(BALANCED, 300, seed=1), actor="tests")
    result = run_cycle(store, settings, bare, "clinic", DUE)
    assert (result.outcome, result.succeeded_at) == ("skip", None)
    assert "no head" in result.reason


def test_a_quantifier_is_fitted_once_per_calibration_set_and_method(
    store: Store, settings: Settings, model: Model
) -> None:
    kept = FittedQuantifiers()
    first = store.calibration_sets.list(model.reference)[0].id
    fitted = kept.get(store, model, first, "MLLS")
    assert kept.get(store, model, first, "MLLS") is fitted
    assert kept.get(store, model, first, "ACC") is not fitted
    second = store.calibration_sets.add(model.reference, draw(BALANCED, 300, seed=8), actor="tests").id
    again = kept.get(store, model, second, "ACC")
    assert isinstance(again, FittedQuantifier)
    assert again.calibration.samples == 300


def test_a_calibration_set_that_cannot_tell_classes_apart_is_refused_on_record(
    store: Store, settings: Settings, model: Model
) -> None:
    known = draw((0.5, 0.5, 0.0), 400, seed=9)
    alike = LabeledLogits(
        np.concatenate([known.logits, known.logits[known.labels == 1]]),
        np.concatenate([known.labels, np.full((known.labels == 1).sum(), 2)]),
    )
    store.calibration_sets.add(model.reference, alike, actor="tests")
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    result = run_cycle(store, settings, model, "clinic", DUE)
    assert result.outcome == "refuse"
    assert [reason.code for reason in report_of(result.last).reasons] == ["calibration_unidentifiable"]
    assert replay(store, result.last.id) == report_of(result.last)
    assert active_version(store, model, "clinic") == 1


@on_both_databases
@pytest.mark.parametrize(("prevalence", "outcome"), [(BALANCED, "keep"), (SHIFTED, "swap")])
def test_a_past_cycle_can_be_replayed(
    store: Store, settings: Settings, model: Model, prevalence: tuple[float, ...], outcome: str
) -> None:
    predict(store, model, "clinic", draw(prevalence, 900, seed=3))
    policy = PolicySettings(minimum_samples=150, level=0.02)
    changed = settings.model_copy(update={"quantifier": "ACC", "policy": policy})
    cycle = run_cycle(store, changed, model, "clinic", DUE).last
    # what came later does not matter: predictions, another head, another calibration set, a worse seed
    predict(store, model, "clinic", draw(BALANCED, 700, seed=5))
    run_cycle(store, settings, model, "clinic", LATER)
    store.calibration_sets.add(model.reference, draw(BALANCED, 300, seed=8), actor="tests")
    report = replay(store, cycle.id)
    assert report.outcome == outcome
    assert report == report_of(cycle)
    assert report.to_document() == report_of(cycle).to_document()


def test_a_cycle_says_when_clocks_differ(
    store: Store, settings: Settings, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    monkeypatch.setattr(Health, "clock_faults", lambda _: ["The clock is behind."])
    result = run_cycle(store, settings, model, "clinic", DUE)
    cycle = result.last
    assert inputs_of(cycle).clocks == ("The clock is behind.",)
    assert "Caution: The clock is behind." in format_cycle(result, ("a", "b", "c"))
    assert replay(store, cycle.id).to_document() == report_of(cycle).to_document()
    predict(store, model, "clinic", draw(BALANCED, 600, seed=4))
    late = run_cycle(store, settings, model, "clinic", DUE + timedelta(days=365))
    assert late.reason == "no prediction within the window's age. The clock is behind."


def test_a_replay_keeps_groups_together(store: Store, settings: Settings, model: Model) -> None:
    labelled = draw(SHIFTED, 600, seed=3)
    groups = [bytes([index % 100]) * 16 for index in range(labelled.samples)]
    predict(store, model, "clinic", labelled, groups=groups)
    cycle = run_cycle(store, settings, model, "clinic", DUE).last
    assert replay(store, cycle.id) == report_of(cycle)
    predict(store, model, "other", labelled)
    alone = run_cycle(store, settings, model, "other", DUE).last
    assert alone is not None
    assert report_of(alone).prevalence != report_of(cycle).prevalence


def test_reports_of_different_windows_differ_so_that_equality_means_something(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    first = run_cycle(store, settings, model, "clinic", DUE).last
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=4))
    second = run_cycle(store, settings, model, "clinic", LATER).last
    assert first is not None
    assert replay(store, second.id) == report_of(second) != report_of(first)


def test_an_unknown_cycle_cannot_be_replayed(store: Store, model: Model) -> None:
    with pytest.raises(NotFoundError):
        replay(store, new_prediction_id())


def test_a_clock_that_was_ahead_does_not_stop_the_watch(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    assert run_cycle(store, settings, model, "clinic", DUE + timedelta(days=2)).outcome == "keep"
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=4))
    assert run_cycle(store, settings, model, "clinic", DUE).outcome == "swap"


def test_a_cycle_whose_predictions_were_replaced_is_not_replayed_as_if_nothing_had_happened(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    cycle = run_cycle(store, settings, model, "clinic", DUE).last
    assert cycle is not None
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE predictions SET logits = (SELECT max(logits) FROM predictions)")
    with pytest.raises(NotFoundError, match="any more"):
        replay(store, cycle.id)
