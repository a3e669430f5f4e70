"""Paired differences: against a direct bootstrap with the same draws, and against transcriptions."""

import numpy as np
import pytest

from lifelong_core.design import ModelOutputs, ProblemFingerprint, Recommendation, recommend
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.differences import MetricDifference, direction_of, judge_together
from lifelong_core.design.validation.paired import PairedValidation
from lifelong_core.design.validation.validation_settings import ValidationSettings
from lifelong_core.design.validation.values.intervals import difference_bounds
from lifelong_core.metrics import bootstrap
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError

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
            assumed_prevalences="test_data" if costs else None,
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


def documents(found: PairedValidation) -> list[MetricDifference]:
    return [one.document for one in found.differences()]


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
    of_metric = paired(labels, new, current, groups=groups).differences()[0]
    found = of_metric.document
    plain = direct.interval(level=0.95)
    expected = difference_bounds(direct, level=0.95, limits=(-1.0, 1.0), cases=of_metric.cases)
    assert found.label == "BA"
    assert found.estimate == pytest.approx(plain.estimate, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert expected.low < plain.low < plain.high < expected.high
    assert found.new is not None
    assert found.current is not None
    assert found.new - found.current == pytest.approx(found.estimate)


def test_every_value_has_its_difference_in_the_same_order() -> None:
    found = paired(*draw(1, 200, gap=0.3), costs=True)
    values, differences = found.new.result.values, documents(found)
    assert [(one.label, one.class_index) for one in differences] == [
        (one.label, one.class_index) for one in values
    ]
    for value, other, one in zip(values, found.current.result.values, differences, strict=True):
        assert (one.new, one.current) == (value.estimate, other.estimate)
        assert one.orientation == value.orientation


def test_a_pairs_interval_is_narrower_than_that_of_unpaired_values() -> None:
    found = paired(*draw(2, 400))
    difference = documents(found)[0]
    widths = [
        model.result.values[0].number("high") - model.result.values[0].number("low")
        for model in (found.new, found.current)
    ]
    unpaired = float(np.linalg.norm(widths))
    assert difference.number("high") - difference.number("low") < 0.7 * unpaired


def test_groups_widen_the_interval_of_dependent_cases() -> None:
    labels, new, current = draw(4, 100, gap=0.1)
    rows = np.repeat(np.arange(100), 6)
    alone = documents(paired(labels[rows], new[rows], current[rows]))[0]
    together = documents(paired(labels[rows], new[rows], current[rows], groups=rows))[0]
    width = alone.number("high") - alone.number("low")
    assert together.number("high") - together.number("low") > 1.8 * width


def test_equal_decisions_have_an_interval_around_0_that_narrows_with_the_cases() -> None:
    widths: list[float] = []
    for samples in (50, 500):
        labels, new, _ = draw(5, samples)
        surer = np.where(new > 0.5, 0.5 + new / 2, new / 2)
        one = documents(paired(labels, new, surer))[0]
        assert (one.estimate, one.direction, one.method) == (0.0, "open", "unseen")
        assert one.number("low") < 0 < one.number("high")
        widths.append(one.number("high") - one.number("low"))
    assert widths[1] < 0.2 * widths[0]


def test_equal_outputs_differ_in_nothing() -> None:
    labels, new, _ = draw(5, 50)
    found = paired(labels, new, new, metadata={"scanner": ["A", "A", "B", "B", "B"] * 10}, costs=True)
    metrics = found.of_metrics([("ECE", RecommendedMetric(metric="ECE", per_class=False))])
    cost = found.expected_cost(COSTS, [0.9, 0.1]).document
    for one in (*documents(found), *found.subgroup_differences(), *metrics, cost):
        assert (one.estimate, one.low, one.high) == (0.0, 0.0, 0.0)
        assert (one.direction, one.direction_among_all) == ("open", "open")
        assert "the same probabilities and decisions" in one.notes[0]


def test_other_decisions_from_equal_probabilities_are_no_equal_outputs() -> None:
    labels, new, _ = draw(5, 50)
    own = np.where(new[:, 1] > 0.2, 1, 0)
    one = paired(labels, new, new).expected_cost(COSTS, None, new=own).document
    assert one.number("low") < one.number("high")


def test_exchanged_models_have_the_opposite_differences() -> None:
    labels, new, current = draw(12, 80, gap=0.3)
    scanner = {"scanner": ["A", "B", "B", "A"] * 20}
    forth, back = (
        paired(labels, *pair, metadata=scanner, groups=np.arange(80) // 2)
        for pair in ((new, current), (current, new))
    )
    metrics = [(name, RecommendedMetric(metric=name, per_class=False)) for name in ("NLL", "ECE")]
    pairs = [
        (documents(forth), documents(back)),
        (forth.subgroup_differences(), back.subgroup_differences()),
        (forth.of_metrics(metrics), back.of_metrics(metrics)),
    ]
    opposite = {"better": "worse", "worse": "better", "open": "open"}
    for given, exchanged in pairs:
        for one, other in zip(given, exchanged, strict=True):
            assert one.number("estimate") == pytest.approx(-other.number("estimate"), abs=1e-12)
            ends = (-other.number("high"), -other.number("low"))
            assert (one.number("low"), one.number("high")) == pytest.approx(ends, abs=1e-9)
            assert (one.new, one.current) == (other.current, other.new)
            assert one.direction == opposite[other.direction]
            assert one.direction_among_all == opposite[other.direction_among_all]


def test_many_differences_are_judged_by_the_largest_deviation_of_any() -> None:
    """Direct transcription of the single-step max-T test (Westfall and Young, 1993)."""
    labels, new, current = draw(36, 240, gap=0.2)
    ward = {"ward": [f"{row // 2 % 8}" for row in range(240)]}
    found = paired(labels, new, current, metadata=ward)
    with np.errstate(invalid="ignore"):
        replicates = np.array(
            [
                one.resampled.replicates - other.resampled.replicates
                for ours, theirs in zip(found.new.subgroups, found.current.subgroups, strict=True)
                for one, other in zip(ours.summaries, theirs.summaries, strict=True)
            ]
        )
        spreads = np.nanstd(replicates, axis=1, ddof=1)
    varying = spreads > 0  # LR+ is infinite in some draws
    errors = spreads[varying]
    centred = replicates[varying] - np.nanmean(replicates[varying], axis=1, keepdims=True)
    critical = np.quantile(np.nanmax(np.abs(centred) / errors[:, None], axis=0), 0.95)
    judged = [one for one, is_used in zip(found.subgroup_differences(), varying, strict=True) if is_used]
    for one, error in zip(judged, errors, strict=True):
        is_large = abs(one.number("estimate")) > critical * error
        assert one.direction_among_all == (one.direction if is_large else "open")
    alone = sum(one.direction != "open" for one in judged)
    assert 0 < sum(one.direction_among_all != "open" for one in judged) < alone


def test_a_difference_that_does_not_vary_counts_if_it_rests_on_enough_cases() -> None:
    for samples, expected in ((4, "open"), (40, "better")):
        labels = np.arange(samples) % 2
        right = np.where(np.arange(2) == labels[:, None], 0.9, 0.1)
        found = paired(labels, right, right[:, ::-1]).differences()
        assert judge_together(found, level=0.95)[0].direction_among_all == expected


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
    one = found.expected_cost(COSTS, [0.9, 0.1], new=own).document

    def cost(decisions: Integers) -> float:
        rates = [COSTS[k, decisions[labels == k]].mean() for k in (0, 1)]
        return 0.9 * rates[0] + 0.1 * rates[1]

    assert one.new == pytest.approx(cost(own))
    assert one.current == pytest.approx(cost(current.argmax(axis=1)))
    plain = found.expected_cost(COSTS, None).document
    assert plain.new == pytest.approx(COSTS[labels, new.argmax(axis=1)].mean())


def test_an_undefined_value_has_no_difference_and_says_why() -> None:
    labels, new, current = np.zeros(20, np.int64), *draw(8, 20)[1:]
    one = next(one for one in documents(paired(labels, new, current)) if one.label == "AUROC")
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
    assert (one.value("new"), one.new, one.value("current")) == (np.inf, None, one.current)


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
