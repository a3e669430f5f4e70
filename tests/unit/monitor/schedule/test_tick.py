import logging
import math
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.store import Model, Store
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import UnavailableError
from lifelong_monitor.cycle.cycle import RESUME_SECONDS
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.cycle.lease import hold_renewed_lease
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.jobs.kinds.cycle import run_requested_cycle
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.population import (
    BALANCED,
    CLASS_NAMES,
    MINUTE,
    SHIFTED,
    add_model,
    draw,
    label,
    predict,
)

NOW = datetime.now(UTC)
DUE = due_before(NOW, MINUTE)


def value(
    exporter: Exporter, name: str, model: str = "lesions@1", environment: str = "clinic", **labels: str
):
    role = {} if name.endswith("_total") else {"role": "promoted"}
    return exporter.registry.get_sample_value(
        f"lifelong_{name}", {"model": model, "environment": environment} | role | labels
    )


def cycles(exporter: Exporter, outcome: str, **population: str) -> float | None:
    return value(exporter, "cycles_total", outcome=outcome, **population)


def test_every_population_gets_its_own_cycle(
    store: Store, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    predict(store, model, "other", draw(BALANCED, 600, seed=4))
    ticker.tick(NOW, DUE)
    assert cycles(exporter, "swap") == 1
    assert cycles(exporter, "keep", environment="other") == 1
    assert value(exporter, "head_version") == 2
    assert value(exporter, "head_version", environment="other") == 1
    assert exporter.registry.get_sample_value("lifelong_cycle_seconds_count") == 2


def test_after_a_swap_the_new_assumption_is_shown_beside_the_shift_that_led_to_it(
    store: Store, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    drawn = draw(SHIFTED, 600, seed=3)
    label(store, predict(store, model, "clinic", drawn)[:50], list(drawn.labels[:50]))
    ticker.tick(NOW, DUE)
    for name in CLASS_NAMES:
        estimate = value(exporter, "prevalence_estimate", **{"class": name})
        assert value(exporter, "prevalence_assumed", **{"class": name}) == pytest.approx(estimate, abs=0.005)
        assert value(exporter, "prevalence_low", **{"class": name}) <= estimate
        assert value(exporter, "prevalence_high", **{"class": name}) >= estimate
    assert value(exporter, "prevalence_shift_l1") > 0.8
    assert value(exporter, "window_samples") == 600
    assert value(exporter, "labelled_samples") == 50
    assert 0 < value(exporter, "realised_accuracy") < 1
    activation = store.heads.activations(model.reference, environment="clinic")[-1]
    assert value(exporter, "head_activated_timestamp_seconds") == activation.activated_at.timestamp()
    assert value(exporter, "cycle_last_outcome", outcome="swap") == 1


def test_a_failing_population_does_not_stop_the_others(
    store: Store,
    settings: Settings,
    model: Model,
    ticker: Ticker,
    exporter: Exporter,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = add_model(store, "broken")
    assert broken.calibration_set_id is not None
    # the two calibration sets are equal, so give it one of its own before taking it away
    own = store.calibration_sets.add(broken.reference, draw(BALANCED, 300, seed=7), actor="tests")
    Path(store.artifacts.path(own.digest)).unlink()
    predict(store, broken, "clinic", draw(SHIFTED, 600, seed=3))
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    with caplog.at_level(logging.INFO):
        ticker.tick(NOW, DUE)
    assert cycles(exporter, "error", model="broken@1") == 1
    assert cycles(exporter, "swap") == 1
    assert value(exporter, "cycle_last_success_timestamp_seconds", model="broken@1") is None
    assert value(exporter, "population_first_seen_timestamp_seconds", model="broken@1") == NOW.timestamp()
    assert "broken@1 in clinic: error" in caplog.text


def test_an_unexpected_exception_is_logged_with_its_traceback(
    store: Store,
    model: Model,
    ticker: Ticker,
    exporter: Exporter,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def defect(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a defect")

    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    monkeypatch.setattr("lifelong_monitor.schedule.tick.run_cycle", defect)
    ticker.tick(NOW, DUE)
    assert cycles(exporter, "error") == 1
    assert "Traceback" in caplog.text
    assert "ZeroDivisionError: a defect" in caplog.text


def test_a_restart_does_not_blank_the_dashboard(
    store: Store, settings: Settings, model: Model, ticker: Ticker
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    ticker.tick(NOW, DUE)
    restarted = Exporter(cycle_interval_seconds=60)
    Ticker(store, settings, restarted, stopping=lambda: True).tick(NOW, DUE)
    assert value(restarted, "prevalence_estimate", **{"class": "benign"}) > 0.7
    assert value(restarted, "head_version") == 2
    assert value(restarted, "window_samples") == 600
    last = store.cycles.last(model.id, "clinic")
    assert value(restarted, "cycle_last_success_timestamp_seconds") == last.finished_at.timestamp()
    assert cycles(restarted, "swap") == 0


def test_nothing_new_counts_as_success_and_keeps_the_figures(
    store: Store, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    ticker.tick(NOW, DUE)
    first = value(exporter, "cycle_last_success_timestamp_seconds")
    ticker.tick(NOW + MINUTE, DUE + MINUTE)
    assert cycles(exporter, "skip") == 1
    assert value(exporter, "cycle_last_success_timestamp_seconds") > first
    assert value(exporter, "window_samples") == 600


def test_a_head_published_or_rolled_back_by_a_person_is_shown_at_the_next_tick(
    store: Store, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    ticker.tick(NOW, DUE)
    swapped = value(exporter, "head_activated_timestamp_seconds")
    store.heads.rollback(model.reference, environment="clinic", actor="a person")
    ticker.tick(NOW + MINUTE, DUE + MINUTE)
    assert value(exporter, "head_version") == 1
    assert value(exporter, "prevalence_assumed", **{"class": "benign"}) == pytest.approx(1 / 3)
    # the default head came back to this environment after the swap, although it is older than it
    assert value(exporter, "head_activated_timestamp_seconds") > swapped


def test_evidence_is_shown_only_against_the_head_that_serves(
    store: Store, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    ticker.tick(NOW, DUE)
    assert value(exporter, "shift_evidence_samples") == 600
    assert value(exporter, "shift_log_e_value_alarm") == pytest.approx(math.log(175_200))
    assert value(exporter, "shift_log_e_value") < value(exporter, "shift_log_e_value_alarm")
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=4))
    ticker.tick(NOW + MINUTE, DUE + MINUTE)
    assert value(exporter, "cycle_last_outcome", outcome="swap") == 1
    assert value(exporter, "shift_log_e_value") is None
    assert value(exporter, "expected_gain_low") <= value(exporter, "expected_gain")
    predict(store, model, "clinic", draw(SHIFTED, 300, seed=5))
    ticker.tick(NOW + 2 * MINUTE, DUE + 2 * MINUTE)
    assert value(exporter, "shift_evidence_samples") == 300


def test_mode_pin_and_proposal_are_shown(
    store: Store, settings: Settings, model: Model, exporter: Exporter
) -> None:
    policies = {"clinic": PolicySettings(mode="propose")}
    asking = settings.model_copy(update={"environment_policies": policies})
    ticker = Ticker(store, asking, exporter)
    for environment in ("clinic", "other"):
        predict(store, model, environment, draw(SHIFTED, 600, seed=3))
    ticker.tick(NOW, DUE)
    shown = [value(exporter, name) for name in ("proposal_open", "head_pinned", "head_version")]
    assert shown == [1, 0, 1]
    assert value(exporter, "policy_mode", mode="propose") == 1
    assert value(exporter, "policy_mode", mode="auto", environment="other") == 1
    assert value(exporter, "proposal_open", environment="other") == 0
    # evidence that led to a proposal stays: the head that it speaks against goes on serving
    assert value(exporter, "shift_log_e_value") > 0
    store.heads.pin(model.reference, environment="clinic", reason="under audit", actor="ann")
    ticker.tick(NOW + MINUTE, DUE + MINUTE)
    assert [value(exporter, name) for name in ("proposal_open", "head_pinned")] == [0, 1]


def test_a_population_whose_predictions_are_all_too_old_disappears(
    store: Store, settings: Settings, model: Model, ticker: Ticker, exporter: Exporter
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    ticker.tick(NOW, DUE)
    later = datetime.now(UTC) + settings.window_age + MINUTE
    ticker.tick(later, due_before(later, MINUTE))
    assert value(exporter, "head_version") is None


def test_one_line_says_what_a_cycle_found_and_a_lasting_reason_to_skip_is_said_once(
    store: Store, model: Model, ticker: Ticker, caplog: pytest.LogCaptureFixture
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    with caplog.at_level(logging.INFO):
        for step in range(2):
            ticker.tick(NOW + step * MINUTE, DUE + step * MINUTE)
        # What a swap affects is counted some seconds after it, which is later than NOW where other tests took long.
        ticker.tick(datetime.now(UTC) + 3 * MINUTE, DUE + 3 * MINUTE)
    swap, skip, affected = (
        record.getMessage() for record in caplog.records if record.name.startswith("lifelong_monitor.")
    )
    assert swap.startswith("lesions@1 in clinic: swap. ")
    assert "benign 0." in swap
    assert " to " in swap
    assert "Published head 2." in swap
    assert skip == "lesions@1 in clinic: skip. no new prediction"
    assert affected.startswith("lesions@1 in clinic: head 2 would make ")


def test_without_a_database_the_tick_fails_as_a_whole(
    store: Store, model: Model, ticker: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise UnavailableError("the database does not answer.")

    monkeypatch.setattr(store.predictions, "populations", gone)
    with pytest.raises(UnavailableError):
        ticker.tick(NOW, DUE)


def test_partitions_that_cannot_be_made_now_are_made_at_the_next_tick(
    store: Store,
    model: Model,
    ticker: Ticker,
    exporter: Exporter,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody reads the log for seconds: a reason to wait, not one to stop watching."""
    asked: list[date] = []

    def locked_at_first(today: date) -> tuple[date, ...]:
        asked.append(today)
        if len(asked) == 1:
            raise UnavailableError("canceling statement due to lock timeout.")
        return ()

    monkeypatch.setattr(store.predictions, "ensure_partitions", locked_at_first)
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    for step in range(3):
        ticker.tick(NOW, DUE + step * MINUTE)
    assert cycles(exporter, "swap") == 1
    assert asked == [NOW.date()] * 2
    assert "trying again at the next tick" in caplog.text


def test_a_tick_says_when_to_go_on_with_what_was_left(
    store: Store, settings: Settings, model: Model, ticker: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for environment in ("clinic", "other"):
        predict(store, model, environment, draw(BALANCED, 60, seed=3))
    monkeypatch.setattr("lifelong_monitor.schedule.tick.FOLD_SECONDS", 0.0)
    assert ticker.tick(NOW, DUE) == RESUME_SECONDS
    monkeypatch.undo()
    with hold_renewed_lease(store.leases, f"cycle/{model.id}/clinic", 60):
        assert ticker.tick(NOW, DUE) == settings.lease_seconds
    assert ticker.tick(NOW, DUE) is None
    for environment in ("clinic", "other"):
        assert not store.summaries.are_behind(model.id, environment)


def test_settings_that_name_no_environment_are_warned_of_once(
    store: Store, settings: Settings, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    predict(store, model, "hospital-a", draw(BALANCED, 5, seed=2))
    named = settings.model_copy(
        update={
            "environment_policies": {"hospitl-a": PolicySettings(mode="shadow")},
            "environment_retention_days": {"hospital-a": 30},
        }
    )
    ticker = Ticker(store, named, Exporter(cycle_interval_seconds=3600))
    ticker.tick(DUE, DUE)
    ticker.tick(DUE, DUE)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == [
        "environment_policies names 'hospitl-a', and no prediction has come from it yet."
        " Did you mean hospital-a?"
    ]


def test_a_tick_keeps_the_newest_entry_of_the_audit_log(
    store: Store, model: Model, settings: Settings, ticker: Ticker, caplog: pytest.LogCaptureFixture
) -> None:
    del model  # its entries are in the log
    caplog.set_level(logging.INFO, "lifelong_core")
    ticker.tick(NOW, DUE)
    newest = store.audit.newest()
    assert settings.audit_anchor_file.read_text() == f"{newest}\n"
    assert {"anchor": str(newest)} in [getattr(record, "details", None) for record in caplog.records]
    with store.database.write() as connection:
        connection.execute(sa.delete(tables.audit))
    caplog.clear()
    for step in (1, 2):
        ticker.tick(NOW + step * MINUTE, DUE + step * MINUTE)
    assert caplog.text.count("the audit log is not what it was") == 1
    assert settings.audit_anchor_file.read_text() == f"{newest}\n"


def test_a_cycle_that_an_operator_asked_for_is_shown_by_the_next_look(
    store: Store,
    settings: Settings,
    model: Model,
    ticker: Ticker,
    exporter: Exporter,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    predict(store, model, "clinic", draw(BALANCED, 600, seed=4))
    ticker.tick(NOW, DUE)
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    job = store.jobs.submit("cycle", {"model": model.reference, "environment": "clinic"}, actor="ann")
    skipped = store.jobs.submit("cycle", {"model": model.reference, "environment": "clinic"}, actor="bob")
    run_requested_cycle(store, settings, job)
    for one in (job, skipped):
        ticker.note_job(one)
    assert not ticker.is_round(DUE)
    ticker.tick(NOW, DUE)
    assert cycles(exporter, "swap") == 1
    assert value(exporter, "head_version") == 2
    assert value(exporter, "cycle_last_outcome", outcome="swap") == 1
    (visit,) = ticker.visits
    assert visit.outcome == "swap"
    assert [
        record.getMessage().split(".")[0] for record in caplog.records if ": swap" in record.getMessage()
    ] == ["lesions@1 in clinic: swap"]


def test_labels_are_counted_between_two_rounds_once_in_a_while(
    store: Store, model: Model, ticker: Ticker, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = draw(BALANCED, 60, seed=4)
    ids = predict(store, model, "clinic", drawn)
    ticker.tick(NOW, DUE)
    label(store, ids[:40], drawn.labels[:40].tolist())
    assert not ticker.is_round(DUE)
    ticker.tick(NOW, DUE)
    assert value(exporter, "labelled_samples") in (0, None), "too soon after the round"
    monkeypatch.setattr("lifelong_monitor.schedule.tick.LABELS_SECONDS", 0.0)
    monkeypatch.setattr("lifelong_monitor.schedule.tick.LABELS_SHARE", 0.0)
    ticker.tick(NOW + MINUTE, DUE + MINUTE)
    label(store, ids[40:], drawn.labels[40:].tolist())
    ticker.tick(NOW + MINUTE, DUE + MINUTE)
    assert value(exporter, "labelled_samples") == 60
    compared = store.performance.get(model.id, "clinic")
    assert compared is not None
