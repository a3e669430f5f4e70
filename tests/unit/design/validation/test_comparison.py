"""Metrics that rank models, one of each group of related ones, and the ranking that was asked for."""

import pytest

from lifelong_core.design import ModelOutputs, ProblemFingerprint, compare, recommend
from lifelong_core.design.validation.comparison import headline_of, out_of_ranking
from tests.unit.design.interviews import ALL_ALIKE
from tests.unit.design.validations import metric, recommending, simulated

CALIBRATED = {
    **ALL_ALIKE,
    "number_of_classes": 3,
    "calibration_assessment": True,
    "class_imbalance": False,
    "ranking_preserving": True,
}


def recommended(**answers):
    return recommend(ProblemFingerprint(**{**CALIBRATED, **answers}))


def labels_of(found):
    return [item.label for item in found.metrics]


def test_the_sensitivity_of_each_class_is_shown_and_does_not_rank():
    found = recommended(calibration_assessment=False, class_imbalance=None, ranking_preserving=None)
    assert labels_of(found) == ["BA", "TPR", "AUROC"]
    assert out_of_ranking(found, {}) == {
        "TPR": "it says much the same as BA: BA is the mean of TPR over the classes"
    }


def test_what_describes_one_model_does_not_rank():
    found = recommended(calibration_comparison="none", output_interpretation="joint")
    assert labels_of(found) == ["BA", "TPR", "AUROC", "BS"]
    assert "describe a given model" in out_of_ranking(found, {})["BS"]
    both = recommended(calibration_comparison="U3", output_interpretation="joint")
    assert "BS" not in out_of_ranking(both, {})


def test_an_undefined_metric_leaves_its_place_to_a_related_one():
    found = recommended(calibration_assessment=False, class_imbalance=None, ranking_preserving=None)
    assert out_of_ranking(found, {"BA": "it is undefined"}) == {"BA": "it is undefined"}


def test_metrics_at_a_target_are_related_only_at_the_same_target():
    at_target = metric("TPR", parameters={"target": ("PPR", 0.1)})
    precision = metric("PPV", parameters={"target": ("PPR", 0.1)})
    found = recommending("BA", at_target, precision)
    assert list(out_of_ranking(found, {})) == ["PPV@(PPR=0.1)"]


def test_a_metric_with_other_parameters_counts_once():
    costs = [metric("EC", parameters={"costs": ((0.0, 1.0), (c, 0.0))}) for c in (2.0, 9.0)]
    assert out_of_ranking(recommending(*costs), {}) == {"EC (2)": "it is EC with other parameters"}


@pytest.mark.parametrize(
    ("answers", "label", "words"),
    [
        ({"calibration_comparison": "U1", "output_interpretation": "none"}, "BS", "U1"),
        ({"calibration_comparison": "U2", "output_interpretation": "none"}, "KCE", "U2"),
        ({"calibration_comparison": "U3", "output_interpretation": "none"}, "BS", "joint score"),
        ({"calibration_comparison": "none", "output_interpretation": "joint"}, None, "all metrics"),
    ],
)
def test_the_headline_is_the_ranking_that_was_asked_for(answers, label, words):
    """Thesis section 4.1.3: U1 to U3 want a ranking, U4 a number about a given model."""
    found = headline_of(recommended(**answers))
    assert found.label == label
    assert words in found.why


def test_a_comparison_holds_its_headline():
    labels, good = simulated(60, 3)
    models = {
        "good": ModelOutputs(probabilities=good),
        "other": ModelOutputs(probabilities=simulated(60, 3, seed=4)[1]),
    }
    found = compare(
        recommended(calibration_comparison="U3", output_interpretation="none"), labels, models, replicates=20
    )
    assert found.headline.label == "BS"
    assert found.rank_then_mean.labels == ("BA", "AUROC", "BS")
    assert found.rank_then_mean.left_out["TPR"].startswith("it says much the same as BA")
    assert {ranking.label for ranking in found.rankings} == {"BA", "TPR", "AUROC", "BS"}
