import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.metrics import (
    METRICS,
    choose_threshold,
    compute_metrics,
    confusion_matrix,
    counting_metric,
    expected_cost,
    metric_at_target,
    net_benefit,
    net_benefit_from_probabilities,
    normalised_expected_cost,
    quadratic_costs,
    sensitivity,
    specificity,
    value_at_threshold,
)
from lifelong_core.metrics.scores import samples as samples_module
from lifelong_core.values.errors import InvalidInputError

POOL = [acronym for acronym, card in METRICS.items() if card.is_in_pool]
COUNTING = [acronym for acronym in POOL if METRICS[acronym].family == "counting"]
OF_SCORES = [acronym for acronym in POOL if acronym not in COUNTING]
PER_CLASS_COUNTS = [acronym for acronym in COUNTING if METRICS[acronym].is_per_class]
SAMPLES_MATTER = {"KCE", "ECE_KDE", "ECCL"}
"""estimates that leave out the sample at hand, so that a copy of the data is not the same"""


def drawn(seed: int, samples: int = 30, classes: int = 3):
    """Labels, and probabilities in coarse steps: with ties, exact zeros and ones."""
    rng = np.random.default_rng(seed)
    probabilities = rng.multinomial(4, rng.dirichlet(np.ones(classes)), size=samples) / 4
    return rng.integers(classes, size=samples), probabilities


def plain(acronym, labels, probabilities, **parameters):
    """The metric's own function."""
    function = METRICS[acronym].function
    if acronym not in COUNTING:
        found = function(labels, probabilities, **parameters)
        return getattr(found, "value", found)
    classes = probabilities.shape[1]
    confusion = confusion_matrix(labels, probabilities.argmax(axis=1), classes=classes)
    if acronym in ("EC", "WCK"):
        return function(confusion, 1 - np.eye(classes))
    return function(confusion, **parameters)


def test_gives_what_the_functions_give():
    """Alone, too: metrics share computations with those beside them."""
    labels, probabilities = drawn(0)
    together = compute_metrics(POOL, labels=labels, probabilities=probabilities)
    for acronym in POOL:
        found = compute_metrics([acronym], labels=labels, probabilities=probabilities)[acronym]
        if acronym == "NB":
            expected = net_benefit_from_probabilities(labels, probabilities, threshold=0.5)
        else:
            expected = plain(acronym, labels, probabilities)
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True), acronym
        assert together[acronym] == pytest.approx(found, abs=1e-12, nan_ok=True), acronym


@pytest.mark.parametrize(
    ("acronym", "parameters"),
    [
        ("F_beta", {"beta": 2}),
        ("ECE", {"bins": 3, "right_closed": True, "norm": 2}),
        ("CWCE", {"bins": 3, "right_closed": True, "norm": 2}),
        ("TCE", {"bins": 3, "right_closed": True, "norm": 2}),
        ("MCE", {"bins": 3, "right_closed": True, "norm": 2}),
        ("MCE", {"norm": 2}),
        ("CE", {"norm": 2}),
        ("KCE", {"bandwidth": 0.3, "estimator": "root", "subsample": 10}),
        ("ECE_KDE", {"bandwidth": 0.3, "norm": 2, "subsample": 10}),
    ],
)
def test_parameters_reach_the_metric(acronym, parameters):
    labels, probabilities = drawn(1)
    found = compute_metrics([acronym], labels=labels, probabilities=probabilities, **parameters)
    assert found[acronym] == pytest.approx(plain(acronym, labels, probabilities, **parameters), nan_ok=True)
    assert not np.array_equal(
        found[acronym], compute_metrics([acronym], labels=labels, probabilities=probabilities)[acronym]
    )


@pytest.mark.parametrize(
    ("acronym", "parameters", "field"),
    [
        ("F_beta", {"beta": 0}, "beta"),
        ("NB", {"threshold": 1.5}, "threshold"),
        ("ECE", {"bins": 0}, "bins"),
        ("ECE", {"norm": 0.5}, "norm"),
        ("KCE", {"bandwidth": -1}, "bandwidth"),
        ("KCE", {"estimator": "best"}, "estimator"),
        ("ECE_KDE", {"subsample": 1}, "subsample"),
        ("AC", {"bin": 3}, "bin"),
        ("TNR", {"target": "TPR"}, "target"),
        ("TNR", {"target": ("AC", 0.8)}, "target"),
        ("TNR", {"target": ("TPR", math.nan)}, "target"),
        ("TNR", {"target": ("TPR", 0.5), "target_split": ([0, 1], [[1, 0], [0, 1]])}, "target_split"),
        ("AC", {"classes": 4}, "probabilities"),
        ("AC", {"classes": 1}, "classes"),
        ("EC", {"costs": [[0, 1], [1, 0]]}, "costs"),
        ("EC", {"prevalence": [0.5, 0.5]}, "prevalence"),
        ("AC", {"labels": [0, 1]}, "probabilities"),
        ("AC", {"labels": [[0]]}, "labels"),
        ("AC", {"labels": [3] * 30}, "labels"),
        ("AC", {"decisions": [0, 1]}, "decisions"),
        ("AC", {"decisions": [-2] * 30}, "decisions"),
        ("AC", {"decisions": [[0], [1, 2]]}, "decisions"),
        ("AC", {"decisions": ["a"] * 30}, "decisions"),
        ("AC", {"probabilities": [[0.5, 0.2, 0.3]]}, "probabilities"),
        ("AC", {"probabilities": 0.5}, "probabilities"),
        ("AC", {"confusion_matrix": [[1, 0], [0, 1]]}, "confusion_matrix"),
        ("AC", {"confusion_matrix": [[1, 0, 0, 0]]}, "confusion_matrix"),
        ("AC", {"confusion_matrix": np.eye(3), "decisions": [0] * 30}, "confusion_matrix"),
    ],
)
def test_bad_arguments_are_named(acronym, parameters, field):
    labels, probabilities = drawn(2)
    with pytest.raises(InvalidInputError) as caught:
        compute_metrics([acronym], **{"labels": labels, "probabilities": probabilities, **parameters})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("acronym", "inputs", "field"),
    [
        ("AC", {}, "confusion_matrix"),
        ("AC", {"labels": [0, 1]}, "decisions"),
        ("AC", {"decisions": [0, 1]}, "labels"),
        ("AUROC", {"probabilities": [[0.5, 0.5]]}, "labels"),
        ("AUROC", {"labels": [0, 1], "decisions": [0, 1]}, "probabilities"),
        ("BS", {"confusion_matrix": [[1, 0], [0, 1]]}, "labels"),
        ("TNR", {"confusion_matrix": [[1, 0], [0, 1]], "target": ("TPR", 0.5)}, "labels"),
        ("AC", {"labels": [0, 20_000], "decisions": [0, 1]}, "labels"),
    ],
)
def test_what_is_missing_is_named(acronym, inputs, field):
    with pytest.raises(InvalidInputError) as caught:
        compute_metrics([acronym], **inputs)
    assert caught.value.field == field
    assert caught.value.hint or acronym == "AC"


def test_results_are_a_mapping_in_the_order_asked_for():
    found = compute_metrics(["TPR", "AC", "TPR"], confusion_matrix=[[1, 1], [0, 2]])
    assert list(found) == ["TPR", "AC"]
    assert len(found) == 2
    assert dict(found)["AC"] == 0.75
    assert "BA" not in found
    with pytest.raises(ValueError, match="read-only"):
        found["TPR"][0] = 1
    assert compute_metrics("AC", confusion_matrix=[[1, 1], [0, 2]])["AC"] == 0.75


def test_decisions_default_to_the_likeliest_class_and_ties_to_the_lowest():
    found = compute_metrics(["TPR"], labels=[0, 1, 1], probabilities=[[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    assert found["TPR"].tolist() == [1, 0.5]


def test_classes_that_do_not_occur_can_be_declared():
    labels, decisions = [0, 0, 1], [0, 1, 1]
    assert compute_metrics(["BA"], labels=labels, decisions=decisions)["BA"] == 0.75
    found = compute_metrics(["BA", "TPR"], labels=labels, decisions=decisions, classes=3)
    assert math.isnan(found["BA"])
    assert found.reasons["BA"] == "no reference sample of class 2"
    assert dict(found.reasons["TPR"]) == {2: "no reference sample of class 2"}


def test_a_matrix_may_come_with_what_it_was_counted_from():
    labels, probabilities = drawn(3)
    decisions = probabilities.argmax(axis=1)
    counts = confusion_matrix(labels, decisions, classes=3)
    inputs = {"labels": labels, "probabilities": probabilities, "decisions": decisions}
    both = compute_metrics(POOL, confusion_matrix=counts, **inputs)
    alone = compute_metrics(POOL, **inputs)
    for acronym in set(POOL) - {"NB"}:
        assert np.array_equal(both[acronym], alone[acronym], equal_nan=True)


def test_net_benefit_is_of_the_matrix_or_of_the_probabilities_or_of_the_decisions():
    labels, probabilities = drawn(4)
    decisions = np.zeros(30, int)
    counts = confusion_matrix(labels, decisions, classes=3)
    of_counts = net_benefit(counts, threshold=0.25)
    of_probabilities = net_benefit_from_probabilities(labels, probabilities, threshold=0.25)
    assert not np.allclose(of_counts, of_probabilities)

    def found(**inputs):
        return compute_metrics(["NB"], threshold=0.25, labels=labels, **inputs)["NB"]

    assert found(decisions=decisions, classes=3) == pytest.approx(of_counts)
    assert found(decisions=decisions, probabilities=probabilities) == pytest.approx(of_probabilities)
    assert found(confusion_matrix=counts, probabilities=probabilities) == pytest.approx(of_counts)


def test_a_population_has_its_own_prevalence():
    counts, costs, prevalence = [[8, 2], [1, 9]], [[0, 1], [5, 0]], [0.9, 0.1]
    found = compute_metrics(["EC", "NEC", "AC"], confusion_matrix=counts, costs=costs, prevalence=prevalence)
    assert found["EC"] == pytest.approx(expected_cost(counts, costs, prevalence=prevalence))
    assert found["NEC"] == pytest.approx(normalised_expected_cost(counts, costs, prevalence=prevalence))
    assert found["AC"] == 0.85


def test_abstaining_is_a_decision():
    labels, decisions = [0, 0, 1, 1], [0, 2, 1, 2]
    costs = [[0, 1, 0.25], [1, 0, 0.25]]
    found = compute_metrics(COUNTING, labels=labels, decisions=decisions, costs=costs)
    assert found["AC"] == 0.5
    assert found["EC"] == 0.125
    assert found["NEC"] == 0.5  # to abstain always is the cheapest constant decision
    assert found["TPR"].tolist() == [0.5, 0.5]
    assert found["TNR"].tolist() == [1, 1]
    assert found["WCK"] == pytest.approx(1 - 0.125 / 0.375)
    without_costs = compute_metrics(["EC", "ER"], labels=labels, decisions=decisions, classes=2)
    assert without_costs["EC"] == without_costs["ER"] == 0.5
    never = compute_metrics(["EC"], labels=[0, 1], probabilities=[[1, 0], [0, 1]], costs=costs)
    assert never["EC"] == 0


def test_the_cut_off_for_a_target_comes_from_the_split():
    rng = np.random.default_rng(5)
    labels, split_labels = rng.integers(2, size=(2, 80))
    scores, split_scores = (rng.normal(size=(2, 80)) + np.stack([labels, split_labels])) / 10 + 0.5
    probabilities, split = (np.clip(np.stack([1 - one, one], axis=1), 0, 1) for one in (scores, split_scores))
    found = compute_metrics(
        ["TNR", "AC"],
        labels=labels,
        probabilities=probabilities,
        target=("TPR", 0.9),
        target_split=(split_labels, split),
    )
    chosen = choose_threshold(
        split_labels, split[:, 1], positive=1, metric=sensitivity, target=0.9, best=specificity
    )
    expected = value_at_threshold(
        labels, probabilities[:, 1], positive=1, threshold=chosen, metric=specificity
    )
    assert found["TNR"][1] == expected
    assert found["AC"] == (probabilities.argmax(axis=1) == labels).mean()


@pytest.mark.parametrize("target", [("TPR", 0.6), ["TPR", 0.6], {"TPR": 0.6}, 0.6])
def test_a_target_can_be_written_in_several_ways(target):
    labels, probabilities = drawn(7)
    inputs = {"labels": labels, "probabilities": probabilities}
    found = compute_metrics(["TNR"], **inputs, target=target)["TNR"]
    assert np.array_equal(found, metric_at_target(labels, probabilities, target=0.6))


def test_targets_that_are_missed_have_a_reason():
    inputs = {"labels": [0, 0, 1], "probabilities": [[0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]}
    found = compute_metrics(["TPR"], **inputs, target={"PPV": 0.9})
    assert found["TPR"][0] == 0.5
    assert dict(found.reasons["TPR"]) == {1: "no cut-off for class 1 reaches PPV = 0.9"}
    found = compute_metrics(["PPV"], **inputs, target={"TNR": 1.0})
    assert "at the cut-off for class 1" in found.reasons["PPV"][1]


def test_many_matrices_at_once_give_what_each_gives():
    stack = np.random.default_rng(8).integers(1, 9, size=(5, 3, 3)).astype(float)
    options = {"costs": quadratic_costs(3), "beta": 2, "threshold": 0.2, "prevalence": [0.2, 0.3, 0.5]}
    each = [compute_metrics(COUNTING, confusion_matrix=matrix, **options) for matrix in stack]
    for acronym in COUNTING:
        found = counting_metric(acronym, **options)(stack)
        assert found == pytest.approx(np.array([values[acronym] for values in each]), rel=1e-12), acronym


@pytest.mark.parametrize(("acronym", "field"), [("BS", "acronym"), ("accuracy", "names")])
def test_only_counting_metrics_count(acronym, field):
    with pytest.raises(InvalidInputError) as caught:
        counting_metric(acronym)
    assert caught.value.field == field


def test_subsamples_are_told_with_their_error_and_can_be_repeated():
    labels, probabilities = drawn(6, samples=300)
    inputs = {"labels": labels, "probabilities": probabilities, "subsample": 50, "bandwidth": 0.3}
    found = compute_metrics(["KCE", "ECE_KDE", "BS"], **inputs, rng=1)
    assert set(found.standard_errors) == {"KCE", "ECE_KDE"}
    assert all(error > 0 for error in found.standard_errors.values())
    assert dict(found) == dict(compute_metrics(["ECE_KDE", "KCE", "BS"], **inputs, rng=1))
    assert found["KCE"] != compute_metrics(["KCE"], **inputs, rng=2)["KCE"]
    everything = compute_metrics(["KCE", "ECE_KDE"], **inputs | {"subsample": 300})
    assert not everything.standard_errors


tables = st.builds(drawn, st.integers(0, 2**32 - 1), samples=st.integers(0, 8), classes=st.integers(2, 4))


@given(tables, st.integers(0, 2**32 - 1))
def test_stays_in_range_and_explains_each_nan(table, seed):
    """Without any warning too: pytest makes errors of them."""
    labels, probabilities = table
    invalid = np.random.default_rng(seed).uniform(size=labels.size) < 0.2
    decisions = np.where(invalid, -1, probabilities.argmax(axis=1))
    found = compute_metrics(POOL, labels=labels, probabilities=probabilities, decisions=decisions)
    for acronym, value in found.items():
        low, high = METRICS[acronym].bounds
        assert np.all((value >= low - 1e-12) & (value <= high + 1e-12) | np.isnan(value)), acronym
        reasons = found.reasons.get(acronym)
        if METRICS[acronym].is_per_class:
            assert value.shape == (probabilities.shape[1],)
            assert set(reasons or {}) == set(np.flatnonzero(np.isnan(value)).tolist()), acronym
        else:
            assert isinstance(value, float)
            assert (reasons is not None) == math.isnan(value), acronym


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.randoms(use_true_random=False))
def test_names_of_classes_and_order_of_samples_do_not_matter(seed, samples, random):
    rng = np.random.default_rng(seed)
    labels, probabilities = rng.integers(3, size=samples), rng.dirichlet(np.ones(3), size=samples)
    renamed, rows = random.sample(range(3), 3), random.sample(range(samples), samples)
    costs, prevalence = quadratic_costs(3), np.array([0.2, 0.3, 0.5])
    found = compute_metrics(
        POOL, labels=labels, probabilities=probabilities, costs=costs, prevalence=prevalence
    )
    other = compute_metrics(
        POOL,
        labels=np.argsort(renamed)[labels][rows],
        probabilities=probabilities[rows][:, renamed],
        costs=costs[np.ix_(renamed, renamed)],
        prevalence=prevalence[renamed],
    )
    for acronym in set(POOL) - {"ECCL"}:  # its folds depend on the order
        expected = found[acronym][renamed] if METRICS[acronym].is_per_class else found[acronym]
        assert other[acronym] == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), acronym


@given(tables, st.integers(2, 3))
def test_copies_of_the_data_do_not_matter(table, copies):
    labels, probabilities = table
    names = [acronym for acronym in POOL if acronym not in SAMPLES_MATTER]
    found = compute_metrics(names, labels=labels, probabilities=probabilities)
    copied = compute_metrics(
        names, labels=np.tile(labels, copies), probabilities=np.tile(probabilities, (copies, 1))
    )
    for acronym in names:
        assert copied[acronym] == pytest.approx(found[acronym], rel=1e-9, abs=1e-12, nan_ok=True), acronym


def test_blocks_change_nothing(monkeypatch):
    labels, probabilities = drawn(3, samples=200, classes=11)
    whole = compute_metrics(POOL, labels=labels, probabilities=probabilities)
    monkeypatch.setattr(samples_module, "BLOCK", 40)
    monkeypatch.setattr(samples_module, "COLUMNS_TOGETHER", 3)
    parts = compute_metrics(POOL, labels=labels, probabilities=probabilities)
    for acronym in POOL:
        np.testing.assert_allclose(parts[acronym], whole[acronym], rtol=1e-12, atol=1e-12)


def test_rankings_of_one_class_are_those_of_all():
    """With a target, all rankings are kept; without one, one after the other."""
    labels, probabilities = drawn(4, samples=100, classes=9)
    kept = compute_metrics(POOL, labels=labels, probabilities=probabilities, target=("TPR", 0.8))
    for acronym in ("AUROC", "AP", "MCE"):
        alone = compute_metrics([acronym], labels=labels, probabilities=probabilities)[acronym]
        assert np.array_equal(kept[acronym], alone, equal_nan=True)


def test_memory_for_many_samples_is_about_that_of_their_probabilities():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(40), size=200_000)
    labels = rng.integers(40, size=len(probabilities))
    before = probabilities.copy()
    tracemalloc.start()
    compute_metrics(POOL, labels=labels, probabilities=probabilities)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * probabilities.nbytes
    assert np.array_equal(probabilities, before)
    assert probabilities.flags.writeable
