"""Smooth, convex problems in a box: a damped Newton method for small ones, gradients for large ones."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.arrays import Floats, Integers, Logits, centre_rows
from lifelong_core.values.scientific import bounded_least_squares, cholesky, smooth_minimum, solve

MAXIMUM_STEPS = 500
_MOST_SCALES = 5
_SUFFICIENT = 1e-4
_PRECISION = 1e-15
_NOTHING = 1e-11


class ConvexProblem(Protocol):
    """Convex function with two derivatives, to be minimised."""

    def loss(self, parameters: Floats) -> float:
        """Loss at these parameters, shape (P,)."""
        ...

    def derivatives(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Gradient (P,) and Hessian (P, P), positive semi-definite."""
        ...


class LargeProblem(Protocol):
    """Convex function of many parameters, to be minimised without its Hessian."""

    def loss_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """Loss and gradient (P,)."""
        ...

    def curvature(self, parameters: Floats) -> Floats:
        """Diagonal of the Hessian, or about it, shape (P,), not negative."""
        ...


def minimize_large(
    problem: LargeProblem, start: Floats, lower: Floats, upper: Floats, precision: float = 1e-10
) -> Floats:
    """Minimise like `minimize_convex`, in time that grows with the parameters, not with their square or cube.

    The parameters are scaled to unit curvature, anew at each solution. The method ends when steps along all parameters
    together promise less than `precision`: a start at a solution is returned as it is.
    """
    point, largest = np.clip(start, lower, upper), float(np.sqrt(precision / start.size))
    for _ in range(_MOST_SCALES):
        curvature = problem.curvature(point)
        scale = 1 / np.sqrt(np.maximum(curvature, 1e-9 * max(float(curvature.max()), 1e-9)))

        def scaled(place: Floats, scale: Floats = scale) -> tuple[float, Floats]:
            value, gradient = problem.loss_and_gradient(place * scale)
            return value, gradient * scale

        found, moved = smooth_minimum(scaled, point / scale, lower / scale, upper / scale, largest)
        if not moved:
            break
        point = np.clip(found * scale, lower, upper)
    return point


def minimize_convex(problem: ConvexProblem, start: Floats, lower: Floats, upper: Floats) -> Floats:
    """Minimise a loss that is not negative over the box lower..upper; return the parameters, shape (P,).

    Each step goes to the minimum of the quadratic model in the box, shortened until the loss falls enough. The
    method ends when a step promises less than the rounding error of the loss, when no step lowers the loss any
    more, or when the loss is below 1e-11.

    Five to twenty steps are usual. The limit of 500 was reached only by data that are separable but for one
    row with logits ten thousand times the others', with a temperature per class; the loss was then below
    1e-7.
    """
    point = np.clip(start, lower, upper)
    value = problem.loss(point)
    for _ in range(MAXIMUM_STEPS):
        gradient, hessian = problem.derivatives(point)
        step = _newton_step(gradient, hessian, lower - point, upper - point)
        slope = float(gradient @ step)
        if value <= _NOTHING or -slope <= _PRECISION * (1 + value):
            break
        moved, reached = _line_search(problem, point, value, step, slope)
        if moved is None:
            break
        point, value = np.clip(moved, lower, upper), reached
    return point


def _newton_step(gradient: Floats, hessian: Floats, lower: Floats, upper: Floats) -> Floats:
    """Minimise g.d + d.H.d / 2 over lower <= d <= upper; H gets the smallest damping that makes it positive
    definite.
    """
    # A little damping from the start: along directions that change nothing the step is 0, not rounding noise.
    # It is relative to each parameter's own curvature, because these differ by many orders of magnitude.
    curvature = np.diag(hessian)
    scale = np.maximum(curvature, max(1e-16 * float(curvature.max()), 1e-24))
    damping = 1e-13
    while True:
        try:
            factor = cholesky(hessian + np.diag(damping * scale))
            break
        except np.linalg.LinAlgError:
            damping *= 10
    target = -solve(factor, gradient)
    step = solve(factor.T, target)
    if ((step >= lower) & (step <= upper)).all():
        return step
    return bounded_least_squares(factor.T, target, np.minimum(lower, 0), np.maximum(upper, 0))


def _line_search(
    problem: ConvexProblem, point: Floats, value: float, step: Floats, slope: float
) -> tuple[Floats | None, float]:
    """First of the step, its half, its quarter, ... that lowers the loss enough; None: there is none."""
    length = 1.0
    while length > 1e-12:
        moved = point + length * step
        reached = problem.loss(moved)
        if reached < value and reached <= value + _SUFFICIENT * length * slope:
            return moved, reached
        length /= 2
    return None, value


def affine_scores(logits: Logits, temperature: float | Floats, bias: Floats) -> Floats:
    """Centred logits divided by the temperature, plus the bias, shape (N, C), float64.

    Centring matters only where the temperature differs between classes: it makes the result ignore a row's
    constant.
    """
    return centre_rows(logits) / temperature + bias


def one_hot(labels: np.ndarray, classes: int) -> Floats:
    """One-hot rows of labels, shape (N, C): 1 in the column of the row's label, else 0."""
    return (labels[:, np.newaxis] == np.arange(classes)).astype(np.float64)


def sort_into_runs(member: Integers | NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order that puts the rows of each member index together, (N,), and the start of each run in it."""
    order = np.argsort(member, kind="stable")
    return order, np.flatnonzero(np.diff(member[order], prepend=-1))


def member_sums(values: Floats, member: Integers | NDArray[np.intp]) -> Floats:
    """Sum of the rows of each member index 0, 1, ..., without gaps; shape (members, ...)."""
    if member.size == 0:
        return values
    order, first = sort_into_runs(member)
    return np.add.reduceat(values[order], first, axis=0)
