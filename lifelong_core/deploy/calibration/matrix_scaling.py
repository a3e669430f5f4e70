"""Calibration by multinomial logistic regression on logits, shrunk towards temperature scaling.

Matrix scaling (Guo et al. 2017) overfits unless it is regularised towards temperature scaling (Kull et al. 2019). The
ridge penalises the distance of the matrix from the nearest multiple of the identity, and of the biases from those of a
network trained at the calibration set's prevalence (zero), or on balanced classes.
"""

from dataclasses import dataclass, field

import numpy as np

from lifelong_core.deploy.calibration.cross_entropy import (
    chunks,
    loss_and_gradient,
    losses_and_probabilities,
    shared_scores,
)
from lifelong_core.deploy.numerics.newton import minimize_convex, minimize_large, one_hot
from lifelong_core.values.arrays import MANY_CLASSES, Floats, Integers, Logits, centre_rows, softmax

LARGEST_SQUARE = 4.0
"""Clip of a logit before it is squared, in typical sizes: an outlier would otherwise dominate."""

WEAK = 1e-3
"""Precision of a prior on all parameters, in samples: it bounds temperature and biases on separable data, and has no
visible effect elsewhere."""

_CHUNK = 1 << 21
"""Numbers held in memory at once."""

_CHORDS = 30

_LEAST_GAIN = 1e-11
"""Least remaining gain up to which large problems are fitted: their loss is a sum with more rounding errors."""


@dataclass(frozen=True)
class LogitFeatures:
    """Features of which the classes' scores are linear: centred logits of size one and, optionally, their clipped
    squares.
    """

    scale: float
    """typical size of a centred logit"""
    squares: bool

    def of(self, logits: Logits) -> Floats:
        """Features, shape (N, C), or (N, 2 C) followed by the squares."""
        rows = centre_rows(logits) / self.scale
        if not self.squares:
            return rows
        return np.hstack([rows, np.minimum(rows**2, LARGEST_SQUARE)])


@dataclass(frozen=True)
class Layout:
    """Layout of the parameters: weights of classes and features, then C biases."""

    classes: int
    features: int
    """F, a multiple of C: blocks of one feature per class"""
    matrix: bool
    """True: each class has a weight for every feature; False: all classes share one weight per block, for their own
    features"""

    @property
    def blocks(self) -> int:
        """Blocks of one feature per class."""
        return self.features // self.classes

    @property
    def size(self) -> int:
        """Number of parameters P."""
        return (self.classes * self.features if self.matrix else self.blocks) + self.classes

    def weights(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Weights (C, F) and biases (C,) with these parameters."""
        free, biases = parameters[: -self.classes], parameters[-self.classes :]
        if self.matrix:
            return free.reshape(self.classes, self.features), biases
        return np.hstack([weight * np.eye(self.classes) for weight in free]), biases

    def parameters(self, weights: Floats, biases: Floats) -> Floats:
        """Inverse of `weights`; where classes share weights, the nearest parameters."""
        blocks = weights.reshape(self.classes, self.blocks, self.classes)
        free = weights.ravel() if self.matrix else np.einsum("kbk->b", blocks) / self.classes
        return np.concatenate([free, biases])

    def scores(self, parameters: Floats, features: Floats) -> Floats:
        """features @ weights.T + biases, shape (N, C)."""
        if self.matrix:
            weights, biases = self.weights(parameters)
            return features @ weights.T + biases
        return shared_scores(np.split(features, self.blocks, axis=1), parameters)

    def products(self, values: Floats, features: Floats) -> Floats:
        """Derivatives by the parameters, (N, P), of the sum over classes of value * score, values being (N, C)."""
        return np.hstack([self.slopes(values, features), values])

    def slopes(self, values: Floats, features: Floats) -> Floats:
        """`products` by the weights only, shape (N, P - C)."""
        if self.matrix:
            return (values[:, :, np.newaxis] * features[:, np.newaxis, :]).reshape(values.shape[0], -1)
        blocks = np.split(features, self.blocks, axis=1)
        return np.column_stack([np.einsum("ik,ik->i", values, block) for block in blocks])

    def total(self, values: Floats, features: Floats) -> Floats:
        """`products` summed over the rows, shape (P,)."""
        if self.matrix:
            slopes = (values.T @ features).ravel()
        else:
            blocks = np.split(features, self.blocks, axis=1)
            slopes = np.array([np.vdot(values, block) for block in blocks], dtype=np.float64)
        return np.concatenate([slopes, values.sum(axis=0)])

    def totals(self, values: Floats, features: Floats) -> Floats:
        """`total` of the values of one class after the other, shape (C, P)."""
        result = np.zeros((self.classes, self.size))
        each = np.arange(self.classes)
        if self.matrix:
            columns = each[:, np.newaxis] * self.features + np.arange(self.features)
            result[each[:, np.newaxis], columns] = values.T @ features
        elif self.classes > MANY_CLASSES:
            blocks = np.split(features, self.blocks, axis=1)
            result[:, : self.blocks] = np.column_stack(
                [np.einsum("ik,ik->k", values, block) for block in blocks]
            )
        else:
            by_features = values.T @ features
            for block in range(self.blocks):
                result[:, block] = np.diag(by_features[:, block * self.classes :])
        result[each, self.size - self.classes + each] = values.sum(axis=0)
        return result

    def curvature(self, probabilities: Floats, features: Floats) -> Floats:
        """Sum over rows and classes of probability * (derivative of the class's score)^2, shape (P, P)."""
        result = np.zeros((self.size, self.size))
        if not self.matrix:
            slopes = [*np.split(features, self.blocks, axis=1)]
            for one, first in enumerate(slopes):
                weighted = probabilities * first
                for other, second in enumerate(slopes):
                    result[one, other] = (weighted * second).sum()
                result[one, self.blocks :] = result[self.blocks :, one] = weighted.sum(axis=0)
            result[self.blocks :, self.blocks :] = np.diag(probabilities.sum(axis=0))
            return result
        extended = np.hstack([features, np.ones((features.shape[0], 1))])
        for k in range(self.classes):
            own = np.append(k * self.features + np.arange(self.features), self.size - self.classes + k)
            result[np.ix_(own, own)] = (extended * probabilities[:, k, np.newaxis]).T @ extended
        return result


@dataclass(frozen=True)
class Ridge:
    """Gaussian prior on the parameters; strengths are precisions, in samples."""

    matrix: float
    """strength for the deviation of each block of weights from a multiple of the identity"""
    biases: float
    """strength for the deviation of the biases from the centre"""
    centre: Floats
    """shape (C,), centre of the biases"""

    def hessian(self, layout: Layout) -> Floats:
        """Hessian of the penalty, shape (P, P)."""
        classes, free = layout.classes, layout.size - layout.classes
        result = np.zeros((layout.size, layout.size))
        result[free:, free:] = (self.biases + WEAK) * np.eye(classes)
        if not layout.matrix:
            result[:free, :free] = WEAK * classes * np.eye(free)
            return result
        result[:free, :free] = (self.matrix + WEAK) * np.eye(free)
        for block in range(layout.blocks):
            diagonal = np.arange(classes) * (layout.features + 1) + block * classes
            result[np.ix_(diagonal, diagonal)] -= self.matrix / classes
        return result


@dataclass(frozen=True)
class MatrixProblem:
    """Mean cross entropy of softmax(features @ weights.T + biases), plus the ridge, with its derivatives."""

    features: Floats
    """shape (N, F), of order one"""
    labels: Integers
    """shape (N,)"""
    layout: Layout
    ridge: Ridge
    _penalty: Floats = field(init=False)
    _centre: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Compute the penalty's Hessian once."""
        object.__setattr__(self, "_penalty", self.ridge.hessian(self.layout) / self.labels.size)
        nowhere = np.zeros(self.layout.size - self.layout.classes)
        object.__setattr__(self, "_centre", np.concatenate([nowhere, self.ridge.centre]))

    def start(self) -> Floats:
        """Starting parameters, with scores of order one: the identity and the biases' centre."""
        return self.layout.parameters(np.eye(self.layout.classes, self.layout.features), self.ridge.centre)

    def loss(self, parameters: Floats) -> float:
        """Loss at these parameters, shape (P,)."""
        losses, _ = losses_and_probabilities(self.scores(parameters), self.labels)
        return self._penalised(losses, parameters)

    def loss_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """Loss and gradient (P,), in one pass over the data."""
        if self.is_large:
            return self._in_little_memory(parameters)
        losses, probabilities = losses_and_probabilities(self.scores(parameters), self.labels)
        return self._penalised(losses, parameters), self._gradient(probabilities, parameters)

    def _in_little_memory(self, parameters: Floats) -> tuple[float, Floats]:
        weights = np.full(self.labels.size, 1 / self.labels.size)
        loss, slopes = loss_and_gradient(self.features, self.labels, weights, parameters, self.layout.classes)
        off = parameters - self._centre
        pull = self._penalty @ off
        return loss + float(off @ pull) / 2, slopes + pull

    @property
    def is_large(self) -> bool:
        """Whether the problem has too many classes for Newton's method."""
        return self.layout.classes > MANY_CLASSES and not self.layout.matrix

    def curvature(self, parameters: Floats) -> Floats:
        """Diagonal of the Hessian without what weights share, (P,)."""
        result = np.zeros_like(parameters)
        blocks, classes = self.layout.blocks, self.layout.classes
        for rows in chunks(self.labels.size, classes):
            features = self.features[rows]
            probabilities = softmax(self.layout.scores(parameters, features))
            for block in range(blocks):
                own = features[:, block * classes : (block + 1) * classes]
                mean = (probabilities * own).sum(axis=1, keepdims=True)
                result[block] += np.vdot(probabilities, (own - mean) ** 2)
            result[blocks:] += (probabilities * (1 - probabilities)).sum(axis=0)
        return result / self.labels.size + np.diag(self._penalty)

    def derivatives(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Gradient (P,) and Hessian (P, P)."""
        probabilities = softmax(self.scores(parameters))
        hessian = np.zeros_like(self._penalty)
        for rows in chunks(self.labels.size, self.layout.size, _CHUNK):
            products = self.layout.products(probabilities[rows], self.features[rows])
            hessian += self.layout.curvature(probabilities[rows], self.features[rows]) - products.T @ products
        return self._gradient(probabilities, parameters), hessian / self.labels.size + self._penalty

    def scores(self, parameters: Floats) -> Floats:
        """Log probabilities up to a constant per row, shape (N, C)."""
        return self.layout.scores(parameters, self.features)

    def _penalised(self, losses: Floats, parameters: Floats) -> float:
        off = parameters - self._centre
        return float(losses.mean() + off @ self._penalty @ off / 2)

    def _gradient(self, probabilities: Floats, parameters: Floats) -> Floats:
        residuals = (probabilities - one_hot(self.labels, self.layout.classes)) / self.labels.size
        slopes = self.layout.total(residuals, self.features)
        return slopes + self._penalty @ (parameters - self._centre)


def fit_matrix(problem: MatrixProblem, start: Floats | None = None, precision: float = 1e-15) -> Floats:
    """Fit the parameters with the smallest loss, shape (P,): by Newton's method, or by gradients up to a remaining gain
    of `precision` where the problem is large.
    """
    free = np.full(problem.layout.size, np.inf)
    begin = problem.start() if start is None else start
    if problem.is_large:
        return minimize_large(problem, begin, -free, free, max(precision, _LEAST_GAIN))
    return minimize_convex(problem, begin, -free, free)


def refit_matrix(problem: MatrixProblem, start: Floats, inverse: Floats | None, precision: float) -> Floats:
    """Fit like `fit_matrix`, from near the solution, with the inverse Hessian of a similar problem, shape (P, P).

    Such steps cost a fraction of Newton's. They end where the next step promises to lower the loss by less than the
    precision; where they stagnate, Newton's method continues.
    """
    if inverse is None:
        return fit_matrix(problem, start, precision)
    point = start
    value, gradient = problem.loss_and_gradient(point)
    for _ in range(_CHORDS):
        step = -inverse @ gradient
        if -float(gradient @ step) <= precision:
            return point
        reached, slope = problem.loss_and_gradient(point + step)
        if not reached < value:
            break
        point, value, gradient = point + step, reached, slope
    return fit_matrix(problem, point)


def inverse_hessian(problem: MatrixProblem, parameters: Floats) -> Floats:
    """Inverse Hessian of the problem at these parameters, shape (P, P)."""
    _, hessian = problem.derivatives(parameters)
    # Parameters differ in their curvature by orders of magnitude: to unit diagonal and back.
    size = np.sqrt(np.diag(hessian))
    unit = np.outer(size, size)
    return np.asarray(np.linalg.inv(hessian / unit), dtype=np.float64) / unit
