"""Intervals of subgroups: computed on the shared resampled data sets, and their coverage."""

import numpy as np
import pytest
from scipy.stats import norm

from lifelong_core.design import ValidationResult, validate
from lifelong_core.design.validation.subgroup_results import resample_subgroups
from lifelong_core.design.validation.values.evaluation import Recipe
from lifelong_core.design.validation.values.intervals import Resamples, value_bounds
from lifelong_core.design.validation.values.samples import ModelOutputs, Samples
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.resampling.intervals import Bootstrap, LeftOut
from tests.unit.design.validations import OF_USE, metric, recommending, simulated

LABELS, PROBABILITIES = simulated(90, 3)
POOL = [name for name, card in METRICS.items() if card.is_in_pool]
SAID = ("estimate", "low", "high", "infinite", "method", "replicates", "reason")


def subgroups(recommendation, keys, labels=LABELS, **given):
    """Of each key, its values by label and class; and the result."""
    outputs = {"probabilities": PROBABILITIES} if "decisions" not in given else {}
    metadata = {"site": keys}
    result = validate(recommendation, labels, **{"replicates": 20, "metadata": metadata, **outputs, **given})
    return {
        group.key: {(value.label, value.class_index): value for value in group.values}
        for group in result.subgroups
    }, result


def test_a_subgroup_of_all_samples_has_the_values_of_all():
    everything = recommending(*POOL, metric("TNR", parameters={"target": ("TPR", 0.8)}), **OF_USE)
    found, result = subgroups(everything, np.zeros(90, int), groups=np.arange(90) // 2)
    for value in result.values:
        own = found["0"][value.label, value.class_index]
        assert [getattr(own, name) for name in SAID] == [getattr(value, name) for name in SAID]
        assert own.has_interval
    assert ValidationResult.from_json(result.to_json()) == result


def test_it_is_what_the_draws_of_whole_patients_hold_of_the_subgroup():
    rng = np.random.default_rng(0)
    patients, site = rng.integers(30, size=90), rng.integers(2, size=90)
    is_right = rng.random(90) < 0.7
    decisions = np.where(is_right, LABELS, (LABELS + 1) % 3)
    found, _ = subgroups(recommending("AC"), site, decisions=decisions, groups=patients, rng=5, replicates=50)
    unit = np.unique(patients, return_inverse=True)[1]
    times = Resamples.draw(unit, replicates=50, seed=5).times[:, unit] * (site == 1)
    shares = (times * is_right).sum(axis=1) / times.sum(axis=1)
    left_out = LeftOut(shares[51:], np.ones(len(shares) - 51, int))
    expected = value_bounds(
        Bootstrap(np.array(is_right[site == 1].mean()), shares[1:51], (left_out,)),
        level=0.95, limits=(0.0, 1.0), cases=np.unique(patients[site == 1]).size,
    )  # fmt: skip
    value = found["1"]["AC", None]
    assert (value.low, value.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def simulated_sites(rng, patients=60, images=4):
    """Two sites; the images of a patient are all alike, and the scores at the second site say more."""
    site = (np.arange(patients) % 4 == 0).astype(int)
    labels = np.arange(patients) // 4 % 2
    scores = rng.normal(size=patients) + (2 * labels - 1) * (0.4 + 0.4 * site)
    keep = np.repeat(np.arange(patients), images)
    probabilities = 1 / (1 + np.exp(np.stack([scores, -scores], axis=1)))
    return labels[keep], probabilities[keep], site[keep], keep


def test_intervals_cover_what_they_say():
    """Of single images, or as narrow as those of all sites, they would cover half of what they say."""
    truths = {"AC": norm.cdf, "AUROC": lambda shift: norm.cdf(shift * np.sqrt(2))}
    recipes = [Recipe.of(name, metric(name), weights=None, split=None, seed=0) for name in truths]
    rng = np.random.default_rng(0)
    covered = {(name, key): [] for name in truths for key in ("0", "1")}
    for seed in range(150):
        labels, probabilities, site, patients = simulated_sites(rng, patients=160)
        outputs = ModelOutputs(probabilities=probabilities)
        samples = Samples.of(labels, outputs, classes=2, groups=patients)
        resamples = Resamples.draw(samples.unit, replicates=200, seed=seed)
        for one in resample_subgroups(recipes, samples, {"site": site}, resamples, level=0.8):
            shift = {"0": 0.4, "1": 0.8}[one.result.key]
            for value in one.result.values:
                if value.value_of != "one_class":
                    truth = truths[value.label](shift)
                    covered[value.label, one.result.key].append(value.low <= truth <= value.high)
    for own in covered.values():
        assert len(own) == 150
        assert 0.7 < np.mean(own) < 0.9


class TestThereIsNone:
    def test_where_a_class_is_missing(self):
        found, _ = subgroups(recommending("BA", "AUROC"), np.where(LABELS < 2, "a", "b"))
        value = found["a"]["BA", None]
        assert (value.estimate, value.low, value.high) == (None, None, None)
        assert value.reason == "no reference sample of class 2"
        assert found["a"]["AUROC", 0].has_interval
        assert not found["a"]["AUROC", 2].has_interval

    def test_of_a_single_case(self):
        """Its ten images agree in every draw, or are missing: nothing tells how the next patient would do."""
        found, _ = subgroups(recommending("AC"), np.arange(90) < 10, groups=np.maximum(np.arange(90), 9))
        value = found["True"]["AC", None]
        assert value.estimate is not None
        assert not value.has_interval
        assert any("needs two independent cases" in note for note in value.notes)
        assert found["False"]["AC", None].has_interval

    def test_of_a_class_with_a_single_case(self):
        keys = np.where(LABELS == 1, "b", "a")
        keys[np.flatnonzero(LABELS == 1)[0]] = "a"
        found, _ = subgroups(recommending("TPR", "AUROC", "PPV"), keys)
        for label in ("TPR", "AUROC"):
            assert [found["a"][label, k].has_interval for k in (None, 0, 1, 2)] == [False, True, False, True]
            assert found["a"][label, 1].estimate is not None

    def test_where_most_draws_have_no_value(self):
        """Eight classes of two cases each are seldom all drawn."""
        labels = np.r_[np.repeat(np.arange(8), 2), np.arange(80) % 8]
        decisions = np.where(np.arange(96) % 2, labels, 0)
        recommendation = recommending("BA", "AC", number_of_classes=8)
        found, _ = subgroups(recommendation, np.arange(96) < 16, labels, decisions=decisions, replicates=200)
        value = found["True"]["BA", None]
        assert value.estimate is not None
        assert not value.has_interval
        assert 0 < value.replicates < 100
        assert value.notes[-1] == "No interval: too few resampled data sets have a value."
        assert found["True"]["AC", None].has_interval


def test_kernels_are_resampled_less_often_than_the_rest():
    found, result = subgroups(recommending("KCE", "AC"), np.arange(90) % 2, replicates=300)
    assert [found["0"][label, None].replicates for label in ("KCE", "AC")] == [200, 300]
    assert result.value("KCE").replicates == 300
