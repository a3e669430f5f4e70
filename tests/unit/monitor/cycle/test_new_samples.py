"""The sequential test sees every sample once, also late ones, after restarts, and beyond the window."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.deploy import LabeledLogits, ShiftEvidence
from lifelong_core.store import Cycle, LogEntry, Model, Prediction, Store, new_prediction_id
from lifelong_core.values.errors import NotFoundError
from lifelong_monitor.cycle.cycle import run_cycle
from lifelong_monitor.cycle.due_times import CycleRequest, DueCycle
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import inputs_of, report_of
from tests.unit.monitor.population import BALANCED, DUE, MINUTE, SHIFTED, draw, on_both_databases, predict

Tick = Callable[..., Cycle]


@pytest.fixture
def tick(store: Store, settings: Settings, model: Model) -> Tick:
    """Runs the next cycle of the clinic, with changed settings if given."""
    due = iter(range(100))

    def tick(**changes: object) -> Cycle:
        changed = settings.model_copy(update=changes)
        cycle = run_cycle(store, changed, model, "clinic", DUE + next(due) * MINUTE).last
        assert cycle is not None
        return cycle

    return tick


def evidence(cycle: Cycle) -> ShiftEvidence:
    found = report_of(cycle).evidence
    assert found is not None
    return found


def new(store: Store, model: Model, samples: int, *, seed: int, mix: tuple[float, ...] = BALANCED) -> None:
    predict(store, model, "clinic", draw(mix, samples, seed=seed))


def test_the_watch_begins_with_the_first_window_and_goes_on_with_what_is_new(
    store: Store, model: Model, tick: Tick
) -> None:
    new(store, model, 900, seed=2)
    first = tick()
    assert evidence(first).samples == 600  # the window, not the whole log
    new(store, model, 60, seed=3)
    predict(store, model, "other", draw(SHIFTED, 90, seed=4))
    second = tick()
    assert evidence(second).samples == 660
    assert evidence(second).key == evidence(first).key
    # more than the window holds
    new(store, model, 750, seed=5)
    assert evidence(tick()).samples == 1410


@on_both_databases
def test_a_sample_that_is_committed_late_counts_once(store: Store, model: Model, tick: Tick) -> None:
    early: list[UUID] = [new_prediction_id() for _ in range(3)]
    new(store, model, 600, seed=2)
    before = evidence(tick()).samples
    rows = draw(BALANCED, 3, seed=3).logits
    store.predictions.append(
        [
            LogEntry((Prediction(one, model.id, "clinic", 1, 0, row),))
            for one, row in zip(early, rows, strict=True)
        ]
    )
    assert evidence(tick()).samples == before + 3
    new(store, model, 30, seed=4)
    assert evidence(tick()).samples == before + 33


def test_what_skipped_cycles_did_not_judge_is_not_lost(
    store: Store, settings: Settings, model: Model, tick: Tick
) -> None:
    new(store, model, 600, seed=2)
    tick()
    new(store, model, 30, seed=3)
    skipped = run_cycle(store, settings, model, "clinic", DUE + 50 * MINUTE, stopping=lambda: True)
    assert skipped.outcome == "skip"
    new(store, model, 30, seed=4)
    assert evidence(tick()).samples == 660


def test_a_clock_that_was_ahead_does_not_hide_what_was_read_since(
    store: Store, settings: Settings, model: Model
) -> None:
    """Though for days nothing was due later than the cycle of the wrong time, the others go on from each other."""
    cycles: list[Cycle | None] = []
    for seed, due_at in enumerate((DUE + timedelta(days=2), DUE, DUE + MINUTE)):
        new(store, model, 600 if seed == 0 else 90, seed=seed)
        run_cycle(store, settings, model, "clinic", due_at)
        cycles.append(store.cycles.last(model.id, "clinic"))
    seen = [(evidence(cycle).samples, evidence(cycle).looks) for cycle in cycles if cycle is not None]
    assert seen == [(600, 1), (690, 2), (780, 3)]
    assert run_cycle(store, settings, model, "clinic", DUE + 2 * MINUTE).reason == "no new prediction"


def test_of_too_many_new_samples_the_newest_count(store: Store, model: Model, tick: Tick) -> None:
    new(store, model, 600, seed=2)
    tick()
    new(store, model, 90, seed=3)
    cycle = tick(evidence_samples=60)
    assert evidence(cycle).samples == 660
    assert inputs_of(cycle).new_samples == 60
    assert replay(store, cycle.id) == report_of(cycle)


@on_both_databases
def test_every_cycle_of_a_chain_can_be_replayed_to_the_last_bit(
    store: Store, model: Model, tick: Tick
) -> None:
    labelled = draw(BALANCED, 600, seed=2)
    groups = [bytes([index % 150]) * 16 for index in range(labelled.samples)]
    predict(store, model, "clinic", labelled, groups=groups)
    chain = [tick()]
    for seed, mix in ((3, BALANCED), (4, SHIFTED), (5, SHIFTED), (6, SHIFTED), (7, BALANCED)):
        new(store, model, 300, seed=seed, mix=mix)
        chain.append(tick())
    assert "swap" in {cycle.outcome for cycle in chain}
    for cycle in chain:
        assert replay(store, cycle.id).to_document() == report_of(cycle).to_document()
    assert len({json.dumps(evidence(cycle).to_document()) for cycle in chain}) == len(chain)


@on_both_databases
def test_a_restart_changes_nothing(store: Store, settings: Settings, model: Model, tick: Tick) -> None:
    new(store, model, 600, seed=2)
    first = tick()
    new(store, model, 300, seed=3)
    with Store.from_settings(settings) as reopened:
        cycle = run_cycle(reopened, settings, model, "clinic", DUE + 5 * MINUTE).last
    assert evidence(cycle).samples == evidence(first).samples + 300
    assert evidence(cycle).key == evidence(first).key
    assert replay(store, cycle.id) == report_of(cycle)


def _another_head(store: Store, model: Model) -> None:
    head = store.heads.get(model.reference, 1).head
    other = type(head)(2.0, head.bias, head.costs, head.assumed_prevalence, head.class_names)
    store.heads.publish(model.reference, other, environment="clinic", actor="ann")


def _another_default_head(store: Store, model: Model) -> None:
    head = store.heads.get(model.reference, 1).head
    other = type(head)(2.0, head.bias, head.costs, head.assumed_prevalence, head.class_names)
    store.heads.publish(model.reference, other, environment=None, actor="ann")


def _another_calibration_set(store: Store, model: Model) -> None:
    store.calibration_sets.add(model.reference, draw(BALANCED, 500, seed=8), actor="ann")


@pytest.mark.parametrize("change", [_another_head, _another_default_head, _another_calibration_set])
def test_another_head_or_calibration_set_starts_the_evidence_anew(
    store: Store, model: Model, tick: Tick, change: Callable[[Store, Model], None]
) -> None:
    new(store, model, 600, seed=2)
    first = tick()
    change(store, model)
    new(store, model, 90, seed=3)
    second = tick()
    assert evidence(second).samples == 90
    assert evidence(second).key != evidence(first).key
    new(store, model, 30, seed=4)
    assert evidence(tick()).samples == 120


def test_a_swap_and_its_roll_back_start_the_evidence_anew(store: Store, model: Model, tick: Tick) -> None:
    new(store, model, 600, seed=2, mix=SHIFTED)
    swap = tick()
    assert swap.outcome == "swap"
    new(store, model, 300, seed=3, mix=SHIFTED)
    under_the_new_head = tick()
    assert under_the_new_head.outcome == "keep"
    assert evidence(under_the_new_head).samples == 300
    store.heads.rollback(model.reference, environment="clinic", actor="ann")
    new(store, model, 100, seed=4, mix=SHIFTED)
    rolled_back = tick()
    assert evidence(rolled_back).samples == 100
    assert (
        evidence(rolled_back).key == evidence(swap).key
    )  # the same head as before: what counts is the chain
    assert replay(store, rolled_back.id) == report_of(rolled_back)


def test_a_roll_back_before_any_cycle_of_the_new_head_starts_the_evidence_anew(
    store: Store, settings: Settings, model: Model, tick: Tick
) -> None:
    new(store, model, 600, seed=2, mix=SHIFTED)
    assert tick().outcome == "swap"
    store.heads.rollback(model.reference, environment="clinic", actor="ann")
    due_cycle = DueCycle.on_request(settings, CycleRequest(UUID(int=1), "ann"), datetime.now(UTC))
    rolled_back = run_cycle(store, settings, model, "clinic", DUE, due_cycle=due_cycle).last
    assert (rolled_back.outcome, evidence(rolled_back).samples) == ("keep", 0)
    assert [reason.code for reason in report_of(rolled_back).reasons] == ["evidence_insufficient"]
    new(store, model, 100, seed=3, mix=SHIFTED)
    again = run_cycle(store, settings, model, "clinic", rolled_back.due_at + MINUTE).last
    assert again is not None
    assert evidence(again).samples == 100
    for cycle in (rolled_back, again):
        assert replay(store, cycle.id) == report_of(cycle)


def test_another_policy_starts_the_evidence_anew(store: Store, model: Model, tick: Tick) -> None:
    new(store, model, 600, seed=2)
    tick()
    new(store, model, 90, seed=3)
    assert evidence(tick(environment_policies={"clinic": PolicySettings(tolerance=0.02)})).samples == 90


def test_a_cycle_that_could_not_gather_leaves_its_samples_to_the_next(
    store: Store, model: Model, tick: Tick
) -> None:
    new(store, model, 600, seed=2)
    tick()
    known = draw((0.5, 0.5, 0.0), 400, seed=9)
    alike = LabeledLogits(
        [*known.logits, *known.logits[known.labels == 1]],
        [*known.labels, *(2 for _ in range((known.labels == 1).sum()))],
    )
    store.calibration_sets.add(model.reference, alike, actor="tests")
    new(store, model, 90, seed=3)
    refused = tick()
    assert (refused.outcome, report_of(refused).evidence) == ("refuse", None)
    assert replay(store, refused.id) == report_of(refused)
    original = store.calibration_sets.list(model.reference)[0]
    with store.database.write() as connection:
        connection.exec_driver_sql(f"UPDATE models SET calibration_set_id = {original.id}")
    new(store, model, 30, seed=4)
    again = tick()
    assert evidence(again).samples == 720
    assert replay(store, again.id) == report_of(again)


def test_a_chain_whose_samples_were_deleted_is_not_replayed_as_if_nothing_had_happened(
    store: Store, model: Model, tick: Tick
) -> None:
    new(store, model, 600, seed=2)
    tick()
    new(store, model, 900, seed=3)
    cycle = tick()
    oldest = store.predictions.between(
        model.id, "clinic", inputs_of(cycle).base.log_position, cycle.log_position, limit=900
    ).ids[0]
    with store.database.write() as connection:
        connection.exec_driver_sql(f"DELETE FROM predictions WHERE id = x'{oldest.hex}'")
    with pytest.raises(NotFoundError, match="900 new predictions"):
        replay(store, cycle.id)
