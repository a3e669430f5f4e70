"""Uncertainty-aware scores of a validation, against a transcription of the paper and the bootstrap of the metrics."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lifelong_core.design import ModelOutputs, UncertaintySettings, ValidationResult, compare, validate
from lifelong_core.design.validation.values.intervals import difference_bounds
from lifelong_core.metrics import METRICS, bootstrap
from tests.unit.design.validations import recommending

SETTINGS = UncertaintySettings(sigmas=(0.0, 0.1, 0.4), dampings=(0.0, 1.5), threshold=0.4)
BINARY = recommending("BA", number_of_classes=2)
SAMPLES = 60


def drawn(seed: int = 0) -> tuple[Any, Any, Any]:
    """Labels, probabilities of class 1, and uncertainties that are larger near the threshold."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(SAMPLES) % 2)
    positive = 1 / (1 + np.exp(-(2 * labels - 1) - 1.5 * rng.normal(size=SAMPLES)))
    return labels, positive, rng.gamma(1, size=SAMPLES)


def both(positive: Any) -> Any:
    return np.stack([1 - positive, positive], axis=1)


def validated(labels: Any, positive: Any, **given: Any) -> ValidationResult:
    given = {"uncertainty_settings": SETTINGS, "replicates": 50} | given
    recommendation = given.pop("recommendation", BINARY)
    return validate(recommendation, labels, probabilities=both(positive), **given)


def transcribed(labels: Any, positive: Any, uncertain: Any, t: float, s: float, d: float) -> dict[str, float]:
    """Eqs. 6-17, with the area of eq. 6 without sign; s = 0 is the limit."""

    def area(x: float) -> float:
        if s == 0:
            return float(x != t)
        return abs(2 * (stats.norm.cdf(t, t, s) - stats.norm.cdf(x, t, s)))

    sums = dict.fromkeys(("TP", "TN", "FP", "FN"), 0.0)
    for c, p, u in zip(labels, positive, uncertain, strict=True):
        kind = ("TP" if p >= t else "FN") if c > t else ("FP" if p >= t else "TN")
        sums[kind] += area(p) * area(c) * math.exp(-u * d)
    tp, tn, fp, fn = (sums[name] for name in ("TP", "TN", "FP", "FN"))
    precise, found = tp / (tp + fp), tp / (tp + fn)
    return {
        "UA-accuracy": (tp + tn) / (tp + tn + fp + fn),
        "UA-precision": precise,
        "UA-recall": found,
        "UA-FPR": fp / (fp + tn),
        "UA-F1": 2 * precise * found / (precise + found),
    }


@pytest.fixture(scope="module")
def result() -> ValidationResult:
    labels, positive, uncertain = drawn()
    return validated(labels, positive, uncertainties=uncertain, groups=np.arange(SAMPLES) // 2, level=0.9)


def test_the_scores_are_those_of_the_paper(result):
    scores = result.uncertainty_aware
    assert scores.metrics == tuple(acronym for acronym in METRICS if acronym.startswith("UA-"))
    for d in SETTINGS.dampings:
        for place, s in enumerate(SETTINGS.sigmas):
            expected = transcribed(*drawn(), SETTINGS.threshold, s, d)
            found = {metric: scores.curve(metric, d).estimates[place] for metric in scores.metrics}
            assert found == pytest.approx(expected)


def test_the_intervals_are_those_of_the_bootstrap_over_groups(result):
    for curve in result.uncertainty_aware.curves:
        for place, sigma in enumerate(SETTINGS.sigmas):

            def score(*arrays, curve=curve, sigma=sigma):
                given = {"threshold": 0.4, "sigma": sigma, "damping": curve.damping}
                return METRICS[curve.metric].function(*arrays, **given)

            resampled = bootstrap(score, drawn(), replicates=50, groups=np.arange(SAMPLES) // 2, rng=0)
            expected = resampled.interval(level=0.9)
            assert curve.methods[place] == "bca"
            assert (curve.low[place], curve.high[place]) == pytest.approx((expected.low, expected.high))


def test_changes_are_differences_on_the_same_draws(result):
    labels, positive, uncertain = drawn()
    for change in result.uncertainty_aware.changes:
        settings = [{"sigma": 0.0, "damping": 0.0}] * 2
        settings[1] = settings[1] | {change.of: {"sigma": 0.4, "damping": 1.5}[change.of]}
        function = METRICS[change.metric].function

        def difference(*arrays, settings=settings, function=function):
            first, last = (function(*arrays, threshold=0.4, **one) for one in settings)
            return last - first

        direct = bootstrap(
            difference, (labels, positive, uncertain), replicates=50, groups=np.arange(SAMPLES) // 2, rng=0
        )
        assert change.estimate == pytest.approx(float(direct.estimate))
        curves = [one for one in result.uncertainty_aware.curves if one.metric == change.metric]
        first, last = curves[0].effective_cases, curves[-1].effective_cases
        cases = int(min(first[0], last[0] if change.of == "damping" else first[-1]) + 1e-9)
        expected = difference_bounds(direct, level=0.9, limits=(-1.0, 1.0), cases=cases)
        if change.method == "bca":
            assert (change.low, change.high) == pytest.approx((expected.low, expected.high))
    assert len(result.uncertainty_aware.changes) == 10


def test_a_change_is_better_or_worse_by_its_whole_interval(result):
    change = result.uncertainty_aware.changes[0]
    ends = [(0.1, 0.2, True), (-0.2, -0.1, False), (-0.1, 0.1, None), (None, None, None)]
    for low, high, is_better in ends:
        found = change.model_copy(update={"low": low, "high": high})
        assert found.is_better is is_better
        lower = found.model_copy(update={"orientation": "down"}).is_better
        assert lower is (None if is_better is None else not is_better)


def test_uncertain_errors_are_found_and_noise_is_undecided():
    labels, positive, _ = drawn()
    errors = (positive >= 0.5) != labels
    settings = UncertaintySettings(sigmas=(0.0,), dampings=(0.0, 2.0))
    for uncertain, expected in ((errors + 0.0, True), (1.0 - errors, False), (np.arange(60) % 2 * 0.5, None)):
        found = validated(
            labels, positive, uncertainties=uncertain, uncertainty_settings=settings, replicates=200
        )
        assert found.uncertainty_aware.changes[0].is_better is expected


def test_at_sigma_and_damping_0_the_scores_are_the_usual_ones():
    labels, positive, uncertain = drawn()
    usual = validated(labels, positive, recommendation=recommending("AC", number_of_classes=2))
    settings = UncertaintySettings(sigmas=(0.0,), dampings=(0.0,))
    scores = validated(labels, positive, uncertainties=uncertain, uncertainty_settings=settings)
    (curve,) = (curve for curve in scores.uncertainty_aware.curves if curve.metric == "UA-accuracy")
    value = usual.value("AC")
    assert (curve.estimates, curve.low, curve.high) == ((value.estimate,), (value.low,), (value.high,))
    assert curve.effective_cases == (SAMPLES,)
    assert scores.uncertainty_aware.changes == ()
    assert usual.uncertainty_aware is None


def test_a_constant_added_to_all_uncertainties_changes_nothing():
    """Also where the weights themselves underflow."""
    labels, positive, uncertain = drawn()
    one, other = (
        validated(labels, positive, uncertainties=uncertain + shift).uncertainty_aware for shift in (0, 1e6)
    )
    for first, second in zip(one.curves, other.curves, strict=True):
        assert first.estimates == pytest.approx(second.estimates)
        assert first.low == pytest.approx(second.low)


def test_the_spread_of_the_members_is_the_uncertainty():
    labels, positive, _ = drawn()
    rng = np.random.default_rng(1)
    members = [both(np.clip(positive + 0.1 * rng.normal(size=SAMPLES), 0, 1)) for _ in range(3)]
    spread = np.array(members)[:, :, 1].std(axis=0)
    given = validated(labels, positive, uncertainties=spread).uncertainty_aware
    found = validated(labels, positive, members=members).uncertainty_aware
    assert (found.members, found.kind) == (3, "standard_deviation")
    assert found.largest == pytest.approx(spread.max())
    for first, second in zip(found.curves, given.curves, strict=True):
        assert first.estimates == pytest.approx(second.estimates)
    mean = np.mean(members, axis=0)
    alone = validate(BINARY, labels, members=members, replicates=20)
    assert alone.estimate("BA") == validate(BINARY, labels, probabilities=mean, replicates=20).estimate("BA")


def test_the_positive_class_is_the_target_class():
    labels, positive, uncertain = drawn()
    settings = SETTINGS.model_copy(update={"threshold": 0.5})
    recommendation = recommending("BA", number_of_classes=2, target_class=0)
    turned = validate(
        recommendation,
        1 - labels,
        probabilities=both(positive)[:, ::-1],
        uncertainties=uncertain,
        uncertainty_settings=settings,
        replicates=20,
    ).uncertainty_aware
    usual = validated(labels, positive, uncertainties=uncertain, uncertainty_settings=settings)
    assert turned.positive_class == 0
    for first, second in zip(turned.curves, usual.uncertainty_aware.curves, strict=True):
        assert first.estimates == pytest.approx(second.estimates)


def test_an_invalid_output_is_a_certain_error():
    labels, positive, uncertain = drawn()
    decisions = (positive >= 0.4).astype(int)
    decisions[:3] = -1
    uncertain[:3] = np.nan
    found = validated(labels, positive, decisions=decisions, uncertainties=uncertain).uncertainty_aware
    worst, sure = positive.copy(), uncertain.copy()
    worst[:3], sure[:3] = 1 - labels[:3], 0
    expected = transcribed(labels, worst, sure, 0.4, 0.1, 1.5)
    assert found.curve("UA-F1", 1.5).estimates[1] == pytest.approx(expected["UA-F1"])
    assert "3 samples without a valid output" in found.warnings[0]
    assert found.smallest > 0


def test_decisions_by_another_rule_are_a_warning():
    labels, positive, uncertain = drawn()
    decisions = (positive >= 0.4).astype(int)
    decisions[:2] = 1 - decisions[:2]
    scores = validated(labels, positive, decisions=decisions, uncertainties=uncertain).uncertainty_aware
    assert any("the decisions of 2 of 60 samples differ" in warning for warning in scores.warnings)


TARGET = {"decision_rule": "target_value", "target_metric": "TPR", "target_value": 0.95}


@pytest.mark.parametrize(
    ("rule", "threshold"), [(TARGET, 0.5), ({"decision_rule": "argmax"}, 0.4), ({"decision_rule": None}, 0.4)]
)
def test_decisions_that_are_judged_and_not_given_are_counted_too(rule, threshold):
    labels, positive, uncertain = drawn()
    others = drawn(seed=1)
    result = validated(
        labels,
        positive,
        uncertainties=uncertain,
        uncertainty_settings=UncertaintySettings(threshold=threshold),
        recommendation=recommending("BA", number_of_classes=2, prevalences_representative=True, **rule),
        cut_off_data=(others[0], both(others[1])),
    )
    cut_off = result.decisions.cut_off
    decided = positive >= (0.5 if cut_off is None else cut_off.threshold)
    different = int((decided != (positive >= threshold)).sum())
    assert different > 0
    assert any(
        f"the decisions of {different} of 60 samples differ" in warning
        for warning in result.uncertainty_aware.warnings
    )


def test_decisions_by_the_threshold_are_no_warning():
    labels, positive, uncertain = drawn()
    scores = validated(
        labels, positive, uncertainties=uncertain, uncertainty_settings=UncertaintySettings(threshold=0.5)
    ).uncertainty_aware
    assert not any("differ" in warning for warning in scores.warnings)


def test_a_score_of_few_cases_is_a_warning():
    labels, positive, uncertain = drawn()
    uncertain[:] = 5
    uncertain[0] = 0
    settings = UncertaintySettings(sigmas=(0.0,), dampings=(0.0, 100.0))
    scores = validated(
        labels, positive, uncertainties=uncertain, uncertainty_settings=settings
    ).uncertainty_aware
    curve = scores.curve("UA-accuracy", 100.0)
    assert curve.effective_cases == pytest.approx((1,))
    assert curve.low == (None,)
    assert any("a few samples decide it" in warning for warning in scores.warnings)


def test_the_effective_cases_are_those_of_groups(result):
    """Kish: at sigma and damping 0, pairs of samples are 30 equal cases; with weights, fewer."""
    scores = result.uncertainty_aware
    curve = scores.curve("UA-accuracy", 0.0)
    assert curve.effective_cases[0] == pytest.approx(30)
    weights = np.exp(-1.5 * drawn()[2]).reshape(30, 2).sum(axis=1)
    expected = weights.sum() ** 2 / (weights**2).sum()
    assert scores.curve("UA-accuracy", 1.5).effective_cases[0] == pytest.approx(expected)


def test_an_undefined_score_is_none():
    labels, positive, uncertain = np.zeros(20, int), np.full(20, 0.1), np.arange(20.0)
    scores = validated(labels, positive, uncertainties=uncertain).uncertainty_aware
    assert scores.curve("UA-recall", 0.0).estimates == (None, None, None)
    assert scores.curve("UA-FPR", 0.0).estimates == (0.0, 0.0, 0.0)
    assert scores.curve("UA-FPR", 0.0).methods[0] == "unseen"
    assert "No sample that counts has a weight in UA-precision, UA-recall, UA-F1" in scores.warnings[0]
    assert not any("weight of 0" in warning for warning in scores.warnings)
    with pytest.raises(KeyError):
        scores.curve("UA-F1", 7.0)


def test_it_is_a_document(result):
    assert ValidationResult.from_json(result.to_json()) == result


def test_models_are_compared_with_their_own_uncertainties():
    labels, positive, uncertain = drawn()
    models = {
        "one": ModelOutputs(probabilities=both(positive), uncertainties=uncertain),
        "two": ModelOutputs(probabilities=both(1 - positive)),
    }
    found = compare(BINARY, labels, models, replicates=20, uncertainty_settings=SETTINGS).results
    assert found["one"].uncertainty_aware.sigmas == SETTINGS.sigmas
    assert found["two"].uncertainty_aware is None
