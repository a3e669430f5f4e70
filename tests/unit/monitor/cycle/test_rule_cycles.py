"""Cycles of a head with a target: what its rule will reach, how long it has been missed, and the replay."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import TargetValue
from lifelong_core.store import Cycle, Model, Store
from lifelong_monitor.cycle.cycle import CycleResult, run_cycle
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import count_missed_cycles, inputs_of, report_of
from lifelong_monitor.cycle.text import format_cycle
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.realised.comparison import PerformanceComparer
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, DUE, SHIFTED, add_model, draw, label, predict

TARGET = 0.8
MALIGNANT = 2


@pytest.fixture
def model(store: Store) -> Model:
    """Its heads keep a precision of malignant."""
    return add_model(store, "rules", rule=TargetValue("PPV", TARGET, MALIGNANT))


def in_mode(settings: Settings, mode: str) -> Settings:
    return settings.model_copy(update={"policy": settings.policy.model_copy(update={"mode": mode})})


def cycle_of(
    store: Store, settings: Settings, model: Model, prevalence: Sequence[float], step: int = 0
) -> CycleResult:
    predict(store, model, "clinic", draw(prevalence, 600, seed=3 + step))
    return run_cycle(store, settings, model, "clinic", DUE + step * timedelta(minutes=1))


def recorded(result: CycleResult) -> Cycle:
    assert result.last is not None
    assert result.report is not None
    return result.last


def precision(store: Store, model: Model, version: int, prevalence: Sequence[float]) -> float:
    """Of a head, on many samples of a population."""
    drawn = draw(prevalence, 60_000, seed=99)
    decided = store.heads.get(model.reference, version).head.apply(drawn.logits).decisions == MALIGNANT
    return float((drawn.labels[decided] == MALIGNANT).mean())


def test_without_a_shift_the_rule_is_expected_to_reach_its_target(
    store: Store, settings: Settings, model: Model
) -> None:
    result = cycle_of(store, settings, model, BALANCED)
    found = report_of(recorded(result)).criterion
    assert (found.metric, found.target, found.is_missed) == ("PPV", TARGET, False)
    assert found.low < precision(store, model, 1, BALANCED) < found.high
    text = format_cycle(result, CLASS_NAMES)
    assert (
        f"Precision {found.value:.3f} ({found.low:.3f} to {found.high:.3f}) expected here, target at least 0.8"
        in text
    )
    assert "missed" not in text


def test_a_shift_swaps_the_head_and_the_new_cut_off_keeps_the_target(
    store: Store, settings: Settings, model: Model
) -> None:
    result = cycle_of(store, settings, model, SHIFTED)
    cycle, report = recorded(result), report_of(recorded(result))
    assert (cycle.outcome, cycle.published_version) == ("swap", 2)
    assert report.criterion.is_missed
    assert report.candidate_criterion.cut_off > report.criterion.cut_off
    heads = {version: store.heads.get(model.reference, version).head.digest for version in (1, 2)}
    assert heads == {1: report.head_digest, 2: report.candidate.digest}
    frozen, swapped = (precision(store, model, version, SHIFTED) for version in (1, 2))
    assert frozen < TARGET - 0.1
    assert report.criterion.low < frozen < report.criterion.high
    assert report.candidate_criterion.low < swapped < report.candidate_criterion.high
    assert abs(swapped - TARGET) < abs(frozen - TARGET) / 2
    text = format_cycle(result, CLASS_NAMES)
    assert "target at least 0.8: missed" in text
    assert f"With the new head: Precision {report.candidate_criterion.value:.3f}" in text


def test_cycles_that_expect_a_missed_target_are_counted_until_it_is_reached(
    store: Store, settings: Settings, model: Model
) -> None:
    shadow = in_mode(settings, "shadow")
    # With enough malignant cases for a narrow interval: how wide it is depends on the seed, which is the due time.
    fewer = (0.8, 0.1, 0.1)
    missed = [
        inputs_of(recorded(cycle_of(store, shadow, model, prevalence, step))).missed_cycles
        for step, prevalence in enumerate((BALANCED, fewer, fewer, fewer, BALANCED))
    ]
    assert missed == [0, 1, 2, 3, 0]


def test_a_cycle_without_an_estimate_leaves_the_count_and_one_of_another_rule_ends_it(
    store: Store, settings: Settings, model: Model
) -> None:
    cycle = recorded(cycle_of(store, in_mode(settings, "shadow"), model, SHIFTED))
    report = report_of(cycle)
    nothing = replace(report, criterion=None, prevalence=None)
    least_cost = replace(report, criterion=None)
    assert [count_missed_cycles(one, cycle) for one in (report, nothing, least_cost)] == [2, 1, 0]
    assert count_missed_cycles(report, None) == 1
    assert count_missed_cycles(replace(report, head_digest="of another head"), cycle) == 1
    older: dict[str, Any] = {name: value for name, value in cycle.report.items() if name != "inputs"}
    assert count_missed_cycles(report, replace(cycle, report=older)) == 1


def test_a_replay_gives_the_same_report(store: Store, settings: Settings, model: Model) -> None:
    for prevalence in (BALANCED, SHIFTED):
        cycle = recorded(cycle_of(store, settings, model, prevalence, int(prevalence is SHIFTED)))
        assert replay(store, cycle.id) == report_of(cycle)


def test_the_monitor_shows_the_expected_and_the_realised_metric_of_the_swapped_head(
    store: Store, settings: Settings, model: Model
) -> None:
    exporter = Exporter(cycle_interval_seconds=60)
    ticker, now = Ticker(store, settings, exporter), datetime.now(UTC)
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=4))
    ticker.tick(now, DUE)
    drawn = draw(SHIFTED, 2000, seed=5)
    ids = predict(store, model, "clinic", drawn)
    label(store, ids, drawn.labels.tolist())
    ticker.tick(now, DUE + timedelta(minutes=1))

    def shown(name: str, **labels: str) -> float | None:
        place = {"model": model.reference, "environment": "clinic", "role": "promoted"}
        return exporter.registry.get_sample_value(f"lifelong_decision_rule_{name}", place | labels)

    of = {"metric": "PPV", "class": "malignant"}
    decided = store.heads.get(model.reference, 2).head.apply(drawn.logits).decisions == MALIGNANT
    assert decided.sum() >= 30
    assert shown("realised", **of) == pytest.approx(np.mean(drawn.labels[decided] == MALIGNANT))
    assert shown("target", **of) == TARGET
    head = store.heads.get(model.reference, 2).head
    assert shown("cut_off", **of) == head.cut_off
    low, value, high = (shown(name, **of) for name in ("expected_low", "expected", "expected_high"))
    assert low is not None
    assert value is not None
    assert high is not None
    assert low < value < high
    assert shown("reached", by="estimate", **of) in (0.5, 1)
    assert shown("missed_cycles") == 0


def test_a_least_cost_task_shows_none(store: Store, settings: Settings) -> None:
    other = add_model(store, "costs")
    exporter = Exporter(cycle_interval_seconds=60)
    predict(store, other, "clinic", draw(SHIFTED, 600, seed=4))
    Ticker(store, settings, exporter).tick(datetime.now(UTC), DUE)
    assert not [
        sample
        for family in exporter.registry.collect()
        for sample in family.samples
        if sample.name.startswith("lifelong_decision_rule")
    ]


def test_a_head_that_cannot_be_read_leaves_the_realised_metric_out(store: Store, model: Model) -> None:
    drawn = draw(BALANCED, 300, seed=2)
    label(store, predict(store, model, "clinic", drawn, head_version=77), drawn.labels.tolist())
    comparer, task = PerformanceComparer(store, Settings()), store.tasks.get("rules")
    found = comparer.compare(task, model, "clinic", inputs="0", now=datetime.now(UTC))
    assert found.rule_metric is None
