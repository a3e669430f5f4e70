"""Optimisation on the simplex: least squares, smooth losses, weights of a mixture and their derivatives."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from lifelong_core.values.arrays import MANY_CLASSES, Floats
from lifelong_core.values.scientific import cholesky, non_negative_least_squares, solve

PSEUDO_SAMPLES = 1.0
"""Pseudo-samples of each class, in total weight, that join a window when its variance is computed. Otherwise a window
without samples of a class would exclude the class with certainty (Agresti and Coull 1998 do the same for a
proportion)."""
MAXIMUM_STEPS = 200
_PRECISION = 1e-14
_SUFFICIENT = 1e-4
_LEAST_REMAINDER = 0.01
_SHORTEST = 1e-12
_DAMPING = 1e-12
_FIRST_STEPS = 50
_MOST_GUESSES = 30


def smooth(prevalence: Floats, samples: float) -> Floats:
    """Estimate with PSEUDO_SAMPLES more samples of each class, because variances vanish where the prevalence is 0."""
    return (samples * prevalence + PSEUDO_SAMPLES) / (samples + PSEUDO_SAMPLES * prevalence.size)


def tangent_basis(classes: int) -> Floats:
    """Orthonormal basis of the directions that sum to zero, shape (C, C - 1)."""
    # The last C - 1 columns of the Householder reflection that maps (1, ..., 1) to the first axis.
    vector = np.full(classes, 1 / np.sqrt(classes))
    vector[0] += 1
    reflection = np.eye(classes) - np.outer(vector, vector) / vector[0]
    return reflection[:, 1:]


def simplex_least_squares(matrix: Floats, target: Floats) -> Floats:
    """Minimise |matrix @ p - target| over the simplex, for `matrix` of shape (K, C); return p, shape (C,).

    On the simplex the residual is B p with B = matrix - target 1^T, so that p is the point of the convex hull
    of B's columns nearest to the origin. A non-negative least squares problem finds it exactly (Lawson and
    Hanson 1974): x = argmin |B x|^2 + (sum x - 1)^2 has the direction of p.
    """
    residuals = matrix - target[:, np.newaxis]
    # Its length does not matter for p; at length one nothing is lost next to the row of ones.
    residuals /= max(float(np.abs(residuals).max()), np.finfo(np.float64).tiny)
    stacked = np.vstack([residuals, np.ones(matrix.shape[1])])
    goal = np.zeros(stacked.shape[0])
    goal[-1] = 1
    weights = _by_active_set(stacked.T @ stacked, stacked.T @ goal)
    if weights is None:
        weights = non_negative_least_squares(stacked, goal)
    return weights / weights.sum()


def mixture_weights(densities: Floats, counts: Floats, start: Floats) -> Floats:
    """Maximise sum_i counts_i log(sum_k p_k densities_ik) over the simplex; return p, shape (C,).

    A concave problem: the maximum likelihood of mixture weights. Sequential quadratic programming (Kim et al.
    2020): adding sum(p) to the mean negative log likelihood makes its minimum over p >= 0 lie on the simplex,
    and each quadratic model is a non-negative least squares problem, solved exactly. With many classes, steps of
    expectation maximisation come first: each takes a fraction of the time.

    Args:
        densities: shape (N, C), not negative, each row with a positive entry; rows may be scaled at will.
        counts: shape (N,), how often each row occurs.
        start: shape (C,), positive.
    """
    shares = counts / counts.sum()
    weights = start.copy()
    mixture = densities @ weights
    for _ in range(_FIRST_STEPS if start.size > MANY_CLASSES else 0):
        weights *= (shares / mixture) @ densities
        mixture = densities @ weights
    for _ in range(MAXIMUM_STEPS):
        means = (shares / mixture) @ densities
        # A matrix times its own transpose takes half the time of another product.
        scaled = densities * (np.sqrt(shares) / mixture)[:, np.newaxis]
        candidate = non_negative_minimum(scaled.T @ scaled, 2 * means - 1)
        step = candidate - weights
        promise = float((means - 1) @ step)
        if promise <= _PRECISION:
            break
        length = _step_length(mixture, densities @ step, shares, float(step.sum()), promise)
        if length == 0:
            break
        weights = weights + length * step
        mixture = densities @ weights
    return weights / weights.sum()


class Loss(Protocol):
    """Loss of the weights of a mixture."""

    def value(self, weights: Floats) -> float:
        """Loss at weights on the simplex, shape (C,)."""
        ...

    def quadratic_model(self, weights: Floats) -> tuple[Floats, Floats]:
        """Gradient, (C,), and a positive semi-definite approximation of the second derivatives, (C, C)."""
        ...


def simplex_minimum(loss: Loss, start: Floats) -> Floats:
    """Minimise loss(p) over the simplex, from a start with positive entries; return p, shape (C,).

    Each step goes to the minimum of a quadratic model on the simplex, found exactly, or part of the way there.
    """
    weights, value = start, loss.value(start)
    for _ in range(MAXIMUM_STEPS):
        gradient, hessian = loss.quadratic_model(weights)
        factor = _damped_cholesky(hessian)
        candidate = simplex_least_squares(factor.T, solve(factor, hessian @ weights - gradient))
        promise = float(gradient @ (weights - candidate))
        if promise <= _PRECISION:
            break
        # Never all the way: a weight that is 0 although some row needs it would leave an infinite slope.
        length = 1 - _LEAST_REMAINDER
        while (attained := loss.value(weights + length * (candidate - weights))) > (
            value - _SUFFICIENT * length * promise
        ):
            length /= 2
            if length < _SHORTEST:
                return weights
        weights, value = weights + length * (candidate - weights), attained
    return weights


def non_negative_minimum(hessian: Floats, linear: Floats) -> Floats:
    """Minimise p.H.p / 2 - linear.p over p >= 0; H gets the smallest damping that makes it positive definite."""
    found = _by_active_set(hessian, linear)
    if found is not None:
        return found
    factor = _damped_cholesky(hessian)
    return non_negative_least_squares(factor.T, solve(factor, linear))


def _by_active_set(hessian: Floats, linear: Floats) -> Floats | None:
    """Minimise p.H.p / 2 - linear.p over p >= 0 for more than MANY_CLASSES, where Lawson and Hanson's method adds one
    class after the other: guess which are positive, solve, and correct the guess (Hintermueller et al. 2002).

    Returns:
        The exact solution, shape (C,); None: few classes, or the guesses do not settle.
    """
    if linear.size <= MANY_CLASSES:
        return None
    damped = hessian + _DAMPING * max(float(np.diag(hessian).max()), 1.0) * np.eye(linear.size)
    positive = np.ones(linear.size, dtype=bool)
    for _ in range(_MOST_GUESSES):
        result = np.zeros(linear.size)
        try:
            result[positive] = solve(damped[np.ix_(positive, positive)], linear[positive])
        except np.linalg.LinAlgError:
            return None
        slopes = damped @ result - linear
        better = np.where(positive, result > 0, slopes < -_DAMPING * np.abs(linear).max())
        if (better == positive).all():
            return result
        positive = better
    return None


def _damped_cholesky(hessian: Floats) -> Floats:
    damping = _DAMPING
    scale = max(float(np.diag(hessian).max()), 1.0)
    while True:
        try:
            return cholesky(hessian + damping * scale * np.eye(hessian.shape[0]))
        except np.linalg.LinAlgError:
            damping *= 10


def _step_length(mixture: Floats, change: Floats, shares: Floats, growth: float, promise: float) -> float:
    """First of 1, 1/2, 1/4, ... that lowers the loss enough; 0: there is none.

    No sample may lose more than 99 % of its likelihood in one step. If a class that a sample needs became exactly 0,
    the likelihood would be too steep for any quadratic model.
    """
    length = 1.0
    while length > _SHORTEST:
        relative = 1 + length * change / mixture
        if relative.min() >= _LEAST_REMAINDER:
            drop = float(shares @ np.log(relative)) - length * growth
            if drop > 0 and drop >= _SUFFICIENT * length * promise:
                return length
        length /= 2
    return 0.0


@dataclass(frozen=True)
class MixtureLinearisation:
    """Linearised solution of mean ratio = 1 on the simplex, with ratio_ik = density_ik / sum_l p_l density_il.

    Means are taken over the window and the pseudo-samples of the calibration set
    (`simplex.PSEUDO_SAMPLES`).
    """

    prevalence: Floats
    """shape (C,), positive: point of the linearisation"""
    ratios: Floats
    """shape (N + M, C), window samples first, then calibration samples"""
    weights: Floats
    """shape (N + M,), sums to 1"""
    products: Floats
    """shape (C, C), symmetric: weighted means of the products of two classes' ratios"""
    sensitivity: Floats
    """shape (C, C), symmetric: change of the estimate per change of the mean ratios"""

    @classmethod
    def at(cls, prevalence: Floats, densities: Floats, weights: Floats) -> Self:
        """Linearise at a positive prevalence, given densities and weights of window and calibration samples."""
        ratios = densities / (densities @ prevalence)[:, np.newaxis]
        weights = weights / weights.sum()
        basis = tangent_basis(prevalence.size)
        # A matrix times its own transpose takes half the time of another product.
        scaled = ratios * np.sqrt(weights)[:, np.newaxis]
        products = scaled.T @ scaled
        information = basis.T @ products @ basis
        sensitivity = basis @ np.linalg.pinv(information, hermitian=True, rcond=1e-14) @ basis.T
        return cls(prevalence, ratios, weights, products, sensitivity)

    def influences(self) -> Floats:
        """First-order effect of each sample on the estimate, shape (N + M, C)."""
        return self.ratios @ self.sensitivity

    def response(self, direction: Floats) -> Floats:
        """Change of the estimate, (C,), for a change of the log densities in this direction, (N + M, C)."""
        posteriors = self.ratios * self.prevalence
        change = self.ratios * (direction - (posteriors * direction).sum(axis=1, keepdims=True))
        return self.sensitivity @ (self.weights @ change)

    def responses(self) -> Floats:
        """Change of the estimate, (C,), per change of the log density of class m at all samples: column m."""
        change = np.diag(self.weights @ self.ratios) - self.products * self.prevalence
        return self.sensitivity @ change
