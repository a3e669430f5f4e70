from dataclasses import dataclass

import numpy as np
import pytest

from lifelong_core.deploy.calibration.cross_entropy import AffineProblem
from lifelong_core.deploy.numerics.newton import minimize_convex, minimize_large


@dataclass
class Bowl:
    """|A (x - centre)|^2 / 2."""

    matrix: np.ndarray
    centre: np.ndarray

    def loss(self, parameters):
        return float(np.sum((self.matrix @ (parameters - self.centre)) ** 2)) / 2

    def derivatives(self, parameters):
        square = self.matrix.T @ self.matrix
        return square @ (parameters - self.centre), square


def test_finds_the_bottom_inside_the_box():
    bowl = Bowl(np.array([[2.0, 1.0], [0.0, 1e-3]]), np.array([0.3, -0.7]))
    box = np.full(2, 5.0)
    assert minimize_convex(bowl, np.zeros(2), -box, box) == pytest.approx([0.3, -0.7], abs=1e-3)


def test_stops_at_the_best_point_of_the_wall_not_at_the_nearest():
    """Clipping the unbounded optimum (2, 0) to the box gives (1, 0), which is not the best point of the wall."""
    bowl = Bowl(np.array([[1.0, 1.0], [0.0, 0.5]]), np.array([2.0, 0.0]))
    found = minimize_convex(bowl, np.zeros(2), np.array([-1.0, -9]), np.array([1.0, 9]))
    # Along x = 1: minimise (-1 + y)^2 + y^2 / 4.
    assert found == pytest.approx([1.0, 0.8], abs=1e-6)


def test_starts_outside_the_box_at_its_edge():
    bowl = Bowl(np.eye(1), np.array([0.0]))
    assert minimize_convex(bowl, np.array([50.0]), np.array([1.0]), np.array([2.0])) == pytest.approx([1.0])


class Indefinite(Bowl):
    """Its Hessian was made slightly indefinite by rounding, as happens where curvatures differ by many orders."""

    def derivatives(self, parameters):
        gradient, hessian = super().derivatives(parameters)
        return gradient, hessian - 1e-9 * np.eye(gradient.size)


class Coarse(Bowl):
    """Its loss is so coarse that near the bottom no step lowers it."""

    def loss(self, parameters):
        return 1 + np.ceil(100 * super().loss(parameters)) / 100


def test_a_hessian_that_is_indefinite_by_rounding_does_no_harm():
    bowl = Indefinite(np.array([[1.0, 1.0]]), np.array([1.0, 2.0]))
    found = minimize_convex(bowl, np.zeros(2), np.full(2, -9.0), np.full(2, 9.0))
    assert found.sum() == pytest.approx(3.0, abs=1e-4)


def test_ends_where_no_step_lowers_the_loss():
    found = minimize_convex(
        Coarse(np.eye(1), np.array([0.5])), np.zeros(1), np.full(1, -9.0), np.full(1, 9.0)
    )
    assert found == pytest.approx([0.5], abs=0.15)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_derivatives_of_the_cross_entropy_are_those_of_its_values(bias, per_class):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    problem = AffineProblem(
        rows - rows.mean(axis=1, keepdims=True),
        rng.integers(3, size=30),
        rng.uniform(0.5, 2, size=30),
        bias=bias,
        per_class_temperature=per_class,
        scale=1.7,
    )
    point = problem.start() + 0.1 * rng.normal(size=problem.start().size)
    if bias:
        point[-3:] -= point[-3:].mean()
    gradient, hessian = problem.derivatives(point)
    steps = 1e-5 * np.eye(point.size)
    numeric = [(problem.loss(point + h) - problem.loss(point - h)) / 2e-5 for h in steps]
    assert gradient == pytest.approx(numeric, abs=1e-8)
    columns = [(problem.derivatives(point + h)[0] - problem.derivatives(point - h)[0]) / 2e-5 for h in steps]
    gauge = np.zeros_like(hessian)
    if bias:
        gauge[-3:, -3:] = 1 / 3
    assert hessian - gauge == pytest.approx(np.array(columns), abs=1e-8)
    shares = problem.weights[:, np.newaxis]
    assert (problem.sample_gradients(point) * shares).sum(axis=0) == pytest.approx(gradient, abs=1e-12)


def test_gradients_reach_the_optimum_of_newtons_method_and_stay_there():
    rng = np.random.default_rng(3)
    labels = rng.integers(7, size=400)
    rows = 3 * np.eye(7)[labels] + rng.normal(size=(400, 7))
    problem = AffineProblem(
        rows, labels, rng.uniform(0.1, 2, 400), bias=True, per_class_temperature=False, scale=2.0
    )
    box = problem.bounds(1e-6, 1e3)
    expected = problem.unpack(minimize_convex(problem, problem.start(), *box))
    found = minimize_large(problem, problem.start(), *box)
    for one, other in zip(problem.unpack(found), expected, strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    assert problem.loss(found) == pytest.approx(problem.loss_and_gradient(found)[0])
    elsewhere = rng.normal(size=found.size)
    assert problem.loss_and_gradient(elsewhere)[1] == pytest.approx(problem.derivatives(elsewhere)[0])
    assert minimize_large(problem, found, *box).tolist() == found.tolist()
    tight = np.concatenate([[0.1], np.full(7, -np.inf)]), np.concatenate([[0.2], np.full(7, np.inf)])
    assert minimize_large(problem, problem.start(), *tight)[0] == pytest.approx(0.2)
