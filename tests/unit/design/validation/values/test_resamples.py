"""Every metric of resampled data, against the same metric of the repeated samples."""

import numpy as np
import pytest

from lifelong_core.design.validation.values.evaluation import Recipe, Split, estimate_metric
from lifelong_core.design.validation.values.intervals import Resamples
from lifelong_core.design.validation.values.resampled_metrics import resample_metric
from lifelong_core.design.validation.values.samples import ModelOutputs, Samples
from lifelong_core.metrics import METRICS, bootstrap_confusions, compute_metrics, ec_calibration_loss
from lifelong_core.metrics.calibration import density
from lifelong_core.metrics.calibration.cost_loss import cost_gains
from lifelong_core.metrics.calibration.density import leave_one_out_bandwidth
from lifelong_core.metrics.calibration.kernel import median_pairwise_distance
from lifelong_core.metrics.inputs import Parameters
from lifelong_core.metrics.resampling.weighted import weighted_ece_kde, weighted_kernel_error
from tests.unit.design.validations import metric, simulated

COSTS = ((0.0, 1.0, 2.0), (3.0, 0.0, 1.0), (4.0, 1.0, 0.0))
RECIPES = [
    ("AC", {}), ("BA", {}), ("MCC", {}), ("CK", {}), ("WCK", {"costs": COSTS}), ("EC", {"costs": COSTS}),
    ("EC", {"costs": COSTS, "prevalence": (0.7, 0.2, 0.1)}), ("NEC", {"costs": COSTS}), ("TPR", {}), ("TNR", {}),
    ("PPV", {}), ("NPV", {}), ("LR+", {}), ("F_beta", {"beta": 2.0}), ("J", {}), ("NB", {"threshold": 0.3}),
    ("AUROC", {}), ("AP", {}), ("BS", {}), ("RBS", {}), ("BSS", {}), ("NLL", {}), ("ECE", {}), ("CWCE", {}),
    ("ECE", {"norm": 2, "bins": 7}), ("CE", {}),
]  # fmt: skip


def samples_with(invalid_share, *, size=60, groups=None):
    labels, probabilities = simulated(size, 3)
    decisions = probabilities.argmax(axis=1)
    decisions[np.random.default_rng(1).random(size) < invalid_share] = -1
    outputs = ModelOutputs(probabilities=probabilities, decisions=decisions)
    return Samples.of(labels, outputs, classes=3, groups=groups)


def recipe_of(acronym, parameters, split=None):
    return Recipe.of(acronym, metric(acronym, parameters=parameters), weights=None, split=split, seed=3)


def stacked(values):
    return [values.estimate, *values.replicates, *values.left_out[0].values]


@pytest.mark.parametrize("invalid_share", [0.0, 0.15])
@pytest.mark.parametrize(("acronym", "parameters"), RECIPES)
def test_weights_say_what_copies_say(acronym, parameters, invalid_share):
    samples = samples_with(invalid_share)
    resamples = Resamples.draw(samples.unit, replicates=6, seed=3)
    given = {"labels": samples.labels, "decisions": samples.decisions, "probabilities": samples.probabilities}
    whole = compute_metrics([acronym], **given, **parameters)[acronym]
    found = stacked(resample_metric(recipe_of(acronym, parameters), samples, resamples, np.asarray(whole)))
    for times, value in list(zip(resamples.times, found, strict=True))[:15]:
        rows = np.repeat(np.arange(samples.size), times)
        copies = {name: array[rows] for name, array in given.items()}
        expected = compute_metrics([acronym], **copies, classes=3, **parameters)[acronym]
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("invalid_share", [0.0, 0.15])
@pytest.mark.parametrize(
    ("acronym", "target"), [("TNR", ("TPR", 0.8)), ("PPV", ("TPR", 0.5)), ("TPR", ("PPV", 0.6))]
)
def test_a_metric_at_a_target_keeps_its_cut_offs(acronym, target, invalid_share):
    samples = samples_with(invalid_share)
    split = Split.halves(samples, seed=3)
    recipe = recipe_of(acronym, {"target": target}, split)
    resamples = Resamples.draw(samples.unit, replicates=6, seed=3)
    part, draws = samples.part(split.rows), resamples.part(split.rows)
    found = resample_metric(recipe, part, draws, np.zeros(3)).replicates
    for times, value in zip(resamples.times[1:7], found, strict=True):
        rows = np.repeat(split.rows, times[split.rows])
        expected = compute_metrics(
            [acronym],
            labels=samples.labels[rows],
            probabilities=samples.probabilities[rows],
            decisions=samples.decisions[rows],
            target=target,
            target_split=split.labelled,
        )[acronym]
        np.testing.assert_allclose(value, expected, rtol=1e-9)


def test_a_class_whose_cut_off_reaches_no_target_is_undefined():
    samples = samples_with(0.0)
    only_two = samples.part(samples.labels < 2)
    recipe = recipe_of("TNR", {"target": ("TPR", 0.8)}, Split.other(samples, only_two))
    found = resample_metric(recipe, samples, Resamples.draw(samples.unit, replicates=5, seed=0), np.zeros(3))
    assert np.isnan(found.replicates[:, 2]).all()
    assert not np.isnan(found.replicates[:, :2]).any()


def test_the_draws_are_those_of_the_metric_pool():
    """So that all metrics, whichever way they are computed, are compared on the same data sets."""
    groups = np.arange(60) // 4
    samples = samples_with(0.0, groups=groups)
    found = resample_metric(
        recipe_of("AC", {}), samples, Resamples.draw(samples.unit, replicates=20, seed=5), np.zeros(())
    )
    pool = bootstrap_confusions(
        samples.labels, samples.decisions, classes=3, replicates=20, groups=groups, rng=5
    ).of(METRICS["AC"].function.__globals__["accuracies"])
    np.testing.assert_allclose(found.replicates, pool.replicates, rtol=1e-12)
    np.testing.assert_allclose(found.left_out[0].values, pool.left_out[0].values, rtol=1e-12)


def test_what_has_no_fast_way_is_computed_anew_for_fewer_draws():
    samples = samples_with(0.0)
    resamples = Resamples.draw(samples.unit, replicates=300, seed=3)
    found = resample_metric(recipe_of("TCE", {}), samples, resamples, np.zeros(()))
    assert found.replicates.shape == (200,)
    rows = np.repeat(np.arange(60), resamples.times[1])
    expected = compute_metrics(
        ["TCE"], labels=samples.labels[rows], probabilities=samples.probabilities[rows]
    )
    assert found.replicates[0] == pytest.approx(expected["TCE"])


def kernel_error(labels, probabilities, unit, times, width):
    """The mean of h over pairs of different samples, copies of a sample or of its group never paired."""
    total = counted = 0.0
    for i in range(labels.size):
        for j in range(labels.size):
            if i == j:
                continue
            pairs = times[i] if unit[i] == unit[j] else times[i] * times[j]
            gaps = [np.eye(3)[labels[k]] - probabilities[k] for k in (i, j)]
            total += (
                pairs
                * np.exp(-np.linalg.norm(probabilities[i] - probabilities[j]) / width)
                * (gaps[0] @ gaps[1])
            )
            counted += pairs
    return total / counted


def kde_error(labels, probabilities, unit, times, width, *, is_centred=False):
    """The mean distance to the class shares nearby, where a group that was drawn twice does not see its copy."""
    from scipy.stats import dirichlet

    total = 0.0
    for i in range(labels.size):
        shares, mass = np.zeros(3), 0.0
        for j in range(labels.size):
            if i != j:
                seen = min(times[j], 1) if unit[i] == unit[j] else times[j]
                density = seen * dirichlet.pdf(
                    probabilities[i] / probabilities[i].sum(), probabilities[j] / width + 1
                )
                shares += density * (np.eye(3)[labels[j]] - is_centred * probabilities[j])
                mass += density
        total += times[i] * np.abs(shares / mass - (not is_centred) * probabilities[i]).sum()
    return total / times.sum()


@pytest.mark.parametrize("groups", [np.arange(12), np.arange(12) // 3])
def test_kernels_pair_no_copies(groups, monkeypatch):
    monkeypatch.setattr(density, "BANDWIDTHS", (0.1, 0.5))
    labels, probabilities = simulated(12, 3)
    times = np.array([1, 0, 2, 3, 1, 0, 1, 2, 0, 1, 1, 0])[groups]
    width = median_pairwise_distance(probabilities)
    skce = weighted_kernel_error(labels, probabilities, groups, Parameters(), seed=0)
    kde = weighted_ece_kde(labels, probabilities, groups, Parameters(bandwidth=0.1), seed=0)
    centred = weighted_ece_kde(labels, probabilities, groups, Parameters(), seed=0)
    np.testing.assert_allclose(
        skce(times[np.newaxis]), kernel_error(labels, probabilities, groups, times, width), rtol=1e-9
    )
    np.testing.assert_allclose(
        kde(times[np.newaxis]), kde_error(labels, probabilities, groups, times, 0.1), rtol=1e-5
    )
    width = leave_one_out_bandwidth(labels, probabilities, rng=np.random.default_rng([0, 1]))
    np.testing.assert_allclose(
        centred(times[np.newaxis]),
        kde_error(labels, probabilities, groups, times, width, is_centred=True),
        rtol=1e-5,
    )


@pytest.mark.parametrize(
    ("acronym", "weighted"), [("KCE", weighted_kernel_error), ("ECE_KDE", weighted_ece_kde)]
)
def test_kernels_look_at_the_subsample_of_the_estimate(acronym, weighted):
    labels, probabilities = simulated(200, 3)
    chosen = Parameters(subsample=50)
    found = weighted(labels, probabilities, np.arange(200), chosen, seed=7)(np.ones((1, 200), np.uint8))
    expected = compute_metrics([acronym], labels=labels, probabilities=probabilities, subsample=50, rng=7)
    np.testing.assert_allclose(found, [expected[acronym]], rtol=1e-6)
    assert acronym in expected.standard_errors


@pytest.mark.parametrize("prevalence", [None, (0.2, 0.5, 0.3)])
def test_the_calibration_loss_of_resampled_data_keeps_the_recalibrations(prevalence):
    labels, probabilities = simulated(120, 3)
    parameters = {} if prevalence is None else {"prevalence": prevalence}
    recipe = recipe_of("ECCL", {"costs": ((0, 1, 2), (5, 0, 1), (20, 3, 0)), **parameters})
    samples = Samples.of(labels, ModelOutputs(probabilities=probabilities), classes=3)
    resamples = Resamples.draw(samples.unit, replicates=9, seed=0)
    costs = np.array(recipe.costs, dtype=float)
    expected = ec_calibration_loss(labels, probabilities, costs, prevalence=prevalence, rng=3)
    gains = cost_gains(
        labels,
        probabilities,
        costs,
        np.arange(120),
        prevalence=None if prevalence is None else np.array(prevalence),
        rng=3,
    )
    found = resample_metric(recipe, samples, resamples, np.asarray(expected))
    rows = np.repeat(np.arange(120), resamples.times[9])
    drawn, again = labels[rows], gains[rows]
    shares = np.bincount(drawn) / drawn.size if prevalence is None else prevalence
    mean = sum(share * again[drawn == k].mean() for k, share in enumerate(shares))
    assert found.replicates[8] == pytest.approx(mean)
    assert compute_metrics(
        ["ECCL"], labels=labels, probabilities=probabilities, costs=costs, prevalence=prevalence, rng=3
    )["ECCL"] == pytest.approx(expected)


def test_the_calibration_loss_keeps_groups_in_one_fold():
    labels, probabilities = simulated(400, 2)
    groups = np.repeat(np.arange(20), 20)
    recipe = recipe_of("ECCL", {"costs": ((0, 1), (5, 0))})
    samples = Samples.of(labels, ModelOutputs(probabilities=probabilities), classes=2, groups=groups)
    resamples = Resamples.draw(samples.unit, replicates=9, seed=0)
    given = estimate_metric(recipe, samples).values
    found = resample_metric(recipe, samples, resamples, given)
    costs = [[0, 1], [5, 0]]
    expected = ec_calibration_loss(labels, probabilities, costs, groups=groups, rng=recipe.seed)
    assert found.estimate == pytest.approx(expected)
    assert found.estimate != pytest.approx(float(given))


def test_resampling_a_kernel_error_does_not_make_it_larger():
    """With copies as samples, the mean of the resampled errors of a calibrated model would be far above 0."""
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), 300)
    labels = np.array([rng.choice(3, p=row) for row in probabilities])
    weighted = weighted_kernel_error(labels, probabilities, np.arange(300), Parameters(), seed=0)
    resamples = Resamples.draw(np.arange(300), replicates=200, seed=0)
    found = resamples.split(resamples.values(weighted))
    assert abs(found.replicates.mean() - found.estimate) < found.replicates.std() / 3


def test_many_classes_are_counted_in_blocks():
    labels = np.arange(600) % 300
    samples = Samples.of(labels, ModelOutputs(decisions=np.where(labels % 7, labels, 0)), classes=300)
    resamples = Resamples.draw(samples.unit, replicates=9, seed=0)
    found = resample_metric(recipe_of("TPR", {}), samples, resamples, np.zeros(300)).replicates
    rows = np.repeat(np.arange(600), resamples.times[9])
    expected = compute_metrics(["TPR"], labels=labels[rows], decisions=samples.decisions[rows], classes=300)
    np.testing.assert_allclose(found[8], expected["TPR"])
