"""Samples without a valid output, decision -1: how they count."""

import math

import numpy as np
import pytest

from lifelong_core.metrics import METRICS, compute_metrics, linear_costs

POOL = [acronym for acronym, card in METRICS.items() if card.is_in_pool]
LABELS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 2])
DECISIONS = np.array([0, 0, -1, 1, 2, 2, 2, 0, -1, 2])
VALID = DECISIONS >= 0
SHARE = 0.2
PROBABILITIES = np.random.default_rng(0).dirichlet(np.ones(3), size=10)
COSTS = np.array([[0, 1, 4], [2, 0, 1], [6, 3, 0.5]])
PREVALENCE = np.array([0.3, 0.2, 0.5])
"""of the labels"""


def found(names, **inputs):
    given = {"labels": LABELS, "decisions": DECISIONS, "probabilities": PROBABILITIES, **inputs}
    return compute_metrics(names, **given)


def of_valid(names, **inputs):
    return compute_metrics(
        names, labels=LABELS[VALID], decisions=DECISIONS[VALID], probabilities=PROBABILITIES[VALID], **inputs
    )


def test_means_over_samples_count_an_error():
    values = found(["AC", "ER", "TPR", "FNR", "TNR", "FPR", "BA", "J"])
    assert values["AC"] == pytest.approx(0.6)
    assert values["ER"] == pytest.approx(0.4)
    assert values["TPR"] == pytest.approx([2 / 3, 1 / 2, 3 / 5])
    assert values["FNR"] == pytest.approx([1 / 3, 1 / 2, 2 / 5])
    # Of the seven samples of other classes than 0, one was decided as 0, and one is invalid.
    assert values["TNR"] == pytest.approx([5 / 7, 6 / 8, 3 / 5])
    assert values["FPR"] == pytest.approx([2 / 7, 2 / 8, 2 / 5])
    assert values["BA"] == pytest.approx(values["TPR"].mean())
    assert values["J"] == pytest.approx(values["TPR"] + values["TNR"] - 1)


def test_a_class_whose_samples_are_all_invalid_is_missed_not_absent():
    values = compute_metrics(["TPR", "BA", "AC"], labels=[0, 1], decisions=[0, -1])
    assert values["TPR"].tolist() == [1, 0]
    assert values["BA"] == values["AC"] == 0.5
    assert not values.reasons


def test_costs_are_those_of_the_naive_classifier():
    values, naive = found(["EC", "NEC"], costs=COSTS), (PREVALENCE @ COSTS).min()
    each = np.where(VALID, COSTS[LABELS, DECISIONS], naive)
    assert values["EC"] == pytest.approx(each.mean())
    assert values["NEC"] == pytest.approx(each.mean() / naive)


def test_costs_in_another_population():
    target = np.array([0.6, 0.3, 0.1])
    values, naive = found(["EC", "NEC"], costs=COSTS, prevalence=target), (target @ COSTS).min()
    each = np.where(VALID, COSTS[LABELS, DECISIONS], naive)
    expected = sum(target[k] * each[k == LABELS].mean() for k in range(3))
    assert values["EC"] == pytest.approx(expected)
    assert values["NEC"] == pytest.approx(expected / naive)


def test_scores_of_samples():
    values = found(["BS", "RBS", "BSS", "NLL"])
    truth = np.eye(3)[LABELS]
    squares = ((truth - PROBABILITIES) ** 2).sum(axis=1)
    naive = 1 - (PREVALENCE**2).sum()
    assert values["BS"] == pytest.approx(np.where(VALID, squares, 2).mean())
    assert values["RBS"] == pytest.approx(math.sqrt(values["BS"]))
    assert values["BSS"] == pytest.approx(1 - np.where(VALID, squares, naive).mean() / naive)
    surprise = -np.log(PROBABILITIES[np.arange(10), LABELS])
    entropy = -(PREVALENCE * np.log(PREVALENCE)).sum()
    assert values["NLL"] == pytest.approx(np.where(VALID, surprise, entropy).mean())


MIXED = ["CK", "MCC", "PPV", "FDR", "NPV", "FOR", "LR+", "MK", "F_beta", "JAC", "AUROC", "AP"]
MIXED += ["ECE", "CWCE", "TCE", "MCE", "CE", "ECE_KDE"]


def test_all_others_mix_the_worst_value_in():
    values, valid = found(MIXED), of_valid(MIXED)
    for acronym in MIXED:
        expected = (1 - SHARE) * np.asarray(valid[acronym]) + SHARE * METRICS[acronym].worst
        assert values[acronym] == pytest.approx(expected, nan_ok=True), acronym


def test_or_the_naive_one_where_there_is_no_worst():
    names = ["LR-", "NB", "KCE", "WCK"]
    values, valid = found(names, costs=COSTS), of_valid(names, costs=COSTS)
    treat_all = np.maximum(PREVALENCE - (1 - PREVALENCE), 0)
    for acronym, naive in (("LR-", 1), ("NB", treat_all), ("KCE", 0), ("WCK", 0)):
        assert values[acronym] == pytest.approx((1 - SHARE) * valid[acronym] + SHARE * naive)


def test_treating_all_is_free_where_all_are_of_the_class():
    values = compute_metrics(["NB"], labels=[0, 0], decisions=[-1, -1], threshold=1)
    assert values["NB"].tolist() == [1, 0]


@pytest.mark.parametrize("costs", [None, 3 * linear_costs(3), linear_costs(3) ** 2 / 7])
def test_kappa_has_a_worst_value_for_some_costs(costs):
    values, valid = found(["WCK"], costs=costs), of_valid(["WCK"], costs=costs)
    assert values["WCK"] == pytest.approx((1 - SHARE) * valid["WCK"] - SHARE)


def test_probabilities_of_invalid_outputs_may_be_anything():
    broken = np.where(VALID[:, np.newaxis], PROBABILITIES, np.nan)
    values, expected = found(POOL, probabilities=broken), found(POOL)
    for acronym in POOL:
        assert np.array_equal(values[acronym], expected[acronym], equal_nan=True)


def test_without_a_valid_output_each_metric_has_its_value_for_one():
    values = found(POOL, decisions=np.full(10, -1))
    naive = {
        "EC": 0.5,  # of 0-1 costs
        "NEC": 1,
        "WCK": -1,
        "LR-": 1,
        "NB": np.maximum(2 * PREVALENCE - 1, 0),
        "BSS": 0,
        "NLL": -(PREVALENCE * np.log(PREVALENCE)).sum(),
        "KCE": 0,
        "ECCL": 0,
    }
    for acronym in POOL:
        assert values[acronym] == pytest.approx(naive.get(acronym, METRICS[acronym].worst)), acronym
    assert not values.reasons


def test_reasons_tell_what_is_missing_among_the_valid():
    values = compute_metrics(
        ["AUROC", "PPV"], labels=[0, 0, 1], decisions=[0, 0, -1], probabilities=[[1, 0]] * 3
    )
    assert values.reasons["AUROC"][1] == "no reference sample of class 1 with a valid output"
    assert values.reasons["PPV"][1] == "class 1 was never decided"
    nothing = compute_metrics(["TPR"], labels=[0], decisions=[-1])
    assert nothing["TPR"][0] == 0
    assert nothing.reasons["TPR"][1] == "there is no sample with a valid output"


def test_metrics_at_a_target_mix_too():
    names, target = ["TNR", "J", "PPV"], ("TPR", 0.5)
    values, valid = found(names, target=target), of_valid(names, target=target)
    assert values["J"] == pytest.approx((1 - SHARE) * valid["J"] - SHARE)
    assert values["PPV"] == pytest.approx((1 - SHARE) * valid["PPV"])
    assert np.all(values["TNR"] < valid["TNR"])
