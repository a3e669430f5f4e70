"""The report as a whole: against its parts, and what it says of models that are better, worse or the same."""

from dataclasses import replace

import numpy as np
import pytest
from netcal.metrics import ECE
from scipy import stats
from sklearn import metrics

from lifelong_core.deploy import LabeledLogits
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.validate import validate
from lifelong_core.promotion import HeldOutCases, PromotionReport, SeenCases, promotion_report
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.validations import metric, recommending
from tests.unit.promotion.reports import (
    CLASSES,
    COSTS,
    RECOMMENDED,
    compared,
    population,
    report,
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


def test_probabilities_hold_for_the_class_shares_that_each_head_assumes() -> None:
    new, current, cases = compared()
    north = population("clinic-north", [0.8, 0.15, 0.05], new, current)
    new = replace(new, head=north.new_head)
    metrics_of = recommending(
        metric("NB", parameters={"threshold": 0.2}),
        target_prevalences_known=True,
        target_prevalences=(0.6, 0.3, 0.1),
    )
    made = promotion_report(
        "lesions",
        new,
        current,
        cases,
        recommendation=metrics_of,
        class_names=CLASSES,
        costs=COSTS,
        replicates=50,
    )
    for model, result in ((new, made.new_result), (current, made.current_result)):
        output = model.head.apply(model.logits)
        weighted = output.probabilities * np.array([0.6, 0.3, 0.1]) / model.head.assumed_prevalence
        decided = weighted[:, 2] / weighted.sum(axis=1) >= 0.2
        rates = [decided[cases.labels == k].mean() for k in range(3)]
        wanted = 0.1 * rates[2] - (0.6 * rates[0] + 0.3 * rates[1]) * 0.25
        assert result.estimate("NB@0.2", 2) == pytest.approx(wanted)


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


def test_the_values_of_both_models_are_those_of_public_libraries() -> None:
    new, current, cases = compared()
    made = report()
    truth = np.eye(3)[cases.labels]
    assert [one.label for one in made.calibration] == ["NLL", "BS", "ECE", "CWCE"]
    for name, model in (("new", new), ("current", current)):
        probabilities = model.head.apply(model.logits).probabilities
        decisions = (probabilities @ COSTS).argmin(axis=1)
        areas = metrics.roc_auc_score(truth, probabilities, average=None)
        expected = {
            ("EC", None): COSTS[cases.labels, decisions].mean(),
            **{("AUROC", k): area for k, area in enumerate(np.asarray(areas))},
            ("NLL", None): metrics.log_loss(cases.labels, probabilities),
            ("BS", None): ((probabilities - truth) ** 2).sum(axis=1).mean(),
            ("ECE", None): ECE(bins=15).measure(probabilities, np.asarray(cases.labels)),
        }
        found = {
            (one.label, one.class_index): getattr(one, name) for one in (*made.differences, *made.calibration)
        }
        for key, value in expected.items():
            assert found[key] == pytest.approx(value, abs=1e-9), key
        found = {(one.label, one.key): getattr(one, name) for one in made.subgroups}
        for scanner in ("A", "B"):
            rows = cases.metadata["scanner"] == scanner
            there = COSTS[cases.labels[rows], decisions[rows]].mean()
            assert found["EC", scanner] == pytest.approx(there)


def test_errors_are_tested_as_by_a_binomial_test_of_the_cases() -> None:
    new, current, cases = compared()
    right = [model.head.apply(model.logits).decisions == cases.labels for model in (new, current)]
    corrected, broken = int((right[0] & ~right[1]).sum()), int((~right[0] & right[1]).sum())
    found = bare_report().changes.mcnemar
    assert (found.corrected, found.broken) == (corrected, broken)
    assert found.exact == pytest.approx(stats.binomtest(corrected, corrected + broken).pvalue)
    tail = stats.binom.pmf(min(corrected, broken), corrected + broken, 0.5)
    assert found.mid_p == pytest.approx(found.exact - tail)


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


def bare_report() -> PromotionReport:
    """A report on cases without groups, subgroups and names."""
    new, current, cases = compared()
    bare = HeldOutCases(labels=cases.labels)
    return promotion_report(
        "lesions",
        replace(new, trained_on=None, cost=None),
        current,
        bare,
        recommendation=RECOMMENDED,
        class_names=CLASSES,
        costs=COSTS,
        replicates=50,
    )


def test_without_groups_single_cases_are_resampled() -> None:
    made = bare_report()
    assert made.changes.mcnemar.groups is None
    assert made.new_result.cases == 240


def test_it_says_what_it_does_not_know() -> None:
    known = " ".join(report().verdict.unknown)
    unknown = " ".join(bare_report().verdict.unknown)
    for text in ("No environment", "no subgroups", "time for one image"):
        assert text not in known
        assert text in unknown
    assert "data of dermatology@1 are not known" in known
    assert "data of dermatology@2 and dermatology@1 are not known" in unknown
    assert "no images" in known
    similar = report(strength=2.0, before=2.0).verdict.unknown
    assert any("cannot be excluded" in text for text in similar)


def test_few_cases_of_which_one_class_is_absent_leave_it_to_a_person() -> None:
    new, current, cases = compared()
    rows = np.array([0, 1, 3, 4])  # of the first two classes
    made = promotion_report(
        "lesions",
        replace(new, logits=new.logits[rows]),
        replace(current, logits=current.logits[rows]),
        HeldOutCases(labels=cases.labels[rows]),
        recommendation=RECOMMENDED,
        class_names=CLASSES,
        costs=COSTS,
        populations=[population("clinic-north", [0.8, 0.15, 0.05], new, current)],
        replicates=50,
    )
    assert made.verdict.advice == "decide"
    absent = [one for one in made.differences if one.class_index == 2]
    assert absent
    assert all(one.estimate is None and one.direction == "open" and one.reason for one in absent)
    assert made.costs[1].difference.estimate is None
    assert made.changes.by_class[2].samples == 0
    assert any("malignant" in text or "class 2" in text for text in made.warnings)


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


@pytest.mark.parametrize(
    ("is_certain", "said"),
    [
        (True, "dermatology@1 was trained or calibrated on 80 of the 240 cases, which favours it."),
        (
            False,
            "80 of the 240 cases are not of the test split of dermatology@1: it may have been trained on them",
        ),
    ],
)
def test_no_model_is_rejected_on_cases_that_the_current_one_was_trained_on(
    is_certain: bool, said: str
) -> None:
    new, current, cases = compared(strength=1.2, before=2.6)
    seen = SeenCases(count=80, is_certain=is_certain)
    made = promotion_report(
        "lesions",
        new,
        replace(current, seen=seen),
        cases,
        recommendation=RECOMMENDED,
        class_names=CLASSES,
        costs=COSTS,
        replicates=100,
    )
    assert made.verdict.advice == "decide"
    assert any(said in warning for warning in made.warnings)
