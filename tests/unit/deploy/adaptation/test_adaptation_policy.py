"""The brakes of an unattended loop, one by one, and evidence that one cycle passes to the next."""

from dataclasses import replace

import numpy as np
import pytest

from lifelong_core.deploy import (
    AdaptationContext,
    AdaptationPolicy,
    AdaptationReport,
    PrevalenceEstimate,
    adapt,
    fit_head,
    quantifier,
)
from lifelong_core.deploy.adaptation import refit as refit_module
from lifelong_core.deploy.adaptation.gain import HeadComparison, expected_gain
from lifelong_core.deploy.adaptation.target_prevalence import add_pseudo_samples, is_return, limit_step

COSTS = np.array([[0, 1, 1], [1, 0, 1], [2, 2, 0.0]])
UNIFORM = np.full(3, 1 / 3)
SHIFTED = np.array([10, 1, 1]) / 12
POLICY = AdaptationPolicy()


@pytest.fixture(scope="module")
def setting(population):
    three = population(3, 1.5)
    calibration = three.draw([600] * 3, np.random.default_rng(0))
    return three, quantifier("MLLS").fit(calibration), fit_head(calibration, COSTS)


@pytest.fixture(scope="module")
def shifted(setting):
    population, _, _ = setting
    return population.window(SHIFTED, 800, np.random.default_rng(1))


@pytest.fixture(scope="module")
def drifted(setting):
    population, _, _ = setting
    logits = population.window(SHIFTED, 2000, np.random.default_rng(1)) * 0.6
    logits[:, 1] += 1.5
    return logits


def codes(report):
    return [reason.code for reason in report.reasons]


def test_a_pinned_head_is_kept_and_everything_else_is_shown(setting, shifted):
    _, fitted, head = setting
    report = adapt(fitted, shifted, head, POLICY, context=AdaptationContext(pinned=True))
    free = adapt(fitted, shifted, head, POLICY)
    assert (report.outcome, codes(report)[-1]) == ("keep", "head_pinned")
    assert report.candidate is None
    assert free.outcome == "swap"
    assert (report.prevalence, report.expected_gain) == (free.prevalence, free.expected_gain)


@pytest.mark.parametrize(("passed", "outcome"), [(None, "swap"), (3599.0, "keep"), (3600.0, "swap")])
def test_the_cool_down_is_a_limit(setting, shifted, passed, outcome):
    _, fitted, head = setting
    policy = AdaptationPolicy(cool_down_seconds=3600)
    report = adapt(fitted, shifted, head, policy, context=AdaptationContext(seconds_since_swap=passed))
    assert report.outcome == outcome
    assert ("cooling_down" in codes(report)) == (outcome == "keep")


def test_a_swap_goes_no_further_than_the_largest_step(setting, shifted):
    _, fitted, head = setting
    report = adapt(fitted, shifted, head, AdaptationPolicy(maximum_step=0.3))
    assert report.outcome == "swap"
    assert "step_limited" in codes(report)
    move = report.candidate.assumed_prevalence - head.assumed_prevalence
    assert np.abs(move).sum() == pytest.approx(0.3)
    wanted = add_pseudo_samples(report.prevalence, fitted.calibration.samples) - head.assumed_prevalence
    assert move / np.abs(move).sum() == pytest.approx(wanted / np.abs(wanted).sum())


def test_steps_lead_to_the_estimate(setting, shifted):
    _, fitted, head = setting
    policy, steps = AdaptationPolicy(maximum_step=0.4), 0
    report = adapt(fitted, shifted, head, policy)
    while report.outcome == "swap":
        head, steps = report.candidate, steps + 1
        report = adapt(fitted, shifted, head, policy)
    assert steps in (2, 3)
    assert np.abs(head.assumed_prevalence - SHIFTED).sum() < 0.3


class LosingSteps(HeadComparison):
    """A step that does not go all the way loses what it would gain."""

    @classmethod
    def of(cls, calibration, head, target_prevalence, *outputs):
        compared = HeadComparison.of(calibration, head, target_prevalence, *outputs)
        if np.abs(target_prevalence - head.assumed_prevalence).sum() > 0.31:
            return compared
        return replace(compared, current=compared.candidate, candidate=compared.current)


def test_a_step_that_loses_is_not_taken_and_the_reason_says_so(setting, shifted, monkeypatch):
    """The whole way would gain, so the usual sentence, that a refitted head gains too little, would be false."""
    _, fitted, head = setting
    monkeypatch.setattr(refit_module, "HeadComparison", LosingSteps)
    report = adapt(fitted, shifted, head, AdaptationPolicy(maximum_step=0.3))
    assert (report.outcome, codes(report)[-1]) == ("keep", "gain_too_small")
    assert "changes the expected cost by +0." in report.reasons[-1].text
    assert "although the whole way would be a gain" in report.reasons[-1].text
    assert adapt(fitted, shifted, head, POLICY).outcome == "swap"


@pytest.mark.parametrize("step", [0.05, 0.2])
def test_even_small_steps_lead_to_the_estimate(setting, shifted, step):
    """A step gains little by itself; the way as a whole is what counts."""
    _, fitted, head = setting
    report = adapt(fitted, shifted, head, AdaptationPolicy(maximum_step=step))
    assert report.outcome == "swap"
    assert report.expected_gain == adapt(fitted, shifted, head, POLICY).expected_gain
    steps = 0
    while report.outcome == "swap" and steps < 40:
        head, steps = report.candidate, steps + 1
        report = adapt(fitted, shifted, head, AdaptationPolicy(maximum_step=step))
    assert codes(report)[-1] in {"gain_too_small", "prevalence_unchanged"}
    assert np.abs(head.assumed_prevalence - SHIFTED).sum() < 0.35


@pytest.mark.parametrize("size", [1e-90, 1e80])
def test_costs_of_any_size_give_the_same_outcome(setting, shifted, size):
    _, fitted, _ = setting
    plain, scaled = (
        adapt(fitted, shifted, fit_head(fitted.calibration, costs), POLICY) for costs in (COSTS, size * COSTS)
    )
    assert (scaled.outcome, codes(scaled)) == (plain.outcome, codes(plain))
    assert scaled.expected_gain.value / size == pytest.approx(plain.expected_gain.value)
    assert scaled.expected_gain.lower_quartile / size == pytest.approx(plain.expected_gain.lower_quartile)
    assert AdaptationReport.from_json(scaled.to_json()) == scaled


def test_a_gain_that_is_no_number_keeps_the_head(setting, shifted, monkeypatch):
    _, fitted, head = setting

    def broken(*arguments, **options):
        return replace(expected_gain(*arguments, **options), lower_quartile=float("nan"))

    monkeypatch.setattr(refit_module, "expected_gain", broken)
    report = adapt(fitted, shifted, head, POLICY)
    assert (report.outcome, report.candidate) == ("keep", None)


def test_a_class_that_is_not_seen_is_taken_to_be_no_rarer_than_the_calibration_set_could_tell(setting):
    population, fitted, head = setting
    window = population.logits(np.zeros(20_000, dtype=int), np.random.default_rng(1))
    candidate = adapt(fitted, window, head, POLICY).candidate
    assert candidate.assumed_prevalence.min() > 0.4 / fitted.calibration.samples
    grouped = add_pseudo_samples(
        replace(adapt(fitted, window, head, POLICY).prevalence, effective_n=10.0), 1800
    )
    assert grouped.min() > 0.4 / 11.5


@pytest.mark.parametrize(
    ("previous", "back"),
    [(None, False), ([0.8, 0.1, 0.1], True), ([0.1, 0.8, 0.1], False), (UNIFORM, False), ([0.5, 0.5], False)],
)
def test_going_back_is_a_move_towards_what_was_assumed_before(previous, back):
    target = np.array([0.5, 0.25, 0.25])
    assert is_return(UNIFORM, target, None if previous is None else np.array(previous)) == back


def test_going_back_has_to_gain_more(setting, shifted):
    _, fitted, head = setting
    plain = adapt(fitted, shifted, head, POLICY)
    worth = plain.expected_gain.lower_quartile / COSTS.max()
    back, onward = (
        AdaptationContext(previous_prevalence=previous) for previous in ([0.9, 0.05, 0.05], [0.05, 0.05, 0.9])
    )
    for hysteresis, outcome in ((1.9, "swap"), (2.1, "keep")):
        policy = AdaptationPolicy(minimum_gain=worth / 3, minimum_probability_gain=10, hysteresis=hysteresis)
        report = adapt(fitted, shifted, head, policy, context=back)
        assert report.outcome == outcome
        assert adapt(fitted, shifted, head, policy, context=onward).outcome == "swap"
    assert codes(report)[-1] == "gain_too_small"
    assert "go back" in report.reasons[-1].text


@pytest.mark.parametrize("mode", ["auto", "propose", "shadow"])
def test_the_judgement_does_not_depend_on_who_has_the_last_word(setting, shifted, mode):
    _, fitted, head = setting
    report = adapt(fitted, shifted, head, AdaptationPolicy(mode=mode))
    assert report.outcome == "swap"
    assert report.policy.mode == mode


def test_a_limited_step_ends_at_the_wanted_prevalence():
    wanted = np.array([0.6, 0.2, 0.2])
    assert limit_step(UNIFORM, wanted, 2.0) is wanted
    assert limit_step(UNIFORM, wanted, 0.1).sum() == pytest.approx(1)


def test_a_window_like_the_calibration_set_keeps_the_head_at_the_stated_rate(setting):
    """Two gates: the significance test lets one window in a hundred pass, the gain hardly any of these."""
    population, fitted, head = setting
    rng = np.random.default_rng(11)
    policy = AdaptationPolicy(change_level=0)  # tested by itself
    reports = [adapt(fitted, population.window(UNIFORM, 400, rng), head, policy) for _ in range(200)]
    assert sum(report.shift_test.rejected for report in reports) <= 7  # 2 expected; more once in a thousand
    assert sum(report.outcome == "swap" for report in reports) == 0
    assert sum(report.assumption_test.rejected for report in reports) <= 7


class TestAssumption:
    """What changed is not only the prevalence."""

    def test_the_cycle_refuses_and_says_what_a_swap_could_cost(self, setting, drifted):
        _, fitted, head = setting
        report = adapt(fitted, drifted, head, POLICY)
        assert report.assumption_test.rejected
        assert (report.outcome, codes(report)[-1]) == ("refuse", "assumption_violated")
        assert report.candidate is None
        assert report.expected_gain is not None
        assert 0 < report.worst_case_cost_increase <= COSTS.max()
        assert f"{report.worst_case_cost_increase:.3f}" in report.reasons[-1].text

    def test_the_policy_may_choose_to_go_on(self, setting, drifted):
        _, fitted, head = setting
        refused = adapt(fitted, drifted, head, POLICY)
        report = adapt(fitted, drifted, head, AdaptationPolicy(assumption_violated="report"))
        assert "assumption_violated" in codes(report)
        assert report.outcome in {"swap", "keep"}
        assert codes(report)[-1] in {"gain_sufficient", "gain_too_small"}
        assert report.expected_gain == refused.expected_gain

    def test_without_a_shift_there_is_nothing_to_refuse_but_it_is_said(self, setting):
        population, fitted, head = setting
        rng = np.random.default_rng(3)
        noisy = population.window(UNIFORM, 3000, rng)
        noisy += rng.normal(size=noisy.shape).astype(np.float32) * 1.5
        lenient = AdaptationPolicy(level=1e-12)
        report = adapt(fitted, noisy, head, lenient)
        assert report.assumption_test.rejected
        assert (report.outcome, codes(report)) == ("keep", ["prevalence_unchanged", "assumption_violated"])

    def test_a_pure_prevalence_shift_is_not_refused(self, setting, shifted):
        _, fitted, head = setting
        assert not adapt(fitted, shifted, head, POLICY).assumption_test.rejected


class TestPooling:
    """Other environments of the model."""

    @staticmethod
    def other(prevalence, error=0.01):
        p = np.array(prevalence)
        covariance = error**2 * (np.eye(3) - 1 / 3)
        return PrevalenceEstimate(p, p, p, 0.95, 5000, 5000.0, "MLLS", covariance, np.full(3, 4999.0))

    def test_a_small_window_listens_to_the_others(self, setting):
        population, fitted, head = setting
        window = population.window(SHIFTED, 220, np.random.default_rng(5))
        others = tuple(self.other(p) for p in ([0.75, 0.15, 0.1], [0.76, 0.14, 0.1], [0.74, 0.15, 0.11]))
        context = AdaptationContext(others=others)
        alone = adapt(fitted, window, head, POLICY, context=context)
        report = adapt(fitted, window, head, AdaptationPolicy(pooling=True), context=context)
        assert alone.pooled is None
        assert report.prevalence == alone.prevalence
        assert "estimate_pooled" in codes(report)
        distance = [
            np.abs(e.prevalence - [0.75, 0.147, 0.103]).sum() for e in (report.prevalence, report.pooled)
        ]
        assert distance[1] < distance[0]
        assert report.candidate.assumed_prevalence == pytest.approx(
            add_pseudo_samples(report.pooled, fitted.calibration.samples)
        )
        assert AdaptationReport.from_json(report.to_json()) == report

    def test_the_gain_counts_what_is_not_known_of_the_others(self, setting):
        """The more the others differ, the less sure is what was borrowed."""
        population, fitted, head = setting
        window = population.window(SHIFTED, 220, np.random.default_rng(5))
        policy = AdaptationPolicy(pooling=True)
        widths = []
        for error in (0.01, 0.12):
            others = tuple(self.other([0.76, 0.14, 0.1], error) for _ in range(3))
            gain = adapt(fitted, window, head, policy, context=AdaptationContext(others=others)).expected_gain
            widths.append(gain.high - gain.low)
        assert widths[0] < 0.95 * widths[1]

    def test_one_other_environment_is_no_population(self, setting, shifted):
        _, fitted, head = setting
        context = AdaptationContext(others=(self.other(SHIFTED),))
        report = adapt(fitted, shifted, head, AdaptationPolicy(pooling=True), context=context)
        assert report.pooled is None


class TestEvidence:
    """Gathered over cycles, each sample once."""

    @staticmethod
    def run(setting, prevalence, cycles, *, size=200, policy=POLICY, seed=0):
        """Reports of a monitor that never swaps, with a window of the last 1,000 samples."""
        population, fitted, head = setting
        rng = np.random.default_rng(seed)
        window = population.window(UNIFORM, 1000, rng)
        evidence, reports = None, []
        for _ in range(cycles):
            bucket = population.window(prevalence, size, rng)
            window = np.vstack([window, bucket])[-1000:]
            reports.append(adapt(fitted, window, head, policy, new_buckets=[bucket], evidence=evidence))
            evidence = reports[-1].evidence
        return reports

    def test_a_shift_is_found_and_no_shift_is_not(self, setting):
        assert {report.outcome for report in self.run(setting, UNIFORM, 20)} == {"keep"}
        reports = self.run(setting, SHIFTED, 10)
        assert reports[-1].outcome == "swap"
        assert reports[-1].shift_test.log_e_value >= np.log(POLICY.average_run_length)
        assert "evidence 10^" in reports[-1].reasons[0].text

    def test_every_new_sample_counts_once(self, setting):
        reports = self.run(setting, UNIFORM, 5)
        assert [report.evidence.samples for report in reports] == [200, 400, 600, 800, 1000]
        assert [report.evidence.looks for report in reports] == [1, 2, 3, 4, 5]

    def test_it_goes_on_where_the_stored_report_ended(self, setting, shifted):
        _, fitted, head = setting
        first = self.run(setting, SHIFTED, 3)[-1]
        stored = AdaptationReport.from_json(first.to_json())
        ways = [
            adapt(fitted, shifted, head, POLICY, new_buckets=[shifted[:100]], evidence=one.evidence)
            for one in (first, stored)
        ]
        assert ways[0] == ways[1]
        assert ways[0].to_json() == ways[1].to_json()

    @pytest.mark.parametrize("change", ["head", "policy", "quantifier"])
    def test_it_starts_anew_when_what_it_speaks_of_changes(self, setting, shifted, change):
        _, fitted, head = setting
        policy = POLICY
        evidence = self.run(setting, SHIFTED, 3)[-1].evidence
        if change == "head":
            head = replace(head, bias=np.add(head.bias, [0.1, 0, 0]))
        if change == "policy":
            policy = AdaptationPolicy(tolerance=0.02)
        if change == "quantifier":
            fitted = quantifier("PACC").fit(fitted.calibration)
        report = adapt(fitted, shifted, head, policy, new_buckets=[shifted[:100]], evidence=evidence)
        assert report.evidence.samples == 100
        assert report.evidence.key != evidence.key

    def test_a_small_window_still_adds_to_it(self, setting, shifted):
        _, fitted, head = setting
        report = adapt(fitted, shifted[:50], head, POLICY, new_buckets=[shifted[:50]])
        assert codes(report) == ["window_too_small"]
        assert report.evidence.samples == 50

    def test_without_buckets_the_window_is_judged_by_itself(self, setting, shifted):
        _, fitted, head = setting
        report = adapt(fitted, shifted, head, POLICY)
        assert report.evidence is None
        assert report.shift_test.p_value is not None

    def test_summaries_and_raw_logits_tell_the_same(self, setting):
        population, fitted, head = setting
        rng = np.random.default_rng(9)
        buckets = [population.window(SHIFTED, 300, rng) for _ in range(4)]
        raw = adapt(fitted, np.vstack(buckets), head, POLICY, new_buckets=buckets)
        summaries = [fitted.summarize(bucket) for bucket in buckets]
        whole = summaries[0] + summaries[1] + summaries[2] + summaries[3]
        short = adapt(fitted, whole, head, POLICY, new_buckets=summaries)
        assert (short.outcome, codes(short)) == (raw.outcome, codes(raw))
        width = raw.prevalence.high - raw.prevalence.low
        assert (np.abs(short.prevalence.prevalence - raw.prevalence.prevalence) < 0.1 * width).all()
        assert short.evidence.log_e_value == pytest.approx(raw.evidence.log_e_value, rel=0.05)
        assert short.assumption_test.p_value == pytest.approx(raw.assumption_test.p_value, rel=0.05)
        assert short.expected_gain.value == pytest.approx(raw.expected_gain.value, rel=0.05)
        assert short.worst_case_cost_increase == pytest.approx(raw.worst_case_cost_increase, abs=0.05)
        assert short.samples == 1200

    def test_groups_of_a_bucket_count(self, setting):
        population, fitted, head = setting
        rng = np.random.default_rng(9)
        few = np.repeat(population.window(SHIFTED, 10, rng), 30, axis=0)
        keys = np.repeat(np.arange(10), 30)
        alone, grouped = (
            adapt(fitted, few, head, POLICY, new_buckets=[bucket]).evidence.log_e_value
            for bucket in (few, (few, keys))
        )
        assert grouped < alone

    def test_a_bucket_that_is_no_logits_is_refused(self, setting, shifted):
        _, fitted, head = setting
        report = adapt(fitted, shifted, head, POLICY, new_buckets=[[[np.nan, 0, 0]]])
        assert (report.outcome, codes(report)) == ("refuse", ["window_invalid"])
