"""The recommended metrics of the answers of all heads; the oracle is a validation of them."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.design import Recommendation
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.validate import validate
from lifelong_core.store import Model, Store
from lifelong_core.store.schema import tables
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.realised import metric_inputs, recommended_metrics
from lifelong_monitor.realised.performance import RealisedPerformances
from lifelong_monitor.realised.records import RealisedPerformance
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.population import (
    BALANCED,
    CLASS_NAMES,
    COSTS,
    SHIFTED,
    draw,
    label,
    on_both_databases,
    predict,
)
from tests.unit.monitor.recommendations import attach, metric, naming, of, realised, reasons

EVERYTHING = naming(
    metric("EC", parameters={"costs": COSTS}),
    "BA",
    metric("TPR", class_weights=(1.0, 2.0, 5.0)),
    metric("F_beta", parameters={"beta": 2.0}, target_class=2),
    metric("NB", parameters={"threshold": 0.2}, target_class=2),
    "AUROC",
    "AP",
    "BS",
    "RBS",
    "BSS",
    "NLL",
    "ECE",
    metric("CWCE", class_weights=(1.0, 2.0, 5.0)),
    "KCE",
    "ECE_KDE",
)
FIRST, SECOND = draw(BALANCED, 150, seed=2), draw(SHIFTED, 100, seed=3)
LABELS = np.concatenate([FIRST.labels, SECOND.labels])
GROUPS = [bytes([index % 40]) * 16 for index in range(250)]


@pytest.fixture
def as_many_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """For decisions as for probabilities, so that one validation tells what to expect of both."""
    monkeypatch.setattr(metric_inputs, "REPLICATES", metric_inputs.FEWER_REPLICATES)


def publish_another(store: Store, model: Model) -> None:
    head = PostProcessingHead(0.7, [0.4, 0.0, -0.6], COSTS, [0.7, 0.2, 0.1], CLASS_NAMES)
    store.heads.publish(model.reference, head, environment="clinic", actor="tests")


def two_heads(store: Store, model: Model, *, grouped: bool = False) -> None:
    """150 labelled predictions of head 1, and 100 of head 2."""
    groups = GROUPS if grouped else None
    ids = predict(store, model, "clinic", FIRST, groups=groups and groups[:150])
    publish_another(store, model)
    ids += predict(store, model, "clinic", SECOND, groups=groups and groups[150:])
    label(store, ids, LABELS.tolist())


def validated(
    store: Store,
    model: Model,
    what: Recommendation,
    rows: slice = slice(None),
    *,
    grouped: bool = False,
    replicates: int = metric_inputs.FEWER_REPLICATES,
) -> ValidationResult:
    """Of what the two heads answer."""
    heads = [store.heads.get(model.reference, version).head for version in (1, 2)]
    outputs = [heads[0].apply(FIRST.logits), heads[1].apply(SECOND.logits)]
    return validate(
        what,
        LABELS[rows],
        probabilities=np.concatenate([output.probabilities for output in outputs])[rows],
        decisions=np.concatenate([output.decisions for output in outputs])[rows],
        groups=np.array([group.hex() for group in GROUPS])[rows] if grouped else None,
        replicates=replicates,
    )


def compare(performance: RealisedPerformance, expected: ValidationResult, *labels: str) -> None:
    for value in expected.values:
        if value.label in labels or not labels:
            found = of(performance, value.label, value.class_index)
            bounds = [value.number(bound) for bound in ("estimate", "low", "high")]
            assert [found.estimate, found.low, found.high] == bounds, value.label


@pytest.mark.usefixtures("as_many_resamples")
def test_values_and_intervals_are_those_of_a_validation_of_what_each_head_answered(
    store: Store, model: Model
) -> None:
    two_heads(store, model)
    attach(store, what=EVERYTHING)
    performance, expected = realised(store, model), validated(store, model, EVERYTHING)
    assert len(performance.recommended.values) == len(expected.values) == 24
    assert (performance.recommended.left_out, performance.left_out) == ((), ())
    compare(performance, expected)


@pytest.mark.usefixtures("as_many_resamples")
def test_whole_groups_are_resampled(store: Store, model: Model) -> None:
    two_heads(store, model, grouped=True)
    what = naming("TPR", "AUROC", "BS")
    attach(store, what=what)
    performance = realised(store, model)
    compare(performance, validated(store, model, what, grouped=True))
    alone = validated(store, model, what).value("BS")
    assert of(performance, "BS").estimate == alone.estimate
    assert of(performance, "BS").low != alone.low


def damage(store: Store, version: int, document: str = "{") -> None:
    heads = tables.heads
    with store.database.write() as connection:
        connection.execute(sa.update(heads).where(heads.c.version == version).values(document=document))


@pytest.mark.usefixtures("as_many_resamples")
def test_what_a_damaged_head_answered_is_left_out_where_probabilities_count_and_comes_back_with_it(
    store: Store, model: Model
) -> None:
    two_heads(store, model)
    what = naming("TPR", "AUROC", "BS")
    attach(store, what=what)
    known = RealisedPerformances(store)
    document, expected = store.heads.get(model.reference, 2).head.to_json(), validated(store, model, what)
    partly = validated(store, model, what, slice(150))
    damage(store, 2)
    performance = realised(store, model, known=known)
    compare(performance, partly, "AUROC", "BS")
    compare(performance, expected, "TPR")
    (left_out,) = performance.left_out
    assert left_out.samples == 100
    assert "head 2" in left_out.reason
    damage(store, 2, document)
    compare(realised(store, model, known=known), expected)


def test_without_any_probabilities_only_what_judges_them_is_left_out(store: Store, model: Model) -> None:
    ids = predict(store, model, "clinic", FIRST)
    label(store, ids, FIRST.labels.tolist())
    attach(store, what=naming("TPR", "AUROC", metric("NB", parameters={"threshold": 0.2})))
    damage(store, 1)
    performance = realised(store, model)
    assert {value.label for value in performance.recommended.values} == {"TPR"}
    assert list(reasons(performance)) == ["AUROC", "NB@0.2"]
    assert [some.samples for some in performance.left_out] == [150]


def test_a_head_that_nobody_needs_is_not_read(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_heads(store, model)
    attach(store, what=naming("TPR", metric("TNR", parameters={"target": ("TPR", 0.9)})))
    monkeypatch.setattr(store.heads, "get", None)
    assert of(realised(store, model), "TPR").estimate > 0.5


def spoil(store: Store, ids: Sequence[UUID], values: list[float]) -> None:
    """Give these predictions logits that the service would never have logged."""
    log, blob = tables.predictions, np.array(values, "<f4").tobytes()
    with store.database.write() as connection:
        connection.execute(sa.update(log).where(log.c.id.in_(ids)).values(logits=blob))


@pytest.mark.usefixtures("as_many_resamples")
@on_both_databases
def test_logits_that_nobody_can_judge_are_left_out_and_counted(store: Store, model: Model) -> None:
    ids = predict(store, model, "clinic", FIRST)
    label(store, ids, FIRST.labels.tolist())
    spoil(store, ids[:2], [np.nan, 0, 1])
    spoil(store, ids[2:5], [1, 2, 3, 4])
    what = naming("TPR", "AUROC", "BS")
    attach(store, what=what)
    performance = realised(store, model)
    output = store.heads.get(model.reference, 1).head.apply(FIRST.logits)
    whole = {"probabilities": output.probabilities, "decisions": output.decisions}
    for first, labels in ((5, ("AUROC", "BS")), (3, ("TPR",))):
        kept = np.r_[:2, 5:150] if first == 3 else np.r_[5:150]
        part = {name: values[kept] for name, values in whole.items()}
        compare(performance, validate(what, FIRST.labels[kept], **part, replicates=200), *labels)
    assert performance.samples == 147
    assert [(some.samples, some.reason.split(":")[0]) for some in performance.left_out] == [
        (3, "count nowhere"),
        (2, "have no probabilities for the metrics that judge these"),
    ]


@pytest.mark.usefixtures("as_many_resamples")
def test_of_very_many_predictions_the_newest_count(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of probabilities, the more classes there are, the fewer."""
    monkeypatch.setattr(metric_inputs, "MOST_SAMPLES", 200)
    monkeypatch.setattr(metric_inputs, "MOST_PROBABILITIES", 3 * 120 + 2)
    monkeypatch.setattr(metric_inputs, "MOST_KERNEL_SAMPLES", 80)
    two_heads(store, model)
    what = naming("TPR", "AUROC", "KCE", "ECE_KDE")
    attach(store, what=what)
    performance = realised(store, model)
    compare(performance, validated(store, model, what, slice(50, 250)), "TPR")
    compare(performance, validated(store, model, what, slice(130, 250)), "AUROC")
    compare(performance, validated(store, model, what, slice(170, 250)), "KCE", "ECE_KDE")


def test_decisions_are_resampled_as_often_as_for_a_validation_while_they_are_few(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_heads(store, model)
    what = naming("TPR", "BS")
    attach(store, what=what)
    often, seldom = (validated(store, model, what, replicates=replicates) for replicates in (1000, 200))
    monkeypatch.setattr(metric_inputs, "MOST_FOR_ALL_REPLICATES", 3 * 250)
    performance = realised(store, model)
    compare(performance, often, "TPR")
    compare(performance, seldom, "BS")
    monkeypatch.setattr(metric_inputs, "MOST_FOR_ALL_REPLICATES", 3 * 250 - 1)
    compare(realised(store, model), seldom)


def test_a_kernel_that_takes_much_memory_is_left_out_where_classes_are_many(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommended_metrics, "MOST_KDE_CLASSES", 2)
    two_heads(store, model)
    attach(store, what=naming("ECE_KDE", "KCE", "CWCE"))
    performance = realised(store, model)
    assert [value.label for value in performance.recommended.values] == ["KCE", "CWCE"]
    assert "validate the model" in reasons(performance)["ECE_KDE"]


@pytest.mark.parametrize(
    ("acronym", "class_index", "reached", "missed"),
    [
        ("AUROC", 2, 0.5, 0.9999),
        ("AUROC", None, 0.5, 0.9999),
        ("BS", None, 1.9, 0.001),
        ("NLL", None, 9.0, 0.01),
    ],
)
def test_thresholds_of_probabilities_are_judged_as_those_of_decisions(
    store: Store, model: Model, acronym: str, class_index: int | None, reached: float, missed: float
) -> None:
    ids = predict(store, model, "clinic", FIRST)
    label(store, ids, FIRST.labels.tolist())
    attach(store, what=naming(acronym))
    found = of(realised(store, model), acronym, class_index)
    better = found.high if acronym == "AUROC" else found.low
    for value, accepted in ((reached, True), (missed, False), ((found.estimate + better) / 2, None)):
        threshold = AcceptanceThreshold(metric=acronym, class_index=class_index, value=value)
        attach(store, threshold, what=naming(acronym))
        assert of(realised(store, model), acronym, class_index).accepted is accepted


@pytest.mark.parametrize(("samples", "accepted"), [(3 * 29, None), (3 * 30, False)])
def test_few_probabilities_judge_nothing(
    store: Store, model: Model, samples: int, accepted: bool | None
) -> None:
    """However many decisions there are beside them."""
    label(store, predict(store, model, "clinic", FIRST), FIRST.labels.tolist())
    damage(store, 1)
    publish_another(store, model)
    drawn = draw(BALANCED, samples, seed=4)
    label(store, predict(store, model, "clinic", drawn), drawn.labels.tolist())
    attach(store, AcceptanceThreshold(metric="BS", value=0.001), what=naming("BS"))
    assert of(realised(store, model), "BS").accepted is accepted


def test_they_are_exported_and_what_is_left_out_is_said_once(
    store: Store, settings: Settings, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    two_heads(store, model)
    attach(
        store,
        AcceptanceThreshold(metric="BS", value=0.001),
        what=naming("AUROC", "BS", metric("TPR", parameters={"target": ("TNR", 0.9)})),
    )
    damage(store, 1)
    exporter = Exporter(cycle_interval_seconds=60)
    ticker = Ticker(store, settings, exporter)
    now = datetime.now(UTC)
    with caplog.at_level(logging.INFO):
        for step in range(2):
            due_at = due_before(now, timedelta(minutes=1)) + step * timedelta(minutes=1)
            ticker.tick(now, due_at)
            more = predict(store, model, "clinic", draw(BALANCED, 30, seed=step), head_version=1)
            label(store, more, [0] * 30)
    shown = {
        "model": model.reference,
        "environment": "clinic",
        "role": "promoted",
        "metric": "AUROC",
        "class": "malignant",
        "prevalence": "realised",
    }
    value = exporter.registry.get_sample_value("lifelong_realised_metric", shown)
    assert value is not None
    assert 0.5 < value < 1
    missed = shown | {"metric": "BS", "class": ""}
    assert exporter.registry.get_sample_value("lifelong_realised_metric_accepted", missed) == 0
    said = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert len(said) == 1
    assert "labelled predictions that are left out: 150 have no probabilities" in said[0]
    (unwatched,) = [record.getMessage() for record in caplog.records if "not watched" in record.getMessage()]
    assert "TPR@(TNR=0.9): its cut-off must be chosen" in unwatched
