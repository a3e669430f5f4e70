"""Gain of the probabilities: how much better they fit, and when that is worth a swap."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lifelong_core.deploy import (
    AdaptationContext,
    AdaptationPolicy,
    ExpectedProbabilityGain,
    LabeledLogits,
    adapt,
    fit_head,
    quantifier,
)
from lifelong_core.deploy.adaptation import refit as refit_module
from lifelong_core.deploy.adaptation.gain import LOWEST_PROBABILITY, HeadComparison, expected_probability_gain
from lifelong_core.deploy.adaptation.policy import NO_PROBABILITY_GAIN
from lifelong_core.deploy.head_fitting import FOLDS
from lifelong_core.deploy.labeled import crossfitting_folds

COSTS = 1 - np.eye(3)
TARGET = np.array([0.85, 0.1, 0.05])
ERRORS = 1 - np.eye(2)
ASSUMED, TRUE = np.array([0.176, 0.824]), np.array([0.08, 0.92])
POLICY = AdaptationPolicy()


def log_loss(head, logits, labels):
    probabilities = head.apply(logits).probabilities
    return float(-np.log(np.maximum(probabilities[np.arange(labels.size), labels], 1e-12)).mean())


def gain_of(calibration, analysis, head, target):
    return expected_probability_gain(HeadComparison.of(calibration, head, target), analysis, 0.95)


def test_it_is_the_weighted_mean_of_the_cross_fitted_log_ratios(population):
    three, rng = population(3, 1.5), np.random.default_rng(0)
    calibration = three.draw([90, 60, 50], rng)
    analysis = quantifier("MLLS").fit(calibration).analyse(three.window(TARGET, 500, rng))
    head = fit_head(calibration, COSTS)
    folds, ratios = crossfitting_folds(calibration, FOLDS), np.empty(calibration.samples)
    for fold in range(FOLDS):
        rest, held = calibration.select(folds != fold), np.flatnonzero(folds == fold)
        own = np.arange(held.size), calibration.labels[held]
        old, new = (
            fit_head(rest, COSTS, target_prevalence=prevalence).apply(calibration.logits[held]).probabilities
            for prevalence in (calibration.prevalence, TARGET)
        )
        ratios[held] = np.log(new[own] / old[own])
    means = [ratios[calibration.labels == k].mean() for k in range(3)]
    gain = gain_of(calibration, analysis, head, TARGET)
    assert gain.value == pytest.approx(analysis.estimate.prevalence @ means)
    assert gain.value == pytest.approx(gain.current_log_loss - gain.candidate_log_loss)
    assert gain.low < gain.lower_decile < gain.value < gain.high
    document = json.loads(json.dumps(gain.to_document()))
    assert ExpectedProbabilityGain.from_document(document) == gain


def test_equal_heads_gain_nothing(population):
    three, rng = population(3, 1.5), np.random.default_rng(0)
    calibration = three.draw([200] * 3, rng)
    analysis = quantifier("MLLS").fit(calibration).analyse(three.window(TARGET, 1000, rng))
    gain = gain_of(calibration, analysis, fit_head(calibration, COSTS, target_prevalence=TARGET), TARGET)
    assert gain.value == gain.low == gain.high == 0
    assert gain.current_log_loss == gain.candidate_log_loss


def test_expects_what_comes_and_knows_how_sure_it_is(population):
    three, rng = population(3, 1.5), np.random.default_rng(0)
    errors, inside = [], []
    for _ in range(25):
        calibration = three.draw([150] * 3, rng)
        analysis = quantifier("MLLS").fit(calibration).analyse(three.window(TARGET, 500, rng))
        target = (500 * analysis.estimate.prevalence + 0.5) / 501.5
        head = fit_head(calibration, COSTS)
        gain = gain_of(calibration, analysis, head, target)
        labels = rng.choice(3, size=20_000, p=TARGET)
        logits = three.logits(labels, rng)
        candidate = fit_head(calibration, COSTS, target_prevalence=target)
        real = log_loss(head, logits, labels) - log_loss(candidate, logits, labels)
        errors.append(gain.value - real)
        inside.append(gain.low <= real <= gain.high)
    assert abs(np.mean(errors)) < 0.02  # of a gain of about 0.3
    assert np.mean(inside) > 0.85


@pytest.mark.parametrize("seed", range(5))
def test_going_to_the_true_prevalence_gains(population, seed):
    """The log loss is proper: on average nothing beats the true probabilities."""
    rng = np.random.default_rng(seed)
    three, true, assumed = population(3, 1.5), rng.dirichlet(np.ones(3)), rng.dirichlet(np.full(3, 3.0))
    calibration = three.draw([4000] * 3, rng)
    analysis = quantifier("MLLS").fit(calibration).analyse(three.window(true, 40_000, rng))
    head = fit_head(calibration, COSTS, target_prevalence=assumed)
    gain = gain_of(calibration, analysis, head, np.maximum(true, 1e-4))
    assert gain.value >= 0
    assert gain.high > 0


def test_no_single_case_decides(population):
    """A case of the calibration set that no head gets right counts with a bounded loss."""
    three, rng = population(3, 1.5), np.random.default_rng(0)
    data = three.draw([100] * 3, rng)
    wrong = LabeledLogits(np.vstack([data.logits, [[500.0, 0.0, 0.0]]]), np.append(data.labels, 2))
    analysis = quantifier("MLLS").fit(wrong).analyse(three.window(TARGET, 500, rng))
    gain = gain_of(wrong, analysis, fit_head(wrong, COSTS), TARGET)
    compared = HeadComparison.of(wrong, fit_head(wrong, COSTS), TARGET)
    assert np.isfinite([gain.value, gain.low, gain.high, gain.lower_decile, gain.optimism]).all()
    assert np.abs(compared.log_loss_savings).max() <= -np.log(LOWEST_PROBABILITY)


def test_without_a_shift_the_value_exceeds_the_true_gain_by_the_optimism(population):
    """Efron (2004): one estimate chooses the candidate and judges it."""
    three, rng = population(3, 1.5), np.random.default_rng(0)
    calibration, uniform = three.draw([600] * 3, rng), np.full(3, 1 / 3)
    fitted, head = quantifier("MLLS").fit(calibration), fit_head(calibration, COSTS)
    excess, optimism = [], []
    for _ in range(60):
        analysis = fitted.analyse(three.window(uniform, 200, rng))
        compared = HeadComparison.of(calibration, head, analysis.estimate.prevalence)
        gain = expected_probability_gain(compared, analysis, 0.95)
        excess.append(gain.value - compared.log_loss_gain(uniform))
        optimism.append(gain.optimism)
    assert np.mean(optimism) == pytest.approx(np.mean(excess), abs=4 * np.std(excess) / np.sqrt(60))
    assert np.mean(excess) > 0.005


@pytest.fixture(scope="module")
def site(population):
    """Its true prevalence is .92, the head assumes .824: decisions hardly change, probabilities do."""
    two = population(2, 2.0)
    calibration = two.draw([400] * 2, np.random.default_rng(0))
    head = fit_head(calibration, ERRORS, target_prevalence=ASSUMED)
    return quantifier("MLLS").fit(calibration), two.window(TRUE, 4000, np.random.default_rng(1)), head


def codes(report):
    return [reason.code for reason in report.reasons]


def test_wrong_probabilities_are_worth_a_swap(site, population):
    fitted, window, head = site
    report = adapt(fitted, window, head, POLICY)
    assert (report.outcome, codes(report)) == ("swap", ["prevalence_shifted", "probability_gain_sufficient"])
    assert report.expected_gain.lower_quartile < POLICY.minimum_gain
    text = report.reasons[-1].text
    assert f"{report.expected_probability_gain.candidate_log_loss:.4f}" in text
    rng = np.random.default_rng(2)
    labels = rng.choice(2, size=50_000, p=TRUE)
    logits = population(2, 2.0).logits(labels, rng)
    assert log_loss(report.candidate, logits, labels) < log_loss(head, logits, labels) - 0.005
    before, after = (one.apply(logits).decisions for one in (head, report.candidate))
    assert (after == labels).mean() > (before == labels).mean() - 0.005
    by_cost_alone = adapt(
        fitted, window, head, AdaptationPolicy(minimum_probability_gain=NO_PROBABILITY_GAIN)
    )
    assert (by_cost_alone.outcome, codes(by_cost_alone)[-1]) == ("keep", "gain_too_small")
    assert by_cost_alone.expected_probability_gain == report.expected_probability_gain
    assert "expected cost" in by_cost_alone.reasons[-1].text
    assert "log loss" in by_cost_alone.reasons[-1].text


def test_a_small_gain_in_probabilities_is_not(site):
    fitted, window, head = site
    worth = adapt(fitted, window, head, POLICY).expected_probability_gain.lower_decile
    for factor, outcome in ((0.99, "swap"), (1.01, "keep")):
        assert (
            adapt(fitted, window, head, AdaptationPolicy(minimum_probability_gain=factor * worth)).outcome
            == outcome
        )


def test_better_probabilities_do_not_excuse_dearer_decisions(site):
    """The cost gain of this candidate is made to speak for harm."""
    fitted, window, head = site
    tolerated = POLICY.minimum_gain
    for quartile, outcome in ((-0.99 * tolerated, "swap"), (-1.01 * tolerated, "keep")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(refit_module, "expected_gain", gaining(quartile))
            report = adapt(fitted, window, head, POLICY)
        assert report.outcome == outcome
    assert codes(report)[-1] == "gain_too_small"
    assert f"at least {-1.01 * tolerated:.4f}" in report.reasons[-1].text


def gaining(quartile):
    def expected_gain(*arguments, **options):
        return replace(adaptation_expected_gain(*arguments, **options), lower_quartile=quartile)

    return expected_gain


adaptation_expected_gain = refit_module.expected_gain


def test_a_gain_that_is_no_number_keeps_the_head(site, monkeypatch):
    fitted, window, head = site

    def broken(*arguments, **options):
        return replace(expected_probability_gain(*arguments, **options), lower_decile=float("nan"))

    monkeypatch.setattr(refit_module, "expected_probability_gain", broken)
    assert adapt(fitted, window, head, POLICY).outcome == "keep"


@pytest.mark.parametrize(
    ("context", "code"),
    [
        (AdaptationContext(pinned=True), "head_pinned"),
        (AdaptationContext(seconds_since_swap=60.0), "cooling_down"),
    ],
)
def test_the_brakes_hold_it_back_too(site, context, code):
    fitted, window, head = site
    report = adapt(fitted, window, head, AdaptationPolicy(cool_down_seconds=3600), context=context)
    assert (report.outcome, codes(report)[-2:]) == ("keep", ["probability_gain_sufficient", code])


def test_a_rejected_proposal_holds_it_back_too(site):
    fitted, window, head = site
    context = AdaptationContext(rejected=(fitted.estimate(window),))
    report = adapt(fitted, window, head, POLICY, context=context)
    assert (report.outcome, codes(report)[-1]) == ("keep", "proposal_rejected")


def test_going_back_has_to_gain_more(site):
    fitted, window, head = site
    worth = adapt(fitted, window, head, POLICY).expected_probability_gain.lower_decile
    back = AdaptationContext(previous_prevalence=[0.05, 0.95])
    for hysteresis, outcome in ((1.9, "swap"), (2.1, "keep")):
        policy = AdaptationPolicy(minimum_probability_gain=worth / 3, hysteresis=hysteresis)
        report = adapt(fitted, window, head, policy, context=back)
        assert report.outcome == outcome
    assert "go back" in report.reasons[-1].text


def test_the_assumption_test_refuses_it_too(site, population):
    """A new scanner: one logit is higher than it was."""
    fitted, _, head = site
    window = population(2, 2.0).window(TRUE, 4000, np.random.default_rng(1)) + np.array([0, 0.5])
    report = adapt(fitted, window, head, POLICY)
    assert report.expected_probability_gain.lower_decile > POLICY.minimum_probability_gain
    assert (report.outcome, codes(report)[-1]) == ("refuse", "assumption_violated")


def test_a_limited_step_leads_there_too(site):
    fitted, window, head = site
    report = adapt(fitted, window, head, AdaptationPolicy(maximum_step=0.1))
    assert (report.outcome, codes(report)[-1]) == ("swap", "probability_gain_sufficient")
    assert np.abs(report.candidate.assumed_prevalence - ASSUMED).sum() == pytest.approx(0.1)


def test_after_the_swap_the_new_head_is_kept(site, population):
    fitted, window, head = site
    candidate = adapt(fitted, window, head, POLICY).candidate
    again = population(2, 2.0).window(TRUE, 4000, np.random.default_rng(3))
    assert adapt(fitted, again, candidate, POLICY).outcome == "keep"


def test_chance_swaps_nothing_by_probabilities_and_no_swap_makes_them_worse(population):
    """At level 0.3 instead of 0.01 thirty times as many windows are taken for a shift."""
    four, rng, policy = population(4, 1.5), np.random.default_rng(4), AdaptationPolicy(level=0.3)
    swaps = {"same": 0, "shifted": 0}
    for _ in range(3):
        calibration = four.draw([150] * 4, rng)
        fitted, head = quantifier("MLLS").fit(calibration), fit_head(calibration, 1 - np.eye(4))
        for name, prevalence, size in (
            ("same", np.full(4, 0.25), 200),
            ("shifted", [0.45, 0.15, 0.2, 0.2], 1000),
        ):
            labels = rng.choice(4, size=20_000, p=prevalence)
            logits = four.logits(labels, rng)
            for _ in range(25):
                report = adapt(fitted, four.window(prevalence, size, rng), head, policy)
                if "probability_gain_sufficient" in codes(report):
                    swaps[name] += 1
                    assert log_loss(report.candidate, logits, labels) < log_loss(head, logits, labels)
    assert swaps["same"] == 0
    assert swaps["shifted"] > 0
