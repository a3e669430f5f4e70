"""The report as a whole: against its parts, and what it says of models that are better, worse or the same."""

from dataclasses import replace

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.validate import validate
from lifelong_core.errors import InvalidInputError
from lifelong_core.metrics import brier_score
from lifelong_core.promotion import PromotionReport, promotion_report
from tests.unit.promotion.reports import (
    CLASSES,
    COSTS,
    RECOMMENDED,
    compared,
    population,
    report,
    without_groups,
)


def test_it_is_stored_and_read_back() -> None:
    made = report()
    assert PromotionReport.from_json(made.to_json()) == made
    assert report() == made


def test_both_results_are_those_of_a_validation() -> None:
    new, current, cases = compared()
    made = report()
    for model, result in ((new, made.new_result), (current, made.current_result)):
        output = model.head.apply(model.logits)
        alone = validate(
            RECOMMENDED,
            cases.labels,
            probabilities=output.probabilities,
            decisions=output.decisions,
            groups=cases.groups,
            metadata=cases.metadata,
            class_names=CLASSES,
            name=model.reference,
            replicates=200,
        )
        assert result.values == alone.values
        assert result.subgroups == alone.subgroups


def test_a_better_model_is_to_be_promoted() -> None:
    made = report()
    assert made.verdict.advice == "promote"
    assert made.costs[0].difference.direction == "better"
    assert {one.attribute for one in made.subgroups} == {"scanner"}
    assert made.changes.mcnemar.groups == 120
    assert made.changes.mcnemar.exact < 1e-4
    assert any("reaches 2 of 2" in reason for reason in made.verdict.reasons)


def test_a_worse_model_is_not() -> None:
    made = report(strength=1.2, before=2.6, thresholds=())
    assert (made.verdict.advice, made.verdict.headline) == ("reject", "Do not promote: it is worse")


def test_a_better_model_that_misses_a_threshold_is_not() -> None:
    made = report(thresholds=[AcceptanceThreshold(metric="EC", value=0.01)])
    assert (made.verdict.advice, made.verdict.headline) == (
        "reject",
        "Do not promote: it misses its thresholds",
    )


def test_where_nothing_differs_a_person_decides() -> None:
    _, current, cases = compared()
    same = replace(current, reference="dermatology@3")
    made = promotion_report(
        "lesions",
        same,
        current,
        cases,
        recommendation=RECOMMENDED,
        class_names=CLASSES,
        costs=COSTS,
        replicates=50,
    )
    assert made.verdict.advice == "decide"
    assert (made.changes.changed, made.changes.mcnemar.exact) == (0, 1.0)
    assert all(one.estimate == 0 for one in made.differences)
    assert any("differs beyond chance" in reason for reason in made.verdict.reasons)


def test_probabilities_are_measured_whether_recommended_or_not() -> None:
    new, _, cases = compared()
    made = report()
    found = next(one for one in made.calibration if one.label == "BS")
    probabilities = new.head.apply(new.logits).probabilities
    assert found.new == pytest.approx(brier_score(cases.labels, probabilities))
    assert [one.label for one in made.calibration] == ["NLL", "BS", "ECE", "CWCE"]


def test_a_populations_cost_is_that_of_its_prevalence_and_of_the_heads_that_decide_there() -> None:
    new, current, cases = compared()
    prevalence = [0.8, 0.15, 0.05]
    there = population("clinic-north", prevalence, new, current)
    found = report().costs[1]
    assert (found.environment, found.prevalence) == ("clinic-north", tuple(prevalence))
    for head, model, value in (
        (there.new_head, new, found.difference.new),
        (there.current_head, current, found.difference.current),
    ):
        decisions = head.apply(model.logits).decisions
        rates = [COSTS[k, decisions[cases.labels == k]].mean() for k in range(3)]
        assert value == pytest.approx(np.dot(prevalence, rates))


def test_without_groups_single_cases_are_resampled() -> None:
    new, current, cases = compared()
    made = promotion_report(
        "lesions",
        new,
        current,
        without_groups(cases),
        recommendation=RECOMMENDED,
        class_names=CLASSES,
        costs=COSTS,
        replicates=50,
    )
    assert made.changes.mcnemar.groups is None
    assert made.new_result.cases == 240


def test_calibration_cases_are_warned_of() -> None:
    new, current, cases = compared()
    assert not any("calibration cases" in warning for warning in report().warnings)
    seen = replace(new, calibration=LabeledLogits(new.logits, cases.labels))
    made = promotion_report(
        "lesions",
        seen,
        current,
        cases,
        recommendation=RECOMMENDED,
        class_names=CLASSES,
        costs=COSTS,
        replicates=50,
    )
    assert made.warnings[0] == "These are the calibration cases of dermatology@2, which favours it."


def test_what_does_not_fit_is_named() -> None:
    new, current, cases = compared()
    given = {"recommendation": RECOMMENDED, "class_names": CLASSES, "costs": COSTS}
    wrong = (
        (replace(new, logits=new.logits[:-1]), current, cases, "logits"),
        (new, current, replace(cases, names=["one"]), "names"),
        (new, replace(current, reference=new.reference), cases, "models"),
        (new, current, replace(cases, metadata={"scanner": ["A"]}), "metadata.scanner"),
    )
    for one, other, labelled, field in wrong:
        with pytest.raises(InvalidInputError) as caught:
            promotion_report("lesions", one, other, labelled, **given)
        assert caught.value.field == field
