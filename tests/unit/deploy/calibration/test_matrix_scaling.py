"""Matrix scaling against a direct transcription of its objective, minimised by scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import log_softmax

from lifelong_core.deploy.calibration.matrix_scaling import (
    LARGEST_SQUARE,
    WEAK,
    Layout,
    LogitFeatures,
    MatrixProblem,
    Ridge,
    fit_matrix,
    inverse_hessian,
    refit_matrix,
)

shapes = pytest.mark.parametrize("matrix", [False, True])
squared = pytest.mark.parametrize("squares", [False, True])


def task(classes=3, samples=80, seed=0, *, matrix=True, squares=False, strength=2.0, biases=1.0):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=samples)])
    mixing = np.eye(classes) + 0.4 * rng.normal(size=(classes, classes))
    logits = (2 * np.eye(classes)[labels] + rng.normal(size=(labels.size, classes))) @ mixing
    features = LogitFeatures(2.0, squares).of(logits.astype(np.float32))
    ridge = Ridge(strength, biases, rng.normal(size=classes))
    return MatrixProblem(features, labels, Layout(classes, features.shape[1], matrix), ridge)


def objective(problem, weights, biases):
    """As the docstrings say it, term by term."""
    classes, samples = problem.layout.classes, problem.labels.size
    scores = problem.features @ weights.T + biases
    entropy = -log_softmax(scores, axis=1)[np.arange(samples), problem.labels].mean()
    penalty = WEAK * ((weights**2).sum() + (biases - problem.ridge.centre) @ (biases - problem.ridge.centre))
    for block in np.split(weights, problem.features.shape[1] // classes, axis=1):
        nearest = np.trace(block) / classes * np.eye(classes)
        penalty += problem.ridge.matrix * ((block - nearest) ** 2).sum()
    penalty += problem.ridge.biases * ((biases - problem.ridge.centre) ** 2).sum()
    return entropy + penalty / 2 / samples


@shapes
@squared
def test_the_loss_is_the_documented_one(matrix, squares):
    problem = task(matrix=matrix, squares=squares)
    parameters = np.random.default_rng(1).normal(size=problem.layout.size)
    assert problem.loss(parameters) == pytest.approx(
        objective(problem, *problem.layout.weights(parameters)), rel=1e-12
    )
    value, gradient = problem.loss_and_gradient(parameters)
    assert value == pytest.approx(problem.loss(parameters), rel=1e-12)
    assert gradient == pytest.approx(problem.derivatives(parameters)[0], abs=1e-14)


@squared
def test_many_classes_have_the_same_loss_and_gradient_in_little_memory(squares, monkeypatch):
    problem = task(matrix=False, squares=squares)
    parameters = np.random.default_rng(1).normal(size=problem.layout.size)
    monkeypatch.setattr("lifelong_core.deploy.calibration.matrix_scaling.MANY_CLASSES", 1)
    assert problem.is_large
    value, gradient = problem.loss_and_gradient(parameters)
    assert value == pytest.approx(problem.loss(parameters), rel=1e-12)
    assert gradient == pytest.approx(problem.derivatives(parameters)[0], abs=1e-14)


@shapes
@squared
def test_derivatives_are_those_of_the_loss(matrix, squares):
    problem = task(matrix=matrix, squares=squares)
    parameters = np.random.default_rng(1).normal(size=problem.layout.size)
    gradient, hessian = problem.derivatives(parameters)
    for axis in range(parameters.size):
        step = np.zeros(parameters.size)
        step[axis] = 1e-5
        slope = (problem.loss(parameters + step) - problem.loss(parameters - step)) / 2e-5
        assert gradient[axis] == pytest.approx(slope, abs=1e-8)
        bend = (problem.derivatives(parameters + step)[0] - problem.derivatives(parameters - step)[0]) / 2e-5
        assert hessian[axis] == pytest.approx(bend, abs=1e-8)
    assert inverse_hessian(problem, parameters) @ hessian == pytest.approx(np.eye(parameters.size), abs=1e-8)


@shapes
@squared
def test_products_and_totals_are_derivatives_of_weighted_scores(matrix, squares):
    problem = task(matrix=matrix, squares=squares)
    layout, rng = problem.layout, np.random.default_rng(2)
    values, parameters = rng.normal(size=(problem.labels.size, layout.classes)), rng.normal(size=layout.size)
    weights, biases = layout.weights(parameters)
    scores = layout.scores(parameters, problem.features)
    assert scores == pytest.approx(problem.features @ weights.T + biases, abs=1e-12)
    # Scores are linear in the parameters: derivatives times parameters are the scores again.
    products = layout.products(values, problem.features)
    assert products @ parameters == pytest.approx((values * scores).sum(axis=1), abs=1e-10)
    assert layout.total(values, problem.features) == pytest.approx(products.sum(axis=0), abs=1e-10)
    for k, row in enumerate(layout.totals(values, problem.features)):
        alone = np.where(np.arange(layout.classes) == k, values, 0.0)
        assert row == pytest.approx(layout.total(alone, problem.features), abs=1e-10)


@shapes
@squared
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_finds_what_scipy_finds(classes, matrix, squares):
    problem = task(classes, matrix=matrix, squares=squares, seed=classes)
    found = fit_matrix(problem)
    blocks, size = (2 if squares else 1), classes * classes

    def unpack(vector):
        if matrix:
            tables = vector[: blocks * size].reshape(blocks, classes, classes)
            return np.hstack(list(tables)), vector[blocks * size :]
        return np.hstack([scale * np.eye(classes) for scale in vector[:blocks]]), vector[blocks:]

    start = np.zeros((blocks * size if matrix else blocks) + classes)
    peer = optimize.minimize(
        lambda vector: objective(problem, *unpack(vector)), start, method="BFGS", options={"gtol": 1e-7}
    )
    assert problem.loss(found) <= peer.fun + 1e-12
    weights, biases = problem.layout.weights(found)
    assert weights == pytest.approx(unpack(peer.x)[0], abs=1e-3)
    assert biases == pytest.approx(unpack(peer.x)[1], abs=1e-3)


@shapes
def test_a_refit_from_a_similar_problem_finds_the_same(matrix):
    whole = task(4, 200, matrix=matrix, squares=True)
    start = fit_matrix(whole)
    rest = MatrixProblem(whole.features[40:], whole.labels[40:], whole.layout, whole.ridge)
    expected = fit_matrix(rest)
    assert np.abs(expected - start).max() > 1e-3
    for inverse in (inverse_hessian(whole, start), 1e6 * np.eye(start.size)):
        assert refit_matrix(rest, start, inverse, 1e-16) == pytest.approx(expected, abs=1e-6)


def test_a_strong_ridge_leaves_one_temperature_and_the_centre():
    problem = task(4, 200, strength=1e8, biases=1e8)
    weights, biases = problem.layout.weights(fit_matrix(problem))
    assert weights == pytest.approx(weights[0, 0] * np.eye(4), abs=1e-5)
    assert biases == pytest.approx(problem.ridge.centre, abs=1e-5)
    loose = task(4, 200, strength=0.1, biases=0.1)
    weights, biases = loose.layout.weights(fit_matrix(loose))
    assert np.abs(weights - weights[0, 0] * np.eye(4)).max() > 0.3
    assert np.abs(biases - loose.ridge.centre).max() > 0.3


@shapes
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_separable_data_have_a_bounded_solution(matrix, scale):
    labels = np.tile(np.arange(3), 30)
    logits = (scale * (10 * np.eye(3)[labels] + np.random.default_rng(0).normal(size=(90, 3)))).astype(
        np.float32
    )
    features = LogitFeatures(6.0 * scale, squares=True).of(logits)
    problem = MatrixProblem(features, labels, Layout(3, 6, matrix), Ridge(0.3, 0.0, np.zeros(3)))
    found = fit_matrix(problem)
    assert np.abs(found).max() < 100
    assert problem.loss(found) < 0.01


@given(seed=st.integers(0, 10_000), classes=st.sampled_from([2, 3, 5]), matrix=st.booleans())
def test_permuting_the_classes_permutes_the_solution(seed, classes, matrix):
    problem = task(classes, seed=seed, matrix=matrix, squares=True)
    order = np.random.default_rng(seed).permutation(classes)
    columns = np.concatenate([order, classes + order])
    renamed = MatrixProblem(
        problem.features[:, columns],
        np.argsort(order)[problem.labels],
        problem.layout,
        Ridge(problem.ridge.matrix, problem.ridge.biases, problem.ridge.centre[order]),
    )
    one, other = problem.layout.weights(fit_matrix(problem)), renamed.layout.weights(fit_matrix(renamed))
    assert other[0] == pytest.approx(one[0][order][:, columns], abs=1e-6)
    assert other[1] == pytest.approx(one[1][order], abs=1e-6)


def test_features_ignore_a_constant_and_clip_squares():
    logits = np.array([[1.0, -1.0, 0.0], [300.0, -300.0, 0.0]], dtype=np.float32)
    features = LogitFeatures(2.0, squares=True)
    values = features.of(logits)
    assert values[0].tolist() == [0.5, -0.5, 0.0, 0.25, 0.25, 0.0]
    assert values[1].tolist() == [150.0, -150.0, 0.0, LARGEST_SQUARE, LARGEST_SQUARE, 0.0]
    assert features.of(logits + np.float32(8)).tolist() == values.tolist()
    assert LogitFeatures(2.0, squares=False).of(logits).tolist() == values[:, :3].tolist()
