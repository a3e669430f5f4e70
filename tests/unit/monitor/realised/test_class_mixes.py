"""The expected cost of labelled predictions at the stated, the estimated and the realised prevalences."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy import stats

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import PrevalenceEstimate
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.entities.performance import MetricAtClassMix
from lifelong_core.store import LabelledPredictions, Model, Store
from lifelong_core.store.log.identifiers import first_id_at
from lifelong_core.store.performance.statements import warn_of_class_mixes
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.realised.class_mixes import compute_class_mixes
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, COSTS, SHIFTED, draw, label, predict
from tests.unit.monitor.recommendations import attach, attached, metric, naming

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
STATED = (0.96, 0.03, 0.01)


def costs_with(prevalence: Sequence[float] | None) -> RecommendedMetric:
    return metric("EC", parameters={"costs": COSTS} | ({"prevalence": prevalence} if prevalence else {}))


def at_most(value: float) -> tuple[AcceptanceThreshold, ...]:
    return (AcceptanceThreshold(metric="EC", value=value),)


def labelled(counts: Sequence[Sequence[int]]) -> LabelledPredictions:
    """Labelled predictions with this confusion matrix."""
    pairs = [(true, made) for true in range(3) for made in range(3) for _ in range(counts[true][made])]
    return LabelledPredictions(
        ids=tuple(first_id_at(MONDAY + timedelta(milliseconds=index)) for index in range(len(pairs))),
        labels=np.array([true for true, _ in pairs]),
        decisions=np.array([made for _, made in pairs]),
        head_versions=np.ones(len(pairs), dtype=np.int64),
        logits=np.zeros((len(pairs), 3), dtype=np.float32),
    )


COUNTS = ((70, 20, 10), (10, 50, 20), (30, 30, 40))
LABELLED = labelled(COUNTS)
RATES = (np.array(COUNTS) * np.array(COSTS)).sum(axis=1) / np.array(COUNTS).sum(axis=1)
"""Mean cost of each true class."""


def estimate(prevalence: Sequence[float], spread: float, *, freedom: float = 20.0) -> PrevalenceEstimate:
    """An estimate whose first and last classes trade places: opposite errors, none in the second."""
    direction = np.array([1.0, 0.0, -1.0])
    shares = np.array(prevalence)
    return PrevalenceEstimate(
        prevalence=shares,
        low=np.maximum(shares - 2 * spread, 0),
        high=np.minimum(shares + 2 * spread, 1),
        confidence=0.95,
        n=600,
        effective_n=600.0,
        method="KDEyML",
        covariance=spread**2 * np.outer(direction, direction),
        degrees_of_freedom=np.full(3, freedom),
    )


def by_mix(found: Sequence[MetricAtClassMix]) -> dict[str, MetricAtClassMix]:
    assert len({one.mix for one in found}) == len(found)
    return {one.mix: one for one in found}


def test_the_class_costs_are_weighed_by_the_prevalences_of_each_mix() -> None:
    shares = (0.5, 0.2, 0.3)
    found = by_mix(
        compute_class_mixes(attached(costs_with(STATED)), LABELLED, estimate(shares, 0.0), CLASS_NAMES)
    )
    realised = np.array(COUNTS).sum(axis=1) / 280
    for mix, prevalence in (("stated", STATED), ("estimated", shares), ("realised", realised)):
        assert found[mix].metric.value == pytest.approx(RATES @ np.array(prevalence)), mix
        assert list(found[mix].prevalences) == list(CLASS_NAMES)
        assert list(found[mix].prevalences.values()) == pytest.approx(prevalence)
        assert found[mix].samples == 280
        assert found[mix].metric.low < found[mix].metric.value < found[mix].metric.high


def test_the_interval_at_the_estimated_prevalences_includes_their_uncertainty() -> None:
    shares, spread = (0.5, 0.2, 0.3), 0.1
    recommendation = attached(costs_with(STATED))
    sure, unsure = (
        by_mix(compute_class_mixes(recommendation, LABELLED, estimate(shares, one), CLASS_NAMES))["estimated"]
        for one in (0.0, spread)
    )
    # The cost changes by the difference of these rates where their classes trade places.
    half = stats.t.ppf(0.975, 20) * spread * abs(RATES[0] - RATES[2])
    assert half > 0.1
    for name in ("low", "high"):
        end, labels_only = getattr(unsure.metric, name), getattr(sure.metric, name)
        value = unsure.metric.value
        assert abs(end - value) == pytest.approx(np.hypot(labels_only - value, half))


def test_an_estimate_of_unknown_spread_tells_only_the_range_of_the_class_costs() -> None:
    made = estimate((0.5, 0.2, 0.3), 0.1, freedom=0.0)
    found = by_mix(compute_class_mixes(attached(costs_with(STATED)), LABELLED, made, CLASS_NAMES))
    assert found["estimated"].metric[1:] == pytest.approx((RATES.min(), RATES.max()))


def test_thresholds_are_judged_at_each_mix() -> None:
    shifted = estimate((0.1, 0.1, 0.8), 0.01)
    recommendation = attached(costs_with(STATED), thresholds=at_most(0.8))
    found = by_mix(compute_class_mixes(recommendation, LABELLED, shifted, CLASS_NAMES))
    assert RATES @ np.array(STATED) < 0.8 < RATES @ np.array((0.1, 0.1, 0.8))
    assert {mix: one.accepted for mix, one in found.items()} == {
        "stated": True,
        "estimated": False,
        "realised": False,
    }
    assert warn_of_class_mixes(tuple(found.values())) == [
        "Expected cost (EC) reaches its threshold 0.8 at the stated prevalences, but misses it at the"
        " estimated and the realised ones."
    ]


@pytest.mark.parametrize(("labels", "accepted"), [(30, False), (29, None)])
def test_a_class_with_few_labels_judges_nothing_at_other_prevalences(
    labels: int, accepted: bool | None
) -> None:
    few = labelled(((70, 20, 10), (10, 50, 20), (labels, 0, 0)))
    recommendation = attached(costs_with(STATED), thresholds=at_most(0.8))
    found = compute_class_mixes(recommendation, few, estimate((0.1, 0.1, 0.8), 0.01), CLASS_NAMES)
    assert by_mix(found)["estimated"].accepted is accepted
    assert by_mix(found)["realised"].accepted is False


def test_a_class_without_a_label_leaves_the_mixes_that_need_it_undefined() -> None:
    two = labelled(((70, 20, 10), (10, 50, 20), (0, 0, 0)))
    recommendation = attached(costs_with(STATED), thresholds=at_most(0.8))
    found = by_mix(compute_class_mixes(recommendation, two, None, CLASS_NAMES))
    assert np.isnan(found["stated"].metric.value)
    assert found["stated"].accepted is None
    assert found["realised"].metric.value == pytest.approx((100 * RATES[0] + 80 * RATES[1]) / 180)
    document = found["stated"].to_document()
    assert document["metric"] == [None, None, None]
    assert MetricAtClassMix.from_document(json.loads(json.dumps(document))).to_document() == document


@pytest.mark.parametrize("what", [costs_with(None), metric("MCC")])
def test_without_stated_prevalences_nothing_is_compared(what: RecommendedMetric) -> None:
    assert compute_class_mixes(attached(what), LABELLED, estimate((0.5, 0.2, 0.3), 0.01), CLASS_NAMES) == ()


def test_without_a_label_nothing_is_compared() -> None:
    nothing = labelled(((0, 0, 0),) * 3)
    assert compute_class_mixes(attached(costs_with(STATED)), nothing, None, CLASS_NAMES) == ()


def test_a_monitor_shows_all_mixes_after_a_shift_and_again_after_each_cycle(
    store: Store, model: Model, settings: Settings
) -> None:
    attach(store, *at_most(0.5), what=naming(costs_with(BALANCED)))
    exporter = Exporter(cycle_interval_seconds=60)
    ticker = Ticker(store, settings, exporter)
    now = datetime.now(UTC)
    drawn = draw(SHIFTED, 600, seed=4)
    ids = predict(store, model, "clinic", drawn)
    label(store, ids[:300], drawn.labels[:300].tolist())
    for step in range(2):
        ticker.tick(now, due_before(now, timedelta(minutes=1)) + step * timedelta(minutes=1))
    stored = store.performance.get(model.id, "clinic")
    found = by_mix(stored.class_mixes)
    shares = np.bincount(drawn.labels[:300], minlength=3) / 300
    assert list(found["realised"].prevalences.values()) == pytest.approx(shares.tolist())
    assert list(found["estimated"].prevalences.values()) == pytest.approx(SHIFTED, abs=0.08)
    assert list(found["stated"].prevalences.values()) == pytest.approx(BALANCED)
    cycle = store.cycles.last(model.id, "clinic")
    assert list(found["estimated"].prevalences.values()) == cycle.report["prevalence"]["prevalence"]
    labels = {
        "model": model.reference,
        "environment": "clinic",
        "role": "promoted",
        "metric": "EC",
        "class": "",
    }
    for mix, figure in found.items():
        shown = exporter.registry.get_sample_value("lifelong_realised_metric", labels | {"prevalence": mix})
        assert shown == figure.metric.value
