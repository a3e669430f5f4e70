"""The report of a calibration set: its figures, and what it refuses."""

import json

import numpy as np
import pytest

from lifelong_core.deploy import BayesRule, LabeledLogits, PostProcessingHead, TargetValue, fit_head
from lifelong_core.deploy.calibration_acceptance.class_mix_mean import Figure
from lifelong_core.deploy.calibration_acceptance.findings import uninformative
from lifelong_core.deploy.calibration_acceptance.report import examine_calibration
from lifelong_core.deploy.head_fitting import crossfitted_output
from lifelong_core.metrics import brier_score, confusion_matrix, expected_cost

NAMES = ("benign", "unclear", "malignant")
COSTS = np.array([[0.0, 1, 1, 0.5], [1, 0, 1, 0.5], [5, 5, 0, 0.5]])
REAL = (
    "cifar10_resnet50",
    "cifar100_resnet20",
    "hyperkvasir_therapeutic_interventions",
    "lapgyn4_surgical_actions",
)


def codes(data, names=None, costs=None, **known):
    """Codes of the refusals, and of the warnings."""
    names = names or [str(k) for k in range(data.classes)]
    report = examine_calibration(data, 1 - np.eye(data.classes) if costs is None else costs, names, **known)
    refusals = {finding.code for finding in report.refusals}
    return refusals, {finding.code for finding in report.findings} - refusals


def relabelled(data, labels):
    return LabeledLogits(data.logits, labels, data.groups)


def sample(data, per_class, seed):
    generator = np.random.default_rng(seed)
    rows = [generator.permutation(np.flatnonzero(data.labels == k))[:per_class] for k in range(data.classes)]
    return data.select(np.concatenate(rows))


@pytest.fixture
def good(population):
    return population(3).draw([80, 60, 60], np.random.default_rng(0))


def test_the_figures_are_those_of_heads_that_have_not_seen_the_case(good):
    report = examine_calibration(good, COSTS, NAMES)
    output = crossfitted_output(good, COSTS, good.prevalence)
    confusion = confusion_matrix(good.labels, output.decisions, classes=3, decisions_count=4)
    assert report.crossfitted
    assert report.new.accuracy.value == pytest.approx(
        (output.probabilities.argmax(axis=1) == good.labels).mean()
    )
    assert report.new.expected_cost.value == pytest.approx(expected_cost(confusion, COSTS))
    assert report.new.brier_score.value == pytest.approx(brier_score(good.labels, output.probabilities))
    assert (report.majority_accuracy, report.constant_decision) == (0.4, "abstain")
    assert report.constant_cost == pytest.approx(0.5)
    for figure in (report.new.accuracy, report.new.expected_cost, report.new.brier_score, report.skill):
        assert figure.low < figure.value < figure.high
    assert report.findings == ()
    assert json.loads(json.dumps(report.to_document()))["verdict"] == "accepted"


def test_a_rule_that_is_dear_on_purpose_is_no_finding():
    """A sensitivity of 0.95 costs more than deciding on no case at all, by 0-1 costs."""
    rng = np.random.default_rng(3)
    labels = (np.arange(1500) % 15 == 0).astype(np.int64)
    data = LabeledLogits(1.2 * np.eye(2)[labels] + rng.normal(size=(1500, 2)), labels)
    rule, costs = TargetValue("TPR", 0.95), 1 - np.eye(2)
    report = examine_calibration(data, costs, ("no", "yes"), decision_rule=rule)
    output = crossfitted_output(data, costs, data.prevalence, decision_rule=rule)
    assert report.new.expected_cost.value == pytest.approx((output.decisions != labels).mean())
    assert report.new.expected_cost.low > report.constant_cost
    plain = examine_calibration(data, costs, ("no", "yes"), decision_rule=BayesRule())
    assert plain == examine_calibration(data, costs, ("no", "yes"))
    assert report.findings == plain.findings == ()
    assert report.new.brier_score == plain.new.brier_score


def test_the_present_head_is_judged_on_the_same_cases(good):
    over_confident = PostProcessingHead(0.1, np.zeros(3), COSTS, np.full(3, 1 / 3), NAMES)
    report = examine_calibration(good, COSTS, NAMES, old_head=over_confident)
    assert report.old is not None
    assert report.change is not None
    assert report.old.calibration_error.low > 0.05
    assert abs(report.new.calibration_error.value) < 0.05
    difference = report.new.brier_score.value - report.old.brier_score.value
    assert report.change.brier_score.value == pytest.approx(difference)
    assert report.change.brier_score.high < 0  # paired: certain, though the intervals of both may overlap
    # The same head once more: nothing changes, although it was fitted on these cases.
    again = examine_calibration(good, COSTS, NAMES, old_head=fit_head(good, COSTS, class_names=NAMES))
    assert again.change is not None
    assert again.change.accuracy.value == pytest.approx(0.0, abs=1e-12)


def test_too_few_cases_are_refused_and_few_are_warned_of(population):
    generator = np.random.default_rng(1)
    three = population(3).draw([1, 1, 1], generator)
    assert "too_few_cases" in codes(three)[0]
    assert "too_few_cases" in codes(population(3).draw([100, 4, 100], generator))[0]
    refusals, warnings = codes(population(3, separation=4).draw([100, 5, 100], generator))
    assert (refusals, warnings) == (set(), {"few_cases", "negative_skill"})


def test_groups_count_once_and_stay_together(population):
    data = population(2, separation=4).draw([60, 60], np.random.default_rng(2))
    patients = LabeledLogits(data.logits, data.labels, np.arange(120) // 2 % 20)
    report = examine_calibration(patients, 1 - np.eye(2), ("a", "b"))
    assert (report.groups, report.crossfitted) == (20, True)
    assert [finding.code for finding in report.findings] == ["few_cases"]
    alone = LabeledLogits(data.logits, data.labels, data.labels)  # one patient of each class
    assert "not_crossfitted" in codes(alone)[1]


def test_labels_in_wrong_order_are_named(good):
    swapped = relabelled(good, np.array([2, 1, 0])[good.labels])
    report = examine_calibration(swapped, COSTS, NAMES)
    (finding,) = [one for one in report.refusals if one.code == "exchanged_labels"]
    assert finding.text.startswith("the labels of benign and malignant look swapped: ")
    shifted = relabelled(good, (good.labels + 1) % 3)
    report = examine_calibration(shifted, COSTS, NAMES)
    (finding,) = [one for one in report.refusals if one.code == "exchanged_labels"]
    assert "cases labelled benign look like malignant" in finding.text


def test_a_bias_of_the_network_is_no_exchange(good):
    # Trained where the second class is the usual one: nearly everything is called so.
    biased = LabeledLogits(good.logits + np.array([0, 4, 0]), good.labels)
    assert codes(biased) == (set(), set())


def test_labels_that_have_nothing_to_do_with_the_logits_are_refused(good):
    permuted = relabelled(good, np.random.default_rng(3).permutation(good.labels))
    assert "no_better_than_prevalence" in codes(permuted)[0]


def test_a_weak_model_is_no_reason_to_refuse(population):
    weak = population(2, separation=0.4).draw([300, 300], np.random.default_rng(4))
    refusals, _ = codes(weak)
    assert refusals == set()
    few = population(2, separation=0.4).draw([12, 12], np.random.default_rng(5))
    assert codes(few) == (set(), {"few_cases", "unclear_benefit"})


def test_probabilities_worse_than_the_prevalence_alone_are_said_even_where_the_decisions_are_good():
    accuracy = Figure(0.9, 0.85, 0.95)
    (finding,) = uninformative(Figure(-0.2, -0.5, 0.1), accuracy, 0.6)
    assert (finding.code, finding.severity) == ("negative_skill", "warning")
    assert uninformative(Figure(0.2, -0.1, 0.4), accuracy, 0.6) == []
    (finding,) = uninformative(Figure(-0.4, -0.7, -0.1), accuracy, 0.6)
    assert (finding.code, finding.severity) == ("negative_skill", "refusal")
    assert "by their log loss" in finding.text, "the decisions are better than the prevalence alone"


@pytest.mark.parametrize("unit", [1, 100])
def test_outputs_of_a_sigmoid_are_recognised(good, unit):
    outputs = LabeledLogits(unit / (1 + np.exp(-good.logits)), good.labels)
    assert codes(outputs)[0] == {"sigmoid_outputs"}


def test_a_set_far_below_the_previous_one_is_refused(population):
    previous = population(3, separation=2.5).draw([150] * 3, np.random.default_rng(6))
    rare = population(3, separation=2.5).draw([400, 30, 30], np.random.default_rng(7))
    assert codes(rare, previous=previous) == (set(), {"few_cases"})
    worse = population(3, separation=1.5).draw([150] * 3, np.random.default_rng(8))
    report = examine_calibration(worse, COSTS, NAMES, previous=previous)
    assert [finding.code for finding in report.refusals] == ["worse_than_previous"]
    assert report.previous is not None
    assert report.previous.accuracy.value > report.new.accuracy.value + 0.1
    assert codes(worse, previous=worse) == (set(), set())


def test_decisions_that_the_costs_fix_are_only_warned_of(good):
    costs = np.column_stack([1 - np.eye(3), np.full(3, 1e-9)])  # to abstain costs next to nothing
    assert codes(good, costs=costs) == (set(), {"no_cheaper_than_constant"})


@pytest.mark.parametrize("name", REAL)
def test_real_sets_pass_whole_and_in_part(shared_logits, name):
    data = shared_logits(name).calibration
    assert codes(data)[0] == set()
    for per_class in (30, 50, 100):
        for seed in range(1 if data.classes > 50 else 10):
            assert codes(sample(data, per_class, seed))[0] == set()


@pytest.mark.parametrize("name", REAL)
def test_real_sets_that_were_spoilt_are_refused(shared_logits, name):
    data = shared_logits(name).calibration
    for seed in range(1 if data.classes > 50 else 5):
        part = sample(data, 30, seed)
        generator = np.random.default_rng(seed)
        order = np.arange(part.classes)
        left, right = generator.choice(part.classes, 2, replace=False)
        order[left], order[right] = right, left
        assert "exchanged_labels" in codes(relabelled(part, order[part.labels]))[0]
        permuted = relabelled(data, generator.permutation(data.labels))
        assert "no_better_than_prevalence" in codes(permuted)[0]


def test_labels_that_are_wrong_at_random_are_warned_of(good):
    assert codes(good) == (set(), set())
    rng = np.random.default_rng(1)
    wrong = rng.random(good.samples) < 0.2
    labels = (good.labels + wrong * rng.integers(1, 3, good.samples)) % 3
    assert codes(relabelled(good, labels)) == (set(), {"noisy_labels"})
