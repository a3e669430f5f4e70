"""Paired differences: against a direct bootstrap with the same draws, and the coverage of their intervals."""

import numpy as np
import pytest

from lifelong_core.arrays import Floats, Integers
from lifelong_core.design import ModelOutputs, ProblemFingerprint, Recommendation, recommend
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.paired import PairedValidation, direction_of
from lifelong_core.design.validation.validate import ValidationSettings
from lifelong_core.errors import InvalidInputError
from lifelong_core.metrics import bootstrap

COSTS = np.array([[0.0, 1.0], [5.0, 0.0]])


def recommended(*, costs: bool = False) -> Recommendation:
    """BA, or EC with COSTS, and TPR per class and AUROC."""
    return recommend(
        ProblemFingerprint(
            number_of_classes=2,
            class_scores_available=True,
            decision_rule="argmax",
            unequal_severity=costs,
            costs_available=True if costs else None,
            costs=((0.0, 1.0), (5.0, 0.0)) if costs else None,
            unequal_interest=False,
            prevalences_representative=False,
            class_contribution=None if costs else "equal",
            target_prevalences_known=False if costs else None,
            calibration_assessment=False,
            dependent_cases=False,
            invalid_outputs=False,
        )
    )


def draw(seed: int, samples: int, *, gap: float = 0.0) -> tuple[Integers, Floats, Floats]:
    """Labels and the probabilities of two models that find the same samples hard; the first is better by `gap`."""
    rng = np.random.default_rng(seed)
    labels = np.arange(samples) % 2
    hardness = rng.normal(scale=1.0, size=samples)
    side = 2 * labels - 1

    def probabilities(shift: float) -> Floats:
        score = side * (0.7 + shift) + hardness + 0.4 * rng.normal(size=samples)
        positive = 1 / (1 + np.exp(-2 * score))
        return np.stack([1 - positive, positive], axis=1)

    return labels.astype(np.int64), probabilities(gap), probabilities(0.0)


def paired(
    labels: Integers,
    new: Floats,
    current: Floats,
    *,
    groups: Integers | None = None,
    replicates: int = 200,
    level: float = 0.95,
    seed: int = 3,
    metadata: dict[str, list[str]] | None = None,
    costs: bool = False,
) -> PairedValidation:
    setting = ValidationSettings.of(
        recommended(costs=costs),
        labels,
        groups=groups,
        metadata=metadata,
        class_names=None,
        thresholds=(),
        replicates=replicates,
        level=level,
        rng=seed,
    )
    return PairedValidation.of(
        setting, ("new", ModelOutputs(probabilities=new)), ("current", ModelOutputs(probabilities=current))
    )


def balanced_accuracy(labels: Integers, decisions: Integers) -> float:
    return float(np.mean([(decisions[labels == k] == k).mean() for k in (0, 1)]))


@pytest.mark.parametrize("grouped", [False, True])
def test_a_difference_is_that_of_a_direct_bootstrap_with_the_same_draws(grouped: bool) -> None:
    labels, new, current = draw(0, 200, gap=0.2)
    groups = np.arange(200) // 4 if grouped else None

    def statistic(y: Integers, one: Floats, other: Floats) -> float:
        return balanced_accuracy(y, one.argmax(axis=1)) - balanced_accuracy(y, other.argmax(axis=1))

    direct = bootstrap(
        statistic,
        [labels, new, current],
        groups=np.arange(200) if groups is None else groups,
        replicates=200,
        rng=3,
    )
    found = paired(labels, new, current, groups=groups).differences()[0]
    expected = direct.interval(level=0.95)
    assert found.label == "BA"
    assert found.estimate == pytest.approx(expected.estimate, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert found.new is not None
    assert found.current is not None
    assert found.new - found.current == pytest.approx(found.estimate)


def test_every_value_has_its_difference_in_the_same_order() -> None:
    found = paired(*draw(1, 200, gap=0.3), costs=True)
    values, differences = found.new.result.values, found.differences()
    assert [(one.label, one.class_index) for one in differences] == [
        (one.label, one.class_index) for one in values
    ]
    for value, other, one in zip(values, found.current.result.values, differences, strict=True):
        assert (one.new, one.current) == (value.estimate, other.estimate)
        assert one.orientation == value.orientation


def test_a_pairs_interval_is_narrower_than_that_of_unpaired_values() -> None:
    found = paired(*draw(2, 400))
    difference = found.differences()[0]
    widths = [
        model.result.values[0].number("high") - model.result.values[0].number("low")
        for model in (found.new, found.current)
    ]
    unpaired = float(np.linalg.norm(widths))
    assert difference.number("high") - difference.number("low") < 0.7 * unpaired


@pytest.mark.parametrize("metric", ["BA", "NLL"])
def test_intervals_hold_the_true_difference_as_often_as_they_say(metric: str) -> None:
    """Of 200 studies with 90 % intervals, 180 are expected to; below 167 is less likely than 0.1 %."""
    truth = {"BA": 0.0, "NLL": 0.0}[metric]
    held = 0
    for study in range(200):
        found = paired(*draw(100 + study, 120), replicates=150, level=0.9, seed=study)
        one = found.differences()[0]
        if metric == "NLL":
            (one,) = found.of_metrics([("NLL", RecommendedMetric(metric="NLL", per_class=False))])
        held += one.number("low") <= truth <= one.number("high")
    assert 167 <= held <= 195


def test_groups_widen_the_interval_of_dependent_cases() -> None:
    labels, new, current = draw(4, 100, gap=0.1)
    rows = np.repeat(np.arange(100), 6)
    alone = paired(labels[rows], new[rows], current[rows]).differences()[0]
    together = paired(labels[rows], new[rows], current[rows], groups=rows).differences()[0]
    width = alone.number("high") - alone.number("low")
    assert together.number("high") - together.number("low") > 1.8 * width


def test_equal_models_have_an_interval_around_0_that_narrows_with_the_cases() -> None:
    widths: list[float] = []
    for samples in (50, 500):
        labels, new, _ = draw(5, samples)
        one = paired(labels, new, new).differences()[0]
        assert (one.estimate, one.direction, one.method) == (0.0, "open", "unseen")
        assert one.number("low") < 0 < one.number("high")
        widths.append(one.number("high") - one.number("low"))
    assert widths[1] < 0.2 * widths[0]


def test_a_difference_by_subgroup_is_that_of_its_samples() -> None:
    labels, new, current = draw(6, 200, gap=0.5)
    scanner = ["A", "B", "B", "A"] * 50
    found = paired(labels, new, current, metadata={"scanner": scanner}).subgroup_differences()
    for key in ("A", "B"):
        rows = np.array(scanner) == key
        one = next(one for one in found if one.key == key and one.label == "BA")
        expected = balanced_accuracy(labels[rows], new[rows].argmax(axis=1)) - balanced_accuracy(
            labels[rows], current[rows].argmax(axis=1)
        )
        assert one.estimate == pytest.approx(expected)
        assert (one.attribute, one.samples) == ("scanner", 100)
        assert one.number("low") < one.number("estimate") < one.number("high")


def test_an_expected_cost_is_that_of_the_stated_prevalence_and_decisions() -> None:
    labels, new, current = draw(7, 300, gap=0.3)
    found = paired(labels, new, current)
    own = np.where(new[:, 1] > 0.2, 1, 0)
    one = found.expected_cost(COSTS, [0.9, 0.1], new=own)

    def cost(decisions: Integers) -> float:
        rates = [COSTS[k, decisions[labels == k]].mean() for k in (0, 1)]
        return 0.9 * rates[0] + 0.1 * rates[1]

    assert one.new == pytest.approx(cost(own))
    assert one.current == pytest.approx(cost(current.argmax(axis=1)))
    plain = found.expected_cost(COSTS, None)
    assert plain.new == pytest.approx(COSTS[labels, new.argmax(axis=1)].mean())


def test_an_undefined_value_has_no_difference_and_says_why() -> None:
    labels, new, current = np.zeros(20, np.int64), *draw(8, 20)[1:]
    one = next(one for one in paired(labels, new, current).differences() if one.label == "AUROC")
    assert (one.estimate, one.low, one.direction) == (None, None, "open")
    assert "class" in (one.reason or "")


def test_infinite_values_have_no_difference() -> None:
    labels, _, current = draw(9, 40)
    sure = np.where(np.arange(2) == 1 - labels[:, None], 1.0, 0.0)
    metric = [("NLL", RecommendedMetric(metric="NLL", per_class=False))]
    (one,) = paired(labels, sure, sure).of_metrics(metric)
    assert (one.estimate, one.reason) == (None, "both values are infinite")
    (one,) = paired(labels, sure, current).of_metrics(metric)
    assert (one.number("estimate"), one.estimate) == (np.inf, None)


def test_what_cannot_be_paired_is_refused() -> None:
    labels, new, current = draw(10, 20)
    setting = paired(labels, new, current).setting
    with pytest.raises(InvalidInputError, match="both models"):
        PairedValidation.of(
            setting, ("a", ModelOutputs(probabilities=new)), ("a", ModelOutputs(probabilities=current))
        )
    with pytest.raises(InvalidInputError, match="cut-off data"):
        PairedValidation.of(
            setting,
            ("a", ModelOutputs(probabilities=new, cut_off_data=(labels, new))),
            ("b", ModelOutputs(probabilities=current)),
        )


def test_a_direction_needs_an_interval_beyond_0() -> None:
    assert direction_of(-0.2, -0.1, "down") == "better"
    assert direction_of(0.0, 0.1, "up") == "open"
    assert direction_of(np.nan, 0.1, "up") == "open"
