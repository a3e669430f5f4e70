import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from lifelong_core.design import ModelOutputs, validate
from lifelong_core.design.validation.compare import compare
from lifelong_core.design.validation.values.by_group import groups_with_value
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.validations import metric, recommending, simulated

LABELS, PROBABILITIES = simulated(900, 2, skill=1.0)
GROUPS = np.random.default_rng(4).integers(60, size=900) ** 2 // 10
"""groups of different sizes; some hold one class only"""
ANSWERS = {"number_of_classes": 2, "prevalences_representative": True, "dependent_cases": True}
ONE = {"target_class": 1}


def quick(*metrics, **given):
    outputs = {"probabilities": PROBABILITIES, "groups": GROUPS, "replicates": 200, "aggregation": "by_group"}
    return validate(recommending(*metrics, **ANSWERS), LABELS, **{**outputs, **given})


def of_groups(value):
    """The metric of each group, by definition; nan where it is undefined."""
    return np.array([value(LABELS[g == GROUPS], PROBABILITIES[g == GROUPS]) for g in np.unique(GROUPS)])


def sensitivity(labels, p):
    return (p[labels == 1, 1] > 0.5).mean() if (labels == 1).any() else np.nan


def auroc(labels, p):
    return roc_auc_score(labels, p[:, 1]) if np.unique(labels).size == 2 else np.nan


def test_a_group_with_an_infinite_value_makes_the_mean_infinite():
    labels = np.arange(120) % 2
    sure = np.where(np.arange(120) < 4, 0.0, 0.75)
    outputs = {
        name: ModelOutputs(probabilities=np.where(np.eye(2)[labels] == 1, p[:, None], 1 - p[:, None]))
        for name, p in (("never wrong for sure", np.full(120, 0.7)), ("once wrong for sure", sure))
    }
    found = compare(
        recommending("NLL", **ANSWERS),
        labels,
        outputs,
        groups=np.arange(120) // 4,
        aggregation="by_group",
        replicates=50,
    )
    estimates = {name: one.value("NLL").number("estimate") for name, one in found.results.items()}
    assert estimates["never wrong for sure"] == pytest.approx(-np.log(0.7))
    assert estimates["once wrong for sure"] == np.inf
    ranks = {one.model: one.rank for one in found.rankings[0].models}
    assert ranks["never wrong for sure"] < ranks["once wrong for sure"]


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        (metric("TPR", **ONE), sensitivity),
        ("AC", lambda labels, p: (p.argmax(axis=1) == labels).mean()),
        ("BS", lambda labels, p: ((p - np.eye(2)[labels]) ** 2).sum(axis=1).mean()),
        (metric("AUROC", **ONE), auroc),
        (metric("F_beta", **ONE), lambda labels, p: f1_score(labels, p[:, 1] > 0.5, zero_division=np.nan)),
    ],
)
def test_the_value_is_the_mean_over_the_groups_in_which_it_is_defined(asked, value):
    found = quick(asked).values[0]
    expected = of_groups(value)
    assert found.estimate == pytest.approx(np.nanmean(expected))
    assert found.low < found.estimate < found.high
    defined = int(np.isfinite(expected).sum())
    assert f"Mean over {defined} groups" in found.notes[0]
    assert ("undefined or infinite" in found.notes[0]) is (defined < expected.size)
    pooled = quick(asked, aggregation="pooled").values[0]
    assert pooled.estimate != pytest.approx(found.estimate, abs=1e-6)


def test_the_interval_is_that_of_resampled_groups():
    found = quick("AC", replicates=2000).values[0]
    each = of_groups(lambda labels, p: (p.argmax(axis=1) == labels).mean())
    rng = np.random.default_rng(0)
    means = [rng.choice(each, each.size).mean() for _ in range(4000)]
    spread = np.std(means)
    assert [found.low, found.high] == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.35 * spread)


def test_a_mean_over_classes_is_that_of_their_means():
    result = quick("TPR")
    both = [result.estimate("TPR", k) for k in range(2)]
    assert result.estimate("TPR") == pytest.approx(np.mean(both))


def test_calibration_errors_stay_pooled_and_say_so():
    found = quick("ECE").values[0]
    assert found.estimate == quick("ECE", aggregation="pooled").values[0].estimate
    assert any("Pooled over all samples" in note for note in found.notes)


COSTS = ((0.0, 1.0), (50.0, 0.0))
STATED = {"prevalences_representative": False, "target_prevalences": (0.98, 0.02), "costs": COSTS}
EC_IN_USE = metric("EC", parameters={"costs": COSTS, "prevalence": (0.98, 0.02)})
CLASS_BY_GROUP = {"groups": GROUPS * 2 + LABELS}
"""Groups that lack a class each"""


def test_metrics_at_stated_class_shares_stay_pooled_and_say_so():
    asked = recommending(EC_IN_USE, "MCC", "BA", **{**ANSWERS, **STATED})
    given = {"probabilities": PROBABILITIES, "replicates": 50, **CLASS_BY_GROUP}
    found = validate(asked, LABELS, aggregation="by_group", **given)
    pooled = validate(asked, LABELS, **given)
    for label in ("EC", "MCC"):
        assert found.estimate(label) == pooled.estimate(label)
        assert (found.value(label).low, found.value(label).high) == (
            pooled.value(label).low,
            pooled.value(label).high,
        )
        assert any("Pooled over all samples" in note for note in found.value(label).notes)
    assert found.adjusted_expected_cost.adjusted.estimate == pytest.approx(found.estimate("EC"))
    (said,) = (text for text in found.warnings if "no means over groups" in text)
    assert said.endswith("as a group may lack a class: EC, MCC.")
    assert not any("no means over groups" in text for text in pooled.warnings)
    assert quick("EC").value("EC").notes[0].startswith("Mean over")


def test_the_number_of_groups_can_be_read_from_the_notes():
    sparse = np.where(np.arange(900) % 3, GROUPS, 10_000 + np.arange(900))
    found = quick(metric("TPR", **ONE), groups=sparse).values[0]
    sizes = [(LABELS[sparse == g] == 1).any() for g in np.unique(sparse)]
    assert 0 < sum(sizes) < len(sizes)
    assert groups_with_value(found.notes) == (sum(sizes), len(sizes))
    assert groups_with_value(quick("ECE").values[0].notes) is None
    assert groups_with_value(quick("AC", groups=np.arange(900) // 2).values[0].notes) == (450, 450)


def test_equal_groups_of_one_class_mix_change_nothing_for_means():
    groups = np.arange(900) // 10
    given = {"groups": groups, "replicates": 20}
    assert quick("AC", **given).estimate("AC") == pytest.approx(
        quick("AC", aggregation="pooled", **given).estimate("AC")
    )


def test_more_groups_than_are_computed_at_a_time():
    groups = np.arange(900) // 2
    result = quick("AC", groups=groups, replicates=20)
    each = (PROBABILITIES.argmax(axis=1) == LABELS).reshape(-1, 2).mean(axis=1)
    assert result.estimate("AC") == pytest.approx(each.mean())
    assert "Mean over 450 groups." in result.value("AC").notes


def test_invalid_outputs_are_the_worst_of_their_groups():
    decisions = np.where(np.arange(900) % 5 == 0, -1, PROBABILITIES.argmax(axis=1))
    found = quick("AC", decisions=decisions, replicates=20).estimate("AC")
    each = [(decisions[g == GROUPS] == LABELS[g == GROUPS]).mean() for g in np.unique(GROUPS)]
    assert found == pytest.approx(np.mean(each))


def test_a_subgroup_without_judged_samples_has_no_value():
    answers = {**ANSWERS, "decision_rule": "target_value", "target_metric": "TPR", "target_value": 0.9}
    chooses = np.random.default_rng([0, 1]).permutation(np.unique(GROUPS).size)
    chooses = chooses < np.unique(GROUPS).size // 2
    is_other = np.where(chooses[np.unique(GROUPS, return_inverse=True)[1]], "choosing", "judged")
    result = validate(
        recommending("AC", **answers),
        LABELS,
        probabilities=PROBABILITIES,
        groups=GROUPS,
        metadata={"half": is_other},
        replicates=20,
        aggregation="by_group",
    )
    choosing, judged = result.subgroups
    assert choosing.values[0].estimate is None
    assert judged.values[0].estimate == result.estimate("AC")


def test_models_are_compared_by_the_means_of_groups():
    models = {"one": ModelOutputs(probabilities=PROBABILITIES), "two": ModelOutputs(decisions=LABELS)}
    found = compare(
        recommending("AC", **ANSWERS), LABELS, models, groups=GROUPS, replicates=20, aggregation="by_group"
    )
    expected = of_groups(lambda labels, p: (p.argmax(axis=1) == labels).mean()).mean()
    assert found.results["one"].estimate("AC") == pytest.approx(expected)
    assert found.results["one"].aggregation == "by_group"


@pytest.mark.parametrize("given", [{"groups": None}, {"aggregation": "mean"}])
def test_groups_are_needed(given):
    with pytest.raises(InvalidInputError, match="aggregation"):
        quick("AC", **given)
