import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from lifelong_core.deploy import (
    AdaptationPolicy,
    AdaptationReport,
    LabeledLogits,
    PostProcessingHead,
    adapt,
    fit_head,
    quantifier,
)
from lifelong_core.deploy.adaptation.reasons import not_enough_evidence
from lifelong_core.deploy.adaptation.target_prevalence import add_pseudo_samples
from lifelong_core.deploy.shift.evidence import MOST_MISSING, samples_to_alarm, update_evidence
from lifelong_core.deploy.shift.reference import ScoreReference
from lifelong_core.deploy.shift.shift_test import sequential_shift_test
from lifelong_core.values.errors import InvalidInputError

COSTS = np.array([[0, 1, 1], [1, 0, 1], [2, 2, 0.0]])
SHIFTED = np.array([10, 1, 1]) / 12
POLICY = AdaptationPolicy()


@pytest.fixture(scope="module")
def three(population):
    return population(3, 1.5)


@pytest.fixture(scope="module")
def calibration(three):
    return three.draw([150] * 3, np.random.default_rng(0))


@pytest.fixture(scope="module")
def fitted(calibration):
    """What `adapt` fits on the calibration set, see test_auto_is_the_default_quantifier."""
    return quantifier("auto").fit(calibration)


@pytest.fixture(scope="module")
def head(calibration):
    return fit_head(calibration, COSTS, class_names=("harmless", "watch", "urgent"))


def codes(report):
    return [reason.code for reason in report.reasons]


def test_a_shifted_population_gets_another_head(three, calibration, fitted, head):
    window = three.window(SHIFTED, 800, np.random.default_rng(1))
    report = adapt(fitted, window, head, POLICY)
    assert (report.outcome, codes(report)) == ("swap", ["prevalence_shifted", "gain_sufficient"])
    assert report.shift_test.rejected
    assert report.expected_gain.lower_quartile > POLICY.minimum_gain * COSTS.max()
    assert report.prevalence.prevalence == pytest.approx(SHIFTED, abs=0.08)
    expected = fit_head(
        calibration, COSTS, target_prevalence=add_pseudo_samples(report.prevalence, calibration.samples)
    )
    assert report.candidate.bias.tolist() == expected.bias.tolist()
    assert report.candidate.class_names == head.class_names
    assert report.candidate.costs.tolist() == COSTS.tolist()
    assert report.candidate.provenance["replaces"] == head.digest
    labels = np.random.default_rng(2).choice(3, size=5000, p=SHIFTED)
    logits = three.logits(labels, np.random.default_rng(3))
    before, after = (COSTS[labels, one.apply(logits).decisions].mean() for one in (head, report.candidate))
    assert after < 0.75 * before


def test_after_the_swap_the_new_head_is_kept(three, fitted, head):
    rng = np.random.default_rng(1)
    candidate = adapt(fitted, three.window(SHIFTED, 2000, rng), head, POLICY).candidate
    report = adapt(fitted, three.window(SHIFTED, 2000, rng), candidate, POLICY)
    assert report.outcome == "keep"
    assert report.candidate is None


def test_without_a_shift_the_head_is_kept(three, fitted, head):
    report = adapt(fitted, three.window(np.full(3, 1 / 3), 800, np.random.default_rng(1)), head, POLICY)
    assert (report.outcome, codes(report)) == ("keep", ["prevalence_unchanged"])
    assert not report.shift_test.rejected
    assert report.expected_gain is None
    assert report.candidate is None


def test_a_shift_without_evidence_is_not_called_no_difference(three, fitted, head):
    """As after a roll-back: the window shows the shift, but the evidence of this head has just begun."""
    rng = np.random.default_rng(1)
    window, nothing = three.window(SHIFTED, 800, rng), (np.zeros((0, 3), np.float32), None)
    report = adapt(fitted, window, head, POLICY, new_buckets=[nothing])
    assert (report.outcome, codes(report)) == ("keep", ["evidence_insufficient"])
    text = report.reasons[0].text
    assert "counts no prediction so far" in text
    missing = int(re.search(r"about ([\d,]+) more show it", text).group(1).replace(",", ""))
    few = [(three.window(SHIFTED, missing // 4, rng), None)]
    assert (
        f"counts {missing // 4:,} predictions so far"
        in adapt(fitted, window, head, POLICY, new_buckets=few).reasons[0].text
    )
    enough = [(three.window(SHIFTED, missing, rng), None)] * 2  # a learned bet needs a look to begin
    assert adapt(fitted, window, head, POLICY, new_buckets=enough).shift_test.rejected


def test_no_prediction_and_no_difference_are_told_apart(three, fitted, head):
    rng = np.random.default_rng(1)
    window, nothing = three.window(np.full(3, 1 / 3), 800, rng), (np.zeros((0, 3), np.float32), None)
    empty = adapt(fitted, window, head, POLICY, new_buckets=[nothing])
    assert codes(empty) == ["evidence_insufficient"]
    assert "more show it" not in empty.reasons[0].text
    seen = adapt(fitted, window, head, POLICY, new_buckets=[(window, None)])
    assert codes(seen) == ["prevalence_unchanged"]
    assert seen.reasons[0].text.startswith("The evidence of 800 predictions shows no shift")


def test_a_number_of_missing_predictions_that_says_nothing_is_not_said(three, calibration, fitted, head):
    """Near the edge of the tolerated zone it grows without bounds."""
    reference = ScoreReference.of(calibration, head)
    evidence = update_evidence(None, reference, [], key="", tolerance=0.01)

    def missing(share):
        shifted = share * np.array(SHIFTED) + (1 - share) * head.assumed_prevalence
        return samples_to_alarm(evidence, reference, shifted, tolerance=0.01, average_run_length=1e5)

    assert missing(0) is None
    assert missing(1) < 1000
    edge = brentq(lambda share: -1 if missing(share) is None else 1, 0, 1, xtol=1e-12) + 1e-9
    assert missing(edge) == MOST_MISSING + 1
    window = three.window(SHIFTED, 300, np.random.default_rng(1))
    estimate = adapt(fitted, window, head, POLICY).prevalence
    text = not_enough_evidence(estimate, head, sequential_shift_test(0.0, 1e5), 0, missing(edge)).text
    assert text.endswith("If the estimate is right, more than 100,000 more show it.")


@pytest.mark.parametrize(("size", "outcome"), [(199, "keep"), (200, "swap")])
def test_the_minimum_sample_size_is_a_limit(three, fitted, head, size, outcome):
    window = three.window([0.98, 0.01, 0.01], size, np.random.default_rng(1))
    report = adapt(fitted, window, head, POLICY)
    assert report.outcome == outcome
    assert ("window_too_small" in codes(report)) == (size < 200)


def test_samples_of_one_patient_do_not_make_a_window(three, fitted, head):
    window = np.repeat(three.window(SHIFTED, 50, np.random.default_rng(1)), 8, axis=0)
    keys = np.repeat([f"patient {i}" for i in range(50)], 8)
    # Each sample eight times looks like images of another kind, too, if they are taken for independent.
    blind = AdaptationPolicy(assumption_violated="report", change_level=0)
    assert adapt(fitted, window, head, blind).outcome == "swap"
    report = adapt(fitted, window, head, POLICY, groups=keys)
    assert (report.outcome, codes(report)) == ("keep", ["window_too_small"])
    assert report.prevalence.effective_n == pytest.approx(50)


@pytest.mark.parametrize("patients", [2, 19, 20, 40])
def test_a_few_patients_of_one_class_each_do_not_swap_the_head(three, calibration, fitted, head, patients):
    """The classes of so few patients are an accident; without a shift the level must hold for them, too."""
    swaps, windows = 0, 40
    for seed in range(windows):
        rng = np.random.default_rng(seed)
        kinds = rng.choice(3, size=patients, p=calibration.prevalence)
        counts = 30 * np.bincount(kinds, minlength=3)
        drawn = three.draw(counts, rng)
        keys = np.empty(drawn.samples, dtype=np.int64)
        for kind in range(3):
            keys[drawn.labels == kind] = np.repeat(np.flatnonzero(kinds == kind), 30)
        swaps += adapt(fitted, drawn.logits, head, POLICY, groups=keys).outcome == "swap"
    assert swaps <= 2


def test_a_head_of_a_superseded_calibration_set_is_judged_by_its_gain_alone(three, calibration, fitted):
    rng = np.random.default_rng(8)
    wrong = three.draw([150] * 3, rng)
    mistaken = LabeledLogits(wrong.logits, (wrong.labels + 1) % 3)
    window = three.draw([300] * 3, rng).logits
    report = adapt(fitted, window, fit_head(mistaken, COSTS), POLICY)
    assert (report.outcome, codes(report)) == ("swap", ["calibration_changed", "gain_sufficient"])
    again = adapt(fitted, window, report.candidate, POLICY)
    assert (again.outcome, codes(again)) == ("keep", ["prevalence_unchanged"])


def test_a_constant_in_the_costs_changes_no_decision(three, calibration, fitted):
    window = three.window(SHIFTED, 800, np.random.default_rng(1))
    for policy in (POLICY, AdaptationPolicy(minimum_gain=0.5)):
        outcomes = {
            adapt(fitted, window, fit_head(calibration, COSTS + constant), policy).outcome
            for constant in (0.0, 10.0, -COSTS.max())
        }
        assert len(outcomes) == 1


def test_a_shift_that_costs_nothing_is_no_reason_to_swap(population):
    """The classes are so far apart that every head decides right."""
    clear, rng = population(3, 12.0), np.random.default_rng(0)
    calibration = clear.draw([100] * 3, rng)
    report = adapt(calibration, clear.window(SHIFTED, 800, rng), fit_head(calibration, COSTS), POLICY)
    assert (report.outcome, codes(report)) == ("keep", ["prevalence_shifted", "gain_too_small"])
    assert report.expected_gain.value == 0
    assert report.candidate is None


def test_the_minimum_gain_counts_in_units_of_the_largest_cost(three, calibration, fitted):
    window = three.window(SHIFTED, 800, np.random.default_rng(1))
    head = fit_head(calibration, COSTS)
    quartile = adapt(fitted, window, head, POLICY).expected_gain.lower_quartile
    for factor, outcome in ((0.99, "swap"), (1.01, "keep")):
        policy = AdaptationPolicy(minimum_gain=factor * quartile / COSTS.max(), minimum_probability_gain=10)
        assert adapt(fitted, window, head, policy).outcome == outcome
    dear = adapt(fitted, window, fit_head(calibration, 100 * COSTS), POLICY)
    assert dear.expected_gain.lower_quartile == pytest.approx(100 * quartile)


def test_without_shift_no_look_swaps_and_with_one_every_look_does(three):
    """What the demo relies on: 450 calibration samples, three classes, ten to one."""
    rng = np.random.default_rng(5)
    outcomes = {"same": [], "shifted": []}
    for _ in range(5):
        calibration = three.draw([150] * 3, rng)
        fitted, head = quantifier("MLLS").fit(calibration), fit_head(calibration, COSTS)
        for size in (500, 1500):
            for _ in range(6):
                same = three.window(np.full(3, 1 / 3), size, rng)
                outcomes["same"].append(adapt(fitted, same, head, POLICY).outcome)
            outcomes["shifted"].append(adapt(fitted, three.window(SHIFTED, size, rng), head, POLICY).outcome)
    assert set(outcomes["same"]) == {"keep"}
    assert set(outcomes["shifted"]) == {"swap"}


@pytest.mark.parametrize("method", ["ACC", "PACC", "EMQ", "KDEyML"])
def test_any_quantifier_will_do(three, calibration, head, method):
    fitted = quantifier(method).fit(calibration)
    report = adapt(fitted, three.window(SHIFTED, 800, np.random.default_rng(1)), head, POLICY)
    assert report.prevalence.method == method
    assert report.quantifier_digest == fitted.digest
    assert report.expected_gain is not None


def test_auto_is_the_default_quantifier(three, calibration, head):
    window = three.window(SHIFTED, 300, np.random.default_rng(1))
    assert adapt(calibration, window, head, POLICY) == adapt(
        quantifier("auto").fit(calibration), window, head, POLICY
    )


def test_a_class_that_was_not_seen_keeps_a_small_prevalence(three, fitted, head):
    window = three.logits(np.zeros(1000, dtype=int), np.random.default_rng(1))
    report = adapt(fitted, window, head, POLICY)
    assert report.outcome == "swap"
    assumed = report.candidate.assumed_prevalence
    assert assumed.min() > 0.4 / 1000
    assert np.isfinite(report.candidate.bias).all()
    assert report.candidate.apply([[0, 0, 30.0]]).decisions.tolist() == [2]


def unidentifiable():
    kind = np.array([0] * 30 + [0, 1] * 15 + [1] * 30)
    return LabeledLogits(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])[kind], np.repeat([0, 1, 2], 30))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"calibration": unidentifiable()}, "calibration_unidentifiable"),
        ({"calibration": LabeledLogits(np.eye(2), [0, 1])}, "classes_differ"),
        ({"window": [[0.0, np.nan, 1.0]] * 300}, "window_invalid"),
        ({"window": [[0.0, 1.0]] * 300}, "window_invalid"),
        ({"window": "logits"}, "window_invalid"),
        ({"window": []}, "window_invalid"),
    ],
)
def test_where_the_assumptions_fail_the_cycle_refuses_and_says_why(three, calibration, head, changes, code):
    arguments = {
        "calibration": calibration,
        "window": three.window(SHIFTED, 300, np.random.default_rng(1)),
        **changes,
    }
    report = adapt(arguments["calibration"], arguments["window"], head, POLICY)
    assert (report.outcome, codes(report)) == ("refuse", [code])
    assert report.candidate is None
    assert report.reasons[0].text
    assert AdaptationReport.from_json(report.to_json()) == report


def test_a_class_without_calibration_samples_is_refused(three, calibration, head):
    missing = calibration.select(calibration.labels < 2)
    report = adapt(missing, three.window(SHIFTED, 300, np.random.default_rng(1)), head, POLICY)
    assert codes(report) == ["calibration_unidentifiable"]


def test_an_empty_window_keeps_the_head(fitted, head):
    report = adapt(fitted, np.empty((0, 3)), head, POLICY)
    assert (report.outcome, codes(report), report.prevalence) == ("keep", ["window_too_small"], None)


def test_the_report_survives_json_exactly_and_replays(three, calibration, head):
    window = three.window(SHIFTED, 800, np.random.default_rng(1))
    report = adapt(calibration, window, head, POLICY, rng=7)
    again = AdaptationReport.from_json(report.to_json())
    assert again == report
    assert again.to_json() == report.to_json()
    assert hash(again) == hash(report)
    stored = json.loads(report.to_json())
    replayed = adapt(
        LabeledLogits.from_bytes(calibration.to_bytes()),
        window,
        PostProcessingHead.from_json(head.to_json()),
        AdaptationPolicy.from_document(stored["policy"]),
        rng=stored["seed"],
    )
    assert replayed.to_json() == report.to_json()


def test_the_report_names_its_inputs_by_digest(three, calibration, fitted, head):
    window = three.window(SHIFTED, 300, np.random.default_rng(1))
    report = adapt(fitted, window, head, POLICY)
    assert (report.calibration_digest, report.head_digest) == (calibration.digest, head.digest)
    other = window.copy()
    other[0, 0] += 1
    keys = np.arange(300) // 2
    digests = {
        report.window_digest,
        adapt(fitted, other, head, POLICY).window_digest,
        adapt(fitted, window, head, POLICY, groups=keys).window_digest,
    }
    assert len(digests) == 3
    renamed = adapt(fitted, window, head, POLICY, groups=[f"p{k:03d}" for k in keys]).window_digest
    assert renamed in digests


def test_the_sentences_hold_the_figures(three, fitted, head):
    report = adapt(fitted, three.window(SHIFTED, 800, np.random.default_rng(1)), head, POLICY)
    shift, gain = (reason.text for reason in report.reasons)
    assert "'harmless'" in shift
    assert f"{report.prevalence.prevalence[0]:.3f}" in shift
    assert f"{report.expected_gain.lower_quartile:.4f}" in gain


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"outcome": "explode"}, "outcome"),
        ({"reasons": None}, "reasons"),
        ({"reasons": [{"code": "whim", "text": "because"}]}, "reasons"),
        ({"reasons": [{"code": "gain_too_small"}]}, "reasons"),
        ({"reasons": ["gain_too_small"]}, "reasons"),
        ({"seed": 0.5}, "seed"),
        ({"seed": True}, "seed"),
        ({"samples": "all"}, "samples"),
        ({"context": {}}, "schema_version"),
        ({"surprise": 1}, "surprise"),
        ({"schema_version": 6}, "schema_version"),
    ],
)
def test_a_bad_document_is_refused(three, fitted, head, changes, field):
    document = adapt(fitted, np.empty((0, 3)), head, POLICY).to_document()
    with pytest.raises(InvalidInputError) as caught:
        AdaptationReport.from_document({**document, **changes})
    assert caught.value.field == field


@pytest.mark.parametrize("rng", [np.random.default_rng(0), 0.5, None, True])
def test_a_seed_that_no_report_can_hold_is_refused(fitted, head, rng):
    with pytest.raises(InvalidInputError) as caught:
        adapt(fitted, np.empty((0, 3)), head, POLICY, rng=rng)
    assert caught.value.field == "rng"


def test_reports_that_differ_are_not_equal(fitted, head):
    report = adapt(fitted, np.empty((0, 3)), head, POLICY)
    assert report != replace(report, seed=1)


def noisy(data, share, rng):
    """The data with this share of the labels of each class moved to another class."""
    wrong = rng.random(data.samples) < share
    return LabeledLogits(
        data.logits, (data.labels + wrong * rng.integers(1, data.classes, data.samples)) % data.classes
    )


def test_an_assumed_share_of_wrong_labels_widens_the_interval_over_the_truth(three):
    rng = np.random.default_rng(4)
    calibration, prevalence = noisy(three.draw([500] * 3, rng), 0.15, rng), np.array([0.1, 0.1, 0.8])
    head, window = fit_head(calibration, COSTS), three.window(prevalence, 3000, rng)
    sure = adapt(calibration, window, head, POLICY)
    assert sure.prevalence.low[2] > prevalence[2]
    careful = adapt(calibration, window, head, replace(POLICY, label_error_rates=(0.15,)))
    assert careful.prevalence.prevalence.tolist() == sure.prevalence.prevalence.tolist()
    assert (careful.prevalence.low <= prevalence).all()
    assert (careful.prevalence.high >= prevalence).all()
    assert careful.expected_gain.low < sure.expected_gain.low
    same = adapt(calibration, window, head, replace(POLICY, label_error_rates=(0.0, 0.0, 0.0)))
    assert same.to_json() == sure.to_json()
    assert "label_error_rates" not in sure.to_json()


def test_label_errors_of_another_number_of_classes_are_named(three, calibration, fitted, head):
    policy = replace(POLICY, label_error_rates=(0.1, 0.1))
    with pytest.raises(InvalidInputError) as caught:
        adapt(fitted, three.window(SHIFTED, 300, np.random.default_rng(1)), head, policy)
    assert caught.value.field == "label_error_rates"


MANY = (
    "decision_rules.decide",
    "deploy.calibration.affine",
    "deploy.calibration.matrix_scaling",
    "deploy.labeled",
    "deploy.numerics.simplex",
    "deploy.quantification.cautions",
    "deploy.label_shift.drift",
)


def test_with_many_classes_the_results_are_the_same_to_rounding(population, monkeypatch):
    six, rng = population(6, 1.5), np.random.default_rng(5)
    calibration, window = six.draw([40, 30, 20, 50, 30, 60], rng), six.window([0.4, *[0.12] * 5], 600, rng)

    def judged():
        # Matrices are for few classes only.
        monkeypatch.setattr("lifelong_core.deploy.calibration.choice.LARGEST_MATRIX", 0)
        head = fit_head(calibration, 1 - np.eye(6))
        return adapt(calibration, window, head, POLICY, performance_metrics=["AC"])

    few = judged()
    for module in MANY:
        monkeypatch.setattr(f"lifelong_core.{module}.MANY_CLASSES", 3)
    many = judged()
    assert (many.outcome, codes(many)) == (few.outcome, codes(few)) == ("swap", codes(few))
    for name in ("prevalence", "low", "high", "covariance"):
        assert getattr(many.prevalence, name) == pytest.approx(getattr(few.prevalence, name), abs=1e-6)
    assert many.candidate.bias == pytest.approx(few.candidate.bias, abs=1e-4)
    assert many.expected_gain.low == pytest.approx(few.expected_gain.low, abs=1e-6)
    assert many.expected_gain.candidate_cost == pytest.approx(few.expected_gain.candidate_cost)
    assert many.assumption_test.p_value == pytest.approx(few.assumption_test.p_value, abs=1e-6)
    assert many.performance.estimates["AC"].low == pytest.approx(
        few.performance.estimates["AC"].low, abs=1e-6
    )
    assert many.performance.validated_error == pytest.approx(few.performance.validated_error, abs=1e-6)
