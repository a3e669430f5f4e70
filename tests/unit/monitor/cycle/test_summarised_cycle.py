"""A cycle over a large window reads the summaries of whole hours, and can be replayed from the rows."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import AdaptationReport, LabeledLogits
from lifelong_core.store import Cycle, LogEntry, Model, Prediction, Store, new_prediction_id
from lifelong_core.store.log.identifiers import first_id_at
from lifelong_core.values.errors import NotFoundError
from lifelong_monitor.cycle.cycle import INCOMPLETE, RESUME_SECONDS, CycleResult, run_cycle
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import inputs_of, report_of
from tests.unit.monitor.population import BALANCED, HOUR, SHIFTED, draw, on_both_databases

NOW = datetime.now(UTC)
THIS_HOUR = due_before(NOW, HOUR)


@pytest.fixture(autouse=True)
def summaries_from_500_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifelong_monitor.cycle.window.LARGEST_WINDOW_OF_ROWS", 500)


def log(
    store: Store,
    model: Model,
    hours_ago: int,
    logits: LabeledLogits,
    groups: Sequence[bytes] | None = None,
) -> list[UUID]:
    """As if made so many hours ago."""
    store.environments.ensure("clinic", limit=10)
    first = first_id_at(THIS_HOUR - hours_ago * HOUR).int
    ids = [UUID(int=first + new_prediction_id().int % 2**62) for _ in range(logits.samples)]
    rows = [
        Prediction(one, model.id, "clinic", 1, 0, row, None if groups is None else groups[index])
        for index, (one, row) in enumerate(zip(ids, logits.logits, strict=True))
    ]
    store.predictions.append([LogEntry((row,)) for row in rows])
    return ids


def cycle(
    store: Store, settings: Settings, model: Model, due_at: datetime = NOW, **options: object
) -> CycleResult:
    return run_cycle(store, settings, model, "clinic", due_at, **options)  # type: ignore[arg-type]


def recorded(result: CycleResult) -> Cycle:
    assert result.last is not None, result.reason
    return result.last


def same_to_rounding(one: AdaptationReport, other: AdaptationReport) -> bool:
    """All that is text or counted is equal, all figures to 1e-9; a candidate's provenance names digests of sums."""

    def close(left: object, right: object) -> bool:
        if isinstance(left, float) and isinstance(right, float):
            return bool(np.isclose(left, right, rtol=1e-9, atol=1e-9))
        if isinstance(left, dict) and isinstance(right, dict):
            return left.keys() == right.keys() and all(
                name == "window_digest" or name == "digest" or close(left[name], right[name]) for name in left
            )
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(map(close, left, right))
        return left == right

    return close(one.to_document(), other.to_document())


@on_both_databases
@pytest.mark.parametrize(
    ("mix", "outcome", "is_grouped"), [(BALANCED, "keep", False), (SHIFTED, "swap", True)]
)
def test_a_large_window_is_made_of_whole_hours_and_can_be_replayed(
    store: Store,
    settings: Settings,
    model: Model,
    mix: tuple[float, ...],
    outcome: str,
    is_grouped: bool,
) -> None:
    groups = [bytes([index % 200]) * 16 for index in range(300)] if is_grouped else None
    for hours_ago in (4, 3, 2):
        log(store, model, hours_ago, draw(mix, 300, seed=hours_ago), groups)
    result = cycle(store, settings, model)
    assert result.outcome == outcome
    made = recorded(result)
    hours = inputs_of(made).hours
    # 600 are wanted: two whole hours are enough.
    assert (made.window_samples, hours.since, hours.until) == (
        600,
        THIS_HOUR - 3 * HOUR,
        THIS_HOUR - HOUR,
    )
    assert hours.is_grouped is is_grouped
    assert inputs_of(made).new_samples == 600
    # What comes later changes nothing, late rows of those hours included.
    log(store, model, 2, draw(BALANCED, 90, seed=8), groups)
    log(store, model, 1, draw(BALANCED, 300, seed=9))
    second = cycle(store, settings, model, NOW + HOUR)
    assert recorded(second).window_samples == 690
    assert inputs_of(recorded(second)).new_samples == 390
    for one in (made, recorded(second)):
        assert same_to_rounding(replay(store, one.id), report_of(one))
    assert not same_to_rounding(replay(store, made.id), report_of(recorded(second)))


def test_the_head_that_it_publishes_says_which_hours_it_was_made_for(
    store: Store, settings: Settings, model: Model
) -> None:
    log(store, model, 2, draw(SHIFTED, 600, seed=1))
    made = recorded(cycle(store, settings, model))
    assert made.published_version == 2
    began = (THIS_HOUR - 2 * HOUR).isoformat()
    window = store.heads.get(model.reference, 2).head.provenance["window"]
    assert window == {"first": began, "last": began, "samples": 600}


def test_it_says_nearly_the_same_as_a_cycle_over_rows(
    store: Store, settings: Settings, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(store, model, 2, draw(SHIFTED, 600, seed=1))
    shadow = settings.model_copy(
        update={"policy": settings.policy.model_copy(update={"mode": "shadow"})}, deep=True
    )
    by_hours = report_of(recorded(cycle(store, shadow, model))).prevalence
    monkeypatch.setattr("lifelong_monitor.cycle.window.LARGEST_WINDOW_OF_ROWS", 20_000)
    log(store, model, 20, draw(SHIFTED, 3, seed=1))
    by_rows = report_of(recorded(cycle(store, shadow, model, NOW + 2 * HOUR))).prevalence
    width = by_rows.high - by_rows.low
    assert (np.abs(by_hours.prevalence - by_rows.prevalence) < 0.1 * width).all()


def test_while_the_summaries_are_being_made_the_cycle_waits_and_is_called_again(
    store: Store, settings: Settings, model: Model
) -> None:
    log(store, model, 2, draw(SHIFTED, 600, seed=1))
    first = cycle(store, settings, model, may_fold=lambda: False)
    assert (first.outcome, first.reason, first.again_in) == ("skip", INCOMPLETE, RESUME_SECONDS)
    assert first.succeeded_at is None
    again = cycle(store, settings, model, may_fold=lambda: False)
    assert (again.outcome, again.again_in) == ("swap", None)


def test_hours_that_lost_rows_are_made_anew_although_nothing_is_due(
    store: Store, settings: Settings, model: Model
) -> None:
    ids = log(store, model, 2, draw(SHIFTED, 600, seed=1))
    cycle(store, settings, model)
    with store.database.write() as connection:
        connection.exec_driver_sql(f"DELETE FROM predictions WHERE id = x'{ids[0].hex}'")
        store.summaries.mark_stale(connection, model_id=model.id)
    assert store.summaries.are_behind(model.id, "clinic")
    repeated = cycle(store, settings, model)
    assert repeated.outcome == "skip"
    assert repeated.succeeded_at == recorded(repeated).finished_at
    assert not store.summaries.are_behind(model.id, "clinic")


def test_a_cycle_whose_rows_are_gone_is_not_replayed_as_if_nothing_had_happened(
    store: Store, settings: Settings, model: Model
) -> None:
    ids = log(store, model, 2, draw(BALANCED, 600, seed=1))
    made = recorded(cycle(store, settings, model))
    with store.database.write() as connection:
        connection.exec_driver_sql(f"DELETE FROM predictions WHERE id = x'{ids[0].hex}'")
    with pytest.raises(NotFoundError, match="599 predictions of the 600"):
        replay(store, made.id)


def test_rows_from_the_future_are_in_the_window_and_are_not_lost_when_the_clock_goes_back(
    store: Store, settings: Settings, model: Model
) -> None:
    log(store, model, -1, draw(BALANCED, 300, seed=1))
    log(store, model, 1, draw(BALANCED, 300, seed=2))
    ahead = recorded(cycle(store, settings, model, NOW + HOUR))
    assert ahead.window_samples == 600
    log(store, model, 0, draw(BALANCED, 90, seed=3))
    minutes = settings.model_copy(update={"cycle_interval_seconds": 60.0})
    back = recorded(cycle(store, minutes, model))
    assert back.due_at == NOW
    assert back.window_samples == 690
    assert inputs_of(back).new_samples == 90
    for one in (ahead, back):
        assert same_to_rounding(replay(store, one.id), report_of(one))


@pytest.mark.parametrize(("seconds", "is_summarised"), [(6 * 3600.0 - 1, False), (6 * 3600.0, True)])
def test_a_window_of_few_hours_is_read_row_by_row(
    store: Store, settings: Settings, model: Model, seconds: float, is_summarised: bool
) -> None:
    log(store, model, 1, draw(BALANCED, 600, seed=1))
    short = settings.model_copy(update={"window_seconds": seconds})
    made = recorded(cycle(store, short, model))
    assert made.window_samples == 600
    assert (inputs_of(made).hours is not None) is is_summarised


def test_the_comparison_sees_a_difference(store: Store, settings: Settings, model: Model) -> None:
    log(store, model, 2, draw(BALANCED, 600, seed=1))
    report = report_of(recorded(cycle(store, settings, model)))
    moved = replace(report, prevalence=replace(report.prevalence, n=601))
    assert not same_to_rounding(moved, report)
    nearly = replace(
        report, prevalence=replace(report.prevalence, effective_n=1e-6 + report.prevalence.effective_n)
    )
    assert not same_to_rounding(nearly, report)
