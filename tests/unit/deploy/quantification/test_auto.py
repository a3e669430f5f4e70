"""auto on populations where affine calibration does not fit, its influences against refits, and its edges."""

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, quantifier
from lifelong_core.deploy.calibration.choice import fit_calibration
from lifelong_core.deploy.calibration.matrix_scaling import Layout, LogitFeatures, MatrixProblem, Ridge
from lifelong_core.deploy.numerics.simplex import mixture_weights, smooth
from lifelong_core.deploy.quantification.uncertainty import Influence

NOISE = np.array([[1.0, 1.6, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 1.0]])
"""Correlated noise: the posterior needs a matrix."""


def draw(rng, labels):
    return (1.7 * np.eye(3)[labels] + rng.normal(size=(labels.size, 3)) @ NOISE).astype(np.float32)


def calibrated(rng, counts):
    labels = rng.permutation(np.repeat([0, 1, 2], counts))
    return LabeledLogits(draw(rng, labels), labels)


def window(rng, prevalence, size):
    return draw(rng, rng.choice(3, size=size, p=prevalence))


def test_beats_affine_maximum_likelihood_where_a_matrix_is_needed():
    rng = np.random.default_rng(0)
    calibration, errors = calibrated(rng, [700, 700, 700]), []
    auto, mlls = (quantifier(name).fit(calibration) for name in ("auto", "MLLS"))
    assert auto._calibration_model.problem.layout.matrix
    for _ in range(12):
        truth = rng.dirichlet(np.ones(3))
        rows = window(rng, truth, 4000)
        errors.append([np.abs(each.prevalence(rows) - truth).sum() for each in (auto, mlls)])
    mean = np.mean(errors, axis=0)
    assert mean[0] < 0.8 * mean[1]


def test_the_partner_mends_what_no_calibration_of_ours_can():
    """Within each class the logits are a mix of two far modes; no candidate has that posterior.

    PACC on the posteriors stays consistent, and so the average is nearer than the likelihood alone.
    """
    rng = np.random.default_rng(1)

    def bimodal(labels):
        mode = rng.uniform(size=labels.size) < np.where(labels == 1, 0.5, 0.2)
        margin = (
            np.where(labels == 1, 0.7, -0.7) + np.where(mode, -3.0, 3.0) + rng.normal(size=labels.size) / 2
        )
        return np.column_stack([-margin, margin]).astype(np.float32)

    labels = rng.permutation(np.repeat([0, 1], 4000))
    auto = quantifier("auto").fit(LabeledLogits(bimodal(labels), labels))
    errors = []
    for share in (0.05, 0.2, 0.8, 0.95):
        rows = bimodal((rng.uniform(size=20_000) < share).astype(int))
        likely, partner = auto._solutions(auto._features(rows), np.ones(len(rows)))
        errors.append([abs(each[1] - share) for each in (likely, auto.prevalence(rows), partner)])
    likely, average, partner = np.mean(errors, axis=0)
    assert partner < 0.5 * likely
    assert average < 0.8 * likely


def test_equal_rows_may_be_counted_instead_of_repeated():
    rng = np.random.default_rng(2)
    auto = quantifier("auto").fit(calibrated(rng, [90, 60, 50]))
    rows, counts = window(rng, [0.6, 0.3, 0.1], 150), rng.integers(1, 5, size=150).astype(float)
    features = auto._features(rows)
    repeated = np.repeat(features, counts.astype(int), axis=0)
    ones = np.ones(len(repeated))
    solution = auto._solve(features, counts)
    assert solution == pytest.approx(auto._solve(repeated, ones), abs=1e-9)
    one = auto._influence(features, counts, smooth(solution, counts.sum()))
    other = auto._influence(repeated, ones, smooth(solution, counts.sum()))
    assert np.repeat(one.window, counts.astype(int), axis=0) == pytest.approx(other.window, abs=1e-8)
    assert one.calibration == pytest.approx(other.calibration, abs=1e-8)
    second, peer = (auto._second_solution(*pair, solution) for pair in ((features, counts), (repeated, ones)))
    assert second == pytest.approx(peer, abs=1e-9)


def test_window_influences_are_the_slopes_of_the_estimate():
    """Finite differences in the count of one row; pseudo-samples and prior are small beside 4,000."""
    rng = np.random.default_rng(3)
    auto = quantifier("auto").fit(calibrated(rng, [200, 200, 200]))
    features, counts = auto._features(window(rng, [0.5, 0.3, 0.2], 4000)), np.ones(4000)
    solution = auto._solve(features, counts)
    influence = auto._influence(features, counts, smooth(solution, 4000)).window
    slopes = []
    for row in range(40):
        more = counts.copy()
        more[row] += 20
        slopes.append((auto._solve(features, more) - solution) * 4020 / 20)
    assert np.abs(influence[:40]).mean() > 0.3
    assert influence[:40] - influence.mean(axis=0) == pytest.approx(np.array(slopes), abs=0.05)


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("matrix", [False, True])
def test_calibration_influences_are_what_leaving_a_sample_out_does(matrix, squares):
    """Through the calibration to the likelihood: the calibration is fitted again without each of 60 samples."""
    rng = np.random.default_rng(4)
    data = calibrated(rng, [80, 80, 80])
    features = LogitFeatures(2.0, squares)
    layout, ridge = Layout(3, 6 if squares else 3, matrix), Ridge(3.0, 1.0, np.zeros(3))
    problem = MatrixProblem(features.of(data.logits), data.labels, layout, ridge)
    folds = np.arange(data.samples) % 5
    auto = quantifier("auto").fit(data)
    auto._calibration_model = model = fit_calibration(features, problem, folds, None, precision=1e-14)
    auto._own = auto._features(data.logits)
    logits = window(rng, [0.5, 0.3, 0.2], 3000)

    def likely(parameters):
        scores = layout.scores(parameters, features.of(logits)) - np.log(data.prevalence)
        return mixture_weights(np.exp(scores), np.ones(3000), np.full(3, 1 / 3))

    solution, rows = likely(model.parameters), auto._features(logits)
    linear = auto._linearise(rows, np.ones(3000), smooth(solution, 3000))
    influence = auto._fitted_influence(linear, auto._inputs(np.vstack([rows, auto._own])))
    changes, claims = [], []
    for left_out in range(60):
        kept = np.arange(data.samples) != left_out
        part = MatrixProblem(problem.features[kept], data.labels[kept], layout, ridge)
        refitted = fit_calibration(features, part, np.zeros(kept.sum(), dtype=int), model)
        changes.append(likely(refitted.parameters) - solution)
        claims.append(-influence[left_out] / data.counts[data.labels[left_out]])
    changes, claims = np.ravel(changes), np.ravel(claims)
    assert np.corrcoef(changes, claims)[0, 1] > 0.97
    assert (changes @ claims) / (claims @ claims) == pytest.approx(1, abs=0.15)


def test_intervals_count_the_whole_difference_of_the_two_solutions():
    rng = np.random.default_rng(12)
    auto, rows = quantifier("auto").fit(calibrated(rng, [90, 60, 50])), window(rng, [0.1, 0.2, 0.7], 400)
    likely, partner = auto._solutions(auto._features(rows), np.ones(400))
    assert np.abs(partner - likely).max() > 0.005
    assert auto.analyse(rows).doubt == pytest.approx(np.outer(partner - likely, partner - likely), abs=1e-12)


def coverage(estimate, truth):
    return ((estimate.low <= truth) & (truth <= estimate.high)).mean()


def test_intervals_cover_only_because_they_count_the_calibration_set():
    """450 intervals over redrawn calibration sets; the control leaves the calibration set's part out."""
    rng, covered, uncovered = np.random.default_rng(5), [], []
    for _ in range(50):
        auto = quantifier("auto").fit(calibrated(rng, [40, 40, 40]))
        for _ in range(3):
            truth = rng.dirichlet(np.ones(3))
            analysis = auto.analyse(window(rng, truth, 1500))
            covered.append(coverage(analysis.estimate, truth))
            influence = analysis.influence
            own = analysis.spread(
                Influence(influence.window, influence.pseudo, np.zeros_like(influence.calibration))
            )
            reach = 1.96 * np.sqrt(np.diag(own.covariance))
            uncovered.append((np.abs(analysis.estimate.prevalence - truth) <= reach).mean())
    assert 0.9 < np.mean(covered) < 0.99
    assert np.mean(uncovered) < 0.75


def test_copied_calibration_patients_count_once():
    """Beside 10,000 window samples the calibration set makes nearly all of the sampling error."""
    rng = np.random.default_rng(6)
    data, rows = calibrated(rng, [60, 60, 60]), np.repeat(np.arange(180), 4)
    copies = LabeledLogits(data.logits[rows], data.labels[rows], rows)
    large, errors = window(rng, [0.6, 0.3, 0.1], 10_000), []
    for each in (data, copies, LabeledLogits(copies.logits, copies.labels)):
        analysis = quantifier("auto").fit(each).analyse(large)
        errors.append(np.sqrt(np.diag(analysis.spread(analysis.influence).covariance)).mean())
    alone, grouped, naive = errors
    assert grouped == pytest.approx(alone, rel=0.35)
    assert naive < 0.7 * grouped


def test_a_constant_per_row_changes_nothing():
    """Logits are multiples of 1/64, so that float32 holds them with the constants exactly."""
    rng = np.random.default_rng(7)
    labels = rng.permutation(np.repeat([0, 1, 2], 100))
    data = LabeledLogits(np.round(draw(rng, labels) * 64) / 64, labels)
    rows = np.round(window(rng, [0.5, 0.3, 0.2], 200) * 64) / 64
    shifted = LabeledLogits(data.logits + rng.integers(-512, 512, size=(300, 1)), labels)
    expected = quantifier("auto").fit(data).prevalence(rows)
    moved = quantifier("auto").fit(shifted).prevalence(rows + rng.integers(-512, 512, size=(200, 1)))
    assert moved == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    "counts",
    [[1, 1, 1], [2, 2, 2], [1, 200, 200], [2, 3, 400], [40, 40, 40]],
    ids=lambda counts: "-".join(map(str, counts)),
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_scarce_classes_and_extreme_logits(counts, scale):
    rng = np.random.default_rng(8)
    data = calibrated(rng, counts)
    auto = quantifier("auto").fit(LabeledLogits(data.logits * np.float32(scale), data.labels))
    rows = window(rng, [0.2, 0.4, 0.4], 60) * np.float32(scale)
    for part in (rows, rows[:1]):
        estimate = auto.estimate(part)
        assert estimate.prevalence.sum() == pytest.approx(1)
        assert (estimate.low <= estimate.prevalence).all()
        assert (estimate.prevalence <= estimate.high).all()
    if min(counts) == 1 or scale != 1.0:
        return
    assert (auto.estimate(rows).high - auto.estimate(rows).low).max() <= 1


def test_a_set_without_folds_is_named():
    rng = np.random.default_rng(11)
    assert quantifier("auto").fit(calibrated(rng, [140, 30, 30])).cautions == ()
    rare, alone = quantifier("auto").fit(calibrated(rng, [140, 60, 1])).cautions
    assert "class 2" in rare
    assert "single calibration sample" in alone


def test_one_wild_row_in_the_calibration_set_or_the_window_does_not_decide():
    rng = np.random.default_rng(9)
    data, rows = calibrated(rng, [200, 200, 200]), window(rng, [0.5, 0.3, 0.2], 1000)
    expected = quantifier("auto").fit(data).prevalence(rows)
    wild = data.logits.copy()
    wild[0] *= 1e4
    assert quantifier("auto").fit(LabeledLogits(wild, data.labels)).prevalence(rows) == pytest.approx(
        expected, abs=0.1
    )
    odd = rows.copy()
    odd[0] *= 1e4
    assert quantifier("auto").fit(data).prevalence(odd) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("task", "samples"),
    [("lapgyn4_surgical_actions", 400), ("cifar10_resnet50", 400), ("cifar10_resnet50", 5000)],
)
def test_is_nearer_than_the_best_single_method_on_real_logits(shared_logits, task, samples):
    data, rng, errors = shared_logits(task), np.random.default_rng(10), []
    for _ in range(1 if samples == data.calibration.samples else 4):
        calibration = data.calibration.select(rng.permutation(data.calibration.samples)[:samples])
        fitted = [quantifier(name).fit(calibration) for name in ("auto", "MLLS", "PACC", "ACC")]
        members = [np.flatnonzero(data.deployment.labels == k) for k in range(data.deployment.classes)]
        for _ in range(10):
            labels = rng.choice(len(members), size=1000, p=rng.dirichlet(np.ones(len(members))))
            rows = data.deployment.logits[[rng.choice(members[k]) for k in labels]]
            shares = np.bincount(labels, minlength=len(members)) / 1000
            errors.append([np.abs(each.prevalence(rows) - shares).sum() for each in fitted])
    auto, *others = np.mean(errors, axis=0)
    assert auto < 0.95 * min(others)
