import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from lifelong_core.deploy.numerics.simplex import (
    mixture_weights,
    non_negative_minimum,
    simplex_least_squares,
    tangent_basis,
)


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_the_basis_is_orthonormal_and_sums_to_zero(classes):
    basis = tangent_basis(classes)
    assert basis.shape == (classes, classes - 1)
    assert basis.T @ basis == pytest.approx(np.eye(classes - 1), abs=1e-12)
    assert basis.sum(axis=0) == pytest.approx(0, abs=1e-12)


def best_by_enumeration(matrix, target):
    """The optimum of least squares on the simplex: try every face."""
    classes = matrix.shape[1]
    best, value = None, np.inf
    for size in range(1, classes + 1):
        for face in itertools.combinations(range(classes), size):
            columns = matrix[:, face]
            system = np.block(
                [[columns.T @ columns, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]]
            )
            solution = np.linalg.lstsq(system, np.r_[columns.T @ target, 1], rcond=None)[0][:size]
            residual = np.linalg.norm(columns @ solution - target)
            if (solution >= -1e-10).all() and residual < value - 1e-12:
                best, value = np.zeros(classes), residual
                best[list(face)] = solution
    return best


@given(seed=st.integers(0, 10_000), classes=st.integers(2, 5), rows=st.integers(0, 3))
def test_least_squares_finds_the_best_face(seed, classes, rows):
    rng = np.random.default_rng(seed)
    matrix, target = rng.normal(size=(classes + rows, classes)), rng.normal(size=classes + rows)
    found = simplex_least_squares(matrix, target)
    assert found.sum() == pytest.approx(1)
    assert found.min() >= 0
    assert found == pytest.approx(best_by_enumeration(matrix, target), abs=1e-7)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_least_squares_solves_a_solvable_system_at_any_scale(scale):
    rng = np.random.default_rng(0)
    matrix, truth = rng.dirichlet(np.ones(6), size=6).T, rng.dirichlet(np.ones(6))
    assert simplex_least_squares(scale * matrix, scale * matrix @ truth) == pytest.approx(truth, abs=1e-9)


def likelihood(densities, counts, weights):
    return float(counts @ np.log(densities @ weights))


@given(seed=st.integers(0, 10_000), classes=st.sampled_from([2, 3, 8]), samples=st.sampled_from([1, 3, 200]))
def test_mixture_weights_satisfy_the_optimality_conditions(seed, classes, samples):
    """Mean ratio 1 where the weight is positive, at most 1 where it is zero: sufficient, as the problem is concave."""
    rng = np.random.default_rng(seed)
    densities = rng.gamma(0.3, size=(samples, classes)) + 1e-12
    counts = rng.integers(1, 5, size=samples).astype(float)
    weights = mixture_weights(densities, counts, np.full(classes, 1 / classes))
    means = counts / counts.sum() @ (densities / (densities @ weights)[:, np.newaxis])
    assert weights.sum() == pytest.approx(1)
    assert means.max() <= 1 + 1e-6
    assert weights @ means == pytest.approx(1)


@given(seed=st.integers(0, 10_000), confidence=st.sampled_from([1.0, 30.0, 1000.0]))
def test_mixture_weights_of_an_over_confident_model(seed, confidence):
    """Densities over hundreds of orders of magnitude: a class set to 0 too early could never come back."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(5, size=200, p=rng.dirichlet(np.ones(5)))
    scores = confidence * (np.eye(5)[labels] + rng.normal(size=(200, 5)))
    densities = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = mixture_weights(densities, np.ones(200), np.array([0.9, 0.07, 0.01, 0.01, 0.01]))
    assert (densities / (densities @ weights)[:, np.newaxis]).mean(axis=0).max() <= 1 + 1e-5


def test_mixture_weights_beat_a_general_optimiser():
    rng = np.random.default_rng(3)
    densities, counts = rng.gamma(0.5, size=(300, 6)), np.ones(300)
    ours = mixture_weights(densities, counts, np.full(6, 1 / 6))
    theirs = optimize.minimize(
        lambda weights: -likelihood(densities, counts, weights),
        np.full(6, 1 / 6),
        method="SLSQP",
        bounds=[(1e-12, 1)] * 6,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert likelihood(densities, counts, ours) >= -theirs.fun - 1e-8
    assert ours == pytest.approx(theirs.x, abs=1e-4)


def test_mixture_weights_ignore_the_scale_of_a_row():
    rng = np.random.default_rng(4)
    densities = rng.gamma(0.5, size=(100, 4))
    scaled = densities * 10 ** rng.uniform(-100, 100, size=(100, 1))
    start, counts = np.full(4, 0.25), np.ones(100)
    assert mixture_weights(scaled, counts, start) == pytest.approx(
        mixture_weights(densities, counts, start), abs=1e-6
    )


def test_mixture_weights_of_classes_that_look_alike_are_found_at_all():
    """Two equal columns: any split of their sum is optimal, and the Hessian singular."""
    rng = np.random.default_rng(5)
    densities = rng.gamma(0.5, size=(100, 2))[:, [0, 1, 1]]
    weights = mixture_weights(densities, np.ones(100), np.full(3, 1 / 3))
    pair = mixture_weights(densities[:, :2], np.ones(100), np.full(2, 1 / 2))
    assert weights[0] == pytest.approx(pair[0], abs=1e-6)


def test_mixture_weights_may_vanish_unless_a_sample_needs_the_class():
    start = np.full(2, 0.5)
    assert mixture_weights(np.array([[1.0, 0.0]] * 9), np.ones(9), start).tolist() == pytest.approx([1, 0])
    needed = np.array([[1.0, 0.0]] * 9 + [[0.0, 1.0]])
    assert mixture_weights(needed, np.ones(10), start) == pytest.approx([0.9, 0.1])


def test_guessed_active_sets_give_the_exact_minimum_of_many_classes():
    rng = np.random.default_rng(6)
    matrix, linear = rng.normal(size=(90, 60)), rng.normal(size=60)
    hessian = matrix.T @ matrix / 90
    found = non_negative_minimum(hessian, linear)
    slopes = hessian @ found - linear
    assert (found >= 0).all()
    assert 0 < (found > 0).sum() < 60
    assert slopes[found > 0] == pytest.approx(0, abs=1e-8)
    assert (slopes[found == 0] > 0).all()


def test_mixture_weights_of_many_classes_are_optimal():
    rng = np.random.default_rng(7)
    densities = rng.gamma(0.3, size=(400, 60))
    found = mixture_weights(densities, np.ones(400), np.full(60, 1 / 60))
    ratios = (densities / (densities @ found)[:, np.newaxis]).mean(axis=0)
    assert ratios[found > 1e-9] == pytest.approx(1, abs=1e-6)
    assert ratios.max() < 1 + 1e-6
