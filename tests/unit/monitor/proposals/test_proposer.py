"""Proposals of retrainings from real cycles over real windows."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits, PrevalenceEstimate
from lifelong_core.deploy.adaptation.retraining import class_performances
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.store import Cycle, Model, RetrainingProposal, Rollout, Store
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.proposals.proposer import RetrainingProposer
from lifelong_monitor.schedule.tick import Ticker
from tests.databases import KINDS
from tests.unit.monitor.population import BALANCED, HOUR, SHIFTED, draw, label, predict
from tests.unit.monitor.recommendations import attach, metric, naming

WINDOW = 300
MANY_SICK = (0.05, 0.05, 0.9)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(
        update={"window_samples": WINDOW, "quantifier": "ACC", "cycle_interval_seconds": 3600.0}
    )


class Monitor:
    """A monitor whose ticks are an hour apart, ending now."""

    def __init__(self, store: Store, settings: Settings, exporter: Exporter, *, ticks: int = 12) -> None:
        self.store, self.exporter = store, exporter
        self.ticker = Ticker(store, settings, exporter)
        self.due_at = due_before(datetime.now(UTC), HOUR) - ticks * HOUR

    def tick(self) -> None:
        self.due_at += HOUR
        self.ticker.tick(self.due_at, self.due_at)


@pytest.fixture
def monitor(store: Store, settings: Settings, exporter: Exporter) -> Monitor:
    return Monitor(store, settings, exporter)


def blurred(samples: int, *, seed: int) -> LabeledLogits:
    """Logits of a broken camera: no mix of the known classes looks like that."""
    data = draw(BALANCED, samples, seed=seed)
    return LabeledLogits(0.3 * data.logits + np.array([0.0, 1.5, 0.0]), data.labels)


def asks(*thresholds: tuple[str, float]) -> list[AcceptanceThreshold]:
    return [AcceptanceThreshold(metric=name, value=value) for name, value in thresholds]


def reasons(store: Store) -> list[str]:
    return [proposal.reason for proposal in store.proposals.list(state="open")]


def only(store: Store) -> RetrainingProposal:
    (proposal,) = store.proposals.list()
    return proposal


def shown(exporter: Exporter, reason: str) -> float | None:
    labels = {"task": "lesions", "environment": "clinic", "reason": reason}
    return exporter.registry.get_sample_value("lifelong_retraining_proposals", labels)


def test_refusals_of_three_windows_propose(
    store: Store, model: Model, monitor: Monitor, exporter: Exporter
) -> None:
    for number in range(3):
        assert reasons(store) == []
        predict(store, model, "clinic", blurred(WINDOW, seed=number))
        monitor.tick()
        assert store.cycles.list()[0].outcome == "refuse"
    proposal = only(store)
    assert (proposal.model_id, proposal.environment, proposal.reason) == (
        model.id,
        "clinic",
        "repeated_refusals",
    )
    cycles = store.cycles.list()
    assert proposal.details["cycles"] == [str(cycle.id) for cycle in reversed(cycles)]
    assert proposal.details["since"] == cycles[-1].finished_at.isoformat()
    figure = proposal.details["missed"][0]
    assert figure["value"] < figure["threshold"]
    assert "scanner" in proposal.details["look_first"]
    assert shown(exporter, "repeated_refusals") == 1


def test_one_burst_in_a_sliding_window_is_one_refusal(store: Store, model: Model, monitor: Monitor) -> None:
    predict(store, model, "clinic", blurred(WINDOW, seed=0))
    for number in range(5):
        predict(store, model, "clinic", blurred(30, seed=10 + number))
        monitor.tick()
    assert {cycle.outcome for cycle in store.cycles.list()} == {"refuse"}
    assert reasons(store) == []


def test_windows_that_are_too_small_prove_nothing(store: Store, model: Model, monitor: Monitor) -> None:
    for number in range(4):
        predict(store, model, "clinic", blurred(40, seed=number))
        monitor.tick()
    assert len(store.cycles.list()) == 4
    assert reasons(store) == []


def test_prevalence_shifts_propose_nothing(store: Store, model: Model, monitor: Monitor) -> None:
    attach(store, *asks(("EC", 1.5)))
    for number, prevalence in enumerate((BALANCED, SHIFTED, MANY_SICK, BALANCED)):
        data = draw(prevalence, WINDOW, seed=number)
        label(store, predict(store, model, "clinic", data), list(data.labels))
        monitor.tick()
    assert {cycle.outcome for cycle in store.cycles.list()} <= {"keep", "swap"}
    assert store.proposals.list() == []


def test_an_expected_cost_above_acceptance_proposes(
    store: Store, model: Model, monitor: Monitor, exporter: Exporter
) -> None:
    attach(store, *asks(("EC", 0.05)))
    for number in range(3):
        assert reasons(store) == []
        predict(store, model, "clinic", draw(BALANCED, WINDOW, seed=number))
        monitor.tick()
    proposal = only(store)
    assert proposal.reason == "estimated_performance"
    (figure,) = proposal.details["missed"]
    assert (figure["metric"], figure["threshold"]) == ("EC", 0.05)
    assert 0.05 < figure["low"] < figure["value"] < figure["high"]
    assert shown(exporter, "estimated_performance") == 1


def test_expected_accuracy_is_compared_with_its_threshold(
    store: Store, model: Model, monitor: Monitor
) -> None:
    attach(store, *asks(("AC", 0.99)), what=naming(metric("AC")))
    for number in range(3):
        predict(store, model, "clinic", draw(BALANCED, WINDOW, seed=number))
        monitor.tick()
    assert reasons(store) == ["estimated_performance"]
    assert only(store).details["missed"][0]["high"] < 0.99


def test_what_an_interval_leaves_open_proposes_nothing(
    store: Store, model: Model, monitor: Monitor, exporter: Exporter
) -> None:
    predict(store, model, "clinic", draw(BALANCED, WINDOW, seed=0))
    attach(store, *asks(("EC", 0.05)))
    monitor.tick()
    (first,) = store.cycles.list()
    thresholds = _interval_of_expected_cost(store, model, first)
    for cost, expected in ((thresholds[0] + 1e-6, []), (thresholds[0] - 1e-6, ["estimated_performance"])):
        attach(store, *asks(("EC", cost)))
        once = Settings(retraining_proposal_cycles=1)
        proposer = RetrainingProposer(store, once, exporter.proposals)
        registry = store.registry()
        assert registry is not None
        assert [proposal.reason for proposal in proposer.judge(model, first, registry)] == expected


def _interval_of_expected_cost(store: Store, model: Model, cycle: Cycle) -> tuple[float, float]:
    head = store.heads.get(model.reference, cycle.head_version).head
    assert model.calibration_set_id is not None
    calibration = store.calibration_sets.load(model.calibration_set_id)
    estimate = PrevalenceEstimate.from_document(cycle.report["prevalence"])
    figure = class_performances(calibration, head)["EC"].expected(estimate)
    return figure.low, figure.high


def test_another_head_comes_before_another_model(
    store: Store, model: Model, settings: Settings, exporter: Exporter
) -> None:
    attach(store, *asks(("EC", 0.01)))
    monitor = Monitor(store, settings.model_copy(update={"retraining_proposal_cycles": 1}), exporter)
    for number, (outcome, expected) in enumerate((("swap", []), ("keep", ["estimated_performance"]))):
        predict(store, model, "clinic", draw(SHIFTED, WINDOW, seed=number))
        monitor.tick()
        assert store.cycles.list()[0].outcome == outcome
        assert reasons(store) == expected


def test_no_performance_is_estimated_where_more_than_the_prevalence_changed(
    store: Store, model: Model, monitor: Monitor
) -> None:
    attach(store, *asks(("EC", 0.05)))
    for number in range(3):
        predict(store, model, "clinic", blurred(WINDOW, seed=number))
        monitor.tick()
    assert reasons(store) == ["repeated_refusals"]


def answer(store: Store, model: Model, monitor: Monitor, labels: Sequence[int] | None, *, seed: int) -> None:
    """Log 90 predictions, with these labels in turn or the right ones, and run the cycle."""
    data = draw(BALANCED, 90, seed=seed)
    ids = predict(store, model, "clinic", data)
    label(store, ids, list(data.labels) if labels is None else [labels[k % len(labels)] for k in range(90)])
    monitor.tick()


@pytest.mark.parametrize("database_kind", KINDS, indirect=True)
def test_realised_performance_below_acceptance_proposes(
    store: Store, model: Model, monitor: Monitor, exporter: Exporter
) -> None:
    attach(store, *asks(("AC", 0.7)), what=naming(metric("AC")))
    for number in range(3):
        assert reasons(store) == []
        answer(store, model, monitor, (0, 1, 2), seed=number)
    proposal = only(store)
    assert proposal.reason == "realised_performance"
    (figure,) = proposal.details["missed"]
    assert figure["high"] < 0.7
    assert len(proposal.details["cycles"]) == 3
    assert shown(exporter, "realised_performance") == 1


def test_cycles_without_new_labels_are_no_looks(store: Store, model: Model, monitor: Monitor) -> None:
    attach(store, *asks(("AC", 0.7)), what=naming(metric("AC")))
    answer(store, model, monitor, (0, 1, 2), seed=0)
    for number in range(1, 5):
        ids = predict(store, model, "clinic", draw(BALANCED, 90, seed=number))
        # 4 * 7 labels are fewer than two looks need.
        label(store, ids[:7], [0] * 7)
        monitor.tick()
    assert reasons(store) == []


def test_one_good_look_in_between_resets(store: Store, model: Model, monitor: Monitor) -> None:
    attach(store, *asks(("AC", 0.65)), what=naming(metric("AC")))
    answer(store, model, monitor, (0, 1, 2), seed=0)
    for number in range(1, 4):
        answer(store, model, monitor, None, seed=number)
    for number in range(4, 6):
        answer(store, model, monitor, (2, 0, 1), seed=number)
    assert reasons(store) == []


def test_a_dismissed_reason_is_proposed_again_only_after_it_was_gone(
    store: Store, model: Model, monitor: Monitor, exporter: Exporter
) -> None:
    def windows(data: Sequence[LabeledLogits]) -> None:
        for window in data:
            predict(store, model, "clinic", window)
            monitor.tick()

    windows([blurred(WINDOW, seed=number) for number in range(3)])
    first = only(store)
    store.proposals.dismiss(first.id, reason="the camera is broken", actor="ann")
    windows([blurred(WINDOW, seed=number) for number in range(3, 6)])
    assert only(store).fine_at is None
    assert shown(exporter, "repeated_refusals") is None
    windows([draw(BALANCED, WINDOW, seed=6)])
    assert only(store).fine_at is not None
    windows([blurred(WINDOW, seed=number) for number in range(7, 10)])
    assert [proposal.state for proposal in store.proposals.list()] == ["open", "dismissed"]


def test_a_second_monitor_adds_nothing(
    store: Store, model: Model, settings: Settings, monitor: Monitor, exporter: Exporter
) -> None:
    for number in range(3):
        predict(store, model, "clinic", blurred(WINDOW, seed=number))
        monitor.tick()
    other = RetrainingProposer(store, settings, exporter.proposals)
    registry, newest = store.registry(), store.cycles.last(model.id, "clinic")
    assert registry is not None
    assert newest is not None
    assert other.judge(model, newest, registry) == []
    assert len(store.proposals.list()) == 1


def test_a_candidate_is_judged_by_its_trial(
    store: Store, model: Model, settings: Settings, monitor: Monitor, exporter: Exporter
) -> None:
    predict(store, model, "clinic", blurred(WINDOW, seed=0))
    monitor.tick()
    once = settings.model_copy(update={"retraining_proposal_cycles": 1})
    proposer = RetrainingProposer(store, once, exporter.proposals)
    registry, cycle = store.registry(), store.cycles.list()[0]
    assert registry is not None
    trial = Rollout(
        id=1,
        task_id=model.task_id,
        model_id=model.id,
        stage="shadow",
        share=0.0,
        started_at=cycle.started_at,
        started_by="ann",
        changed_at=cycle.started_at,
    )
    on_trial = replace(registry, rollouts=MappingProxyType({model.task_id: trial}))
    assert proposer.judge(model, cycle, on_trial) == []
    assert len(proposer.judge(model, cycle, registry)) == 1


@pytest.mark.parametrize("cycles", [0, 1])
def test_the_setting_says_how_many_cycles_and_0_switches_off(
    store: Store, model: Model, settings: Settings, exporter: Exporter, cycles: int
) -> None:
    monitor = Monitor(store, settings.model_copy(update={"retraining_proposal_cycles": cycles}), exporter)
    predict(store, model, "clinic", blurred(WINDOW, seed=0))
    monitor.tick()
    assert len(reasons(store)) == cycles


def test_a_failure_harms_neither_the_cycle_nor_other_populations(
    store: Store,
    model: Model,
    monitor: Monitor,
    exporter: Exporter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(RetrainingProposer, "judge", fail)
    predict(store, model, "clinic", blurred(WINDOW, seed=0))
    predict(store, model, "ward", blurred(WINDOW, seed=1))
    with caplog.at_level(logging.ERROR):
        monitor.tick()
    assert [cycle.outcome for cycle in store.cycles.list()] == ["refuse", "refuse"]
    errors = [record.getMessage() for record in caplog.records]
    assert sorted(errors) == [
        f"lesions@1 in {place}: a retraining could not be considered: out of order"
        for place in ("clinic", "ward")
    ]
    labels = {"model": "lesions@1", "environment": "clinic", "outcome": "error"}
    assert exporter.registry.get_sample_value("lifelong_cycles_total", labels) == 0
