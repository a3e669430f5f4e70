"""A damped Newton method for small, smooth, convex problems in a box."""

from typing import Protocol

import numpy as np

from lifelong_core.arrays import Floats

MAXIMUM_STEPS = 500
_SUFFICIENT = 1e-4
_PRECISION = 1e-15


class ConvexProblem(Protocol):
    """What is minimised: a convex function with two derivatives."""

    def loss(self, parameters: Floats) -> float:
        """Value at these parameters, shape (P,)."""
        ...

    def derivatives(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Gradient (P,) and Hessian (P, P), positive semi-definite."""
        ...


def minimize_convex(problem: ConvexProblem, start: Floats, lower: Floats, upper: Floats) -> Floats:
    """The parameters with the smallest loss in the box lower..upper, shape (P,).

    Projected Newton method (Bertsekas 1982): parameters at a bound that want to leave the box are held, the
    others take a Newton step, shortened until the loss falls enough. It ends when a step promises less than
    the rounding error of the loss, or when no step lowers the loss any more, which is the same seen from the
    other side.

    Raises:
        ArithmeticError: no end after 500 steps, which no convex problem we know of comes near.
    """
    point = np.clip(start, lower, upper)
    value = problem.loss(point)
    for _ in range(MAXIMUM_STEPS):
        gradient, hessian = problem.derivatives(point)
        held = ((point <= lower) & (gradient > 0)) | ((point >= upper) & (gradient < 0))
        step = _newton_step(gradient, hessian, ~held)
        promise = -float(gradient @ step)
        if promise <= _PRECISION * (1 + abs(value)):
            return point
        moved, reached = _line_search(problem, point, value, step, gradient, lower, upper)
        if moved is None:
            return point
        point, value = moved, reached
    raise ArithmeticError(f"no optimum after {MAXIMUM_STEPS} Newton steps")


def _newton_step(gradient: Floats, hessian: Floats, free: np.ndarray) -> Floats:
    """-H^-1 g over the free parameters; damped as little as makes H numerically positive definite."""
    step = np.zeros_like(gradient)
    if not free.any():
        return step
    matrix = hessian[np.ix_(free, free)]
    scale = max(float(np.abs(np.diag(matrix)).max()), np.finfo(np.float64).tiny)
    damping = 0.0
    while True:
        try:
            damped = matrix + damping * np.eye(matrix.shape[0])
            np.linalg.cholesky(damped)
            step[free] = -np.linalg.solve(damped, gradient[free])
        except np.linalg.LinAlgError:
            step[free] = np.nan
        if np.isfinite(step).all():
            return step
        damping = max(10 * damping, 1e-14 * scale)


def _line_search(
    problem: ConvexProblem,
    point: Floats,
    value: float,
    step: Floats,
    gradient: Floats,
    lower: Floats,
    upper: Floats,
) -> tuple[Floats | None, float]:
    """The first of the step, its half, its quarter, ... (clipped to the box) that lowers the loss enough."""
    length = 1.0
    while length > 1e-12:
        moved = np.clip(point + length * step, lower, upper)
        reached = problem.loss(moved)
        if reached < value and reached <= value + _SUFFICIENT * float(gradient @ (moved - point)):
            return moved, reached
        length /= 2
    return None, value
