"""Weighted cross entropy of affine scaling with its derivatives, in coordinates of order one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lifelong_core.values.arrays import Floats, Integers, Logits, centre_rows, softmax


def typical_size(rows: Floats) -> float:
    """Typical size of a centred logit: the median over rows of the largest one, robust to outliers."""
    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
    return float(np.median(largest)) or float(largest.max()) or 1.0


def losses_and_probabilities(scores: Floats, labels: Integers) -> tuple[Floats, Floats]:
    """Losses -log softmax(scores) of the true class, (N,), and softmax(scores), (N, C)."""
    relative = scores - scores.max(axis=1, keepdims=True)
    own = relative[np.arange(labels.size), labels]
    exponentials = np.exp(relative, out=relative)
    totals = exponentials.sum(axis=1)
    exponentials /= totals[:, np.newaxis]
    return np.log(totals) - own, exponentials


def chunks(rows: int, width: int, numbers: int = 1 << 16) -> Iterator[slice]:
    """Slices of rows in which a table of this width has at most this many numbers; by default they fit a cache."""
    step = max(1, numbers // width)
    for begin in range(0, rows, step):
        yield slice(begin, min(begin + step, rows))


def shared_scores(parts: Sequence[Floats], parameters: Floats) -> Floats:
    """Scores (N, C) of B blocks, (N, C) each: each times its weight, plus the C biases of parameters (B + C,)."""
    scores = parts[0] * parameters[0]
    for weight, part in zip(parameters[1:], parts[1:], strict=False):
        scores += weight * part
    scores += parameters[len(parts) :]
    return scores


def loss_and_gradient(
    features: Floats, labels: Integers, weights: Floats, parameters: Floats, classes: int
) -> tuple[float, Floats]:
    """Weighted sum of the losses, and its gradient (B + C,), in one pass and little memory.

    Args:
        features: shape (N, B * C): B blocks with a feature of each class.
        labels: shape (N,).
        weights: shape (N,).
        parameters: shape (B + C,): a class's score is its features times the B weights of the blocks, plus its bias.
        classes: number of classes C.
    """
    blocks = parameters.size - classes
    value, gradient = 0.0, np.zeros_like(parameters)
    gradient[blocks:] -= np.bincount(labels, weights, minlength=classes)
    for rows in chunks(labels.size, classes):
        parts = np.split(features[rows], blocks, axis=1)
        own = (np.arange(labels[rows].size), labels[rows])
        scores = shared_scores(parts, parameters)
        scores -= scores.max(axis=1, keepdims=True)
        right = scores[own]
        exponentials = np.exp(scores, out=scores)
        totals = exponentials.sum(axis=1)
        value += float(weights[rows] @ (np.log(totals) - right))
        shares = weights[rows] / totals
        gradient[blocks:] += shares @ exponentials
        for block, part in enumerate(parts):
            means = np.einsum("ik,ik->i", exponentials, part)
            gradient[block] += shares @ means - weights[rows] @ part[own]
    return value, gradient


@dataclass(frozen=True)
class AffineProblem:
    """Loss, gradient and Hessian over the parameters (scaled inverse temperatures, bias).

    The inverse temperature is one number (or one per class) in units of 1 / `scale`. A constant added to the
    bias changes no probability; the Hessian gets a unit curvature in that direction, which leaves the optimum
    with a bias of zero mean where the start has one.
    """

    rows: Floats
    """centred logits, shape (N, C)"""
    labels: Integers
    """shape (N,)"""
    weights: Floats
    """shape (N,), positive"""
    bias: bool
    per_class_temperature: bool
    scale: float
    """typical size of a centred logit"""

    def __post_init__(self) -> None:
        """Scale rows and weights once."""
        object.__setattr__(self, "rows", self.rows / self.scale)
        object.__setattr__(self, "weights", self.weights / self.weights.sum())

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.rows.shape[1]

    @property
    def temperatures(self) -> int:
        """Number of inverse temperatures, 1 or C."""
        return self.classes if self.per_class_temperature else 1

    def start(self) -> Floats:
        """Scores of order one, and a bias that fits the weighted class shares."""
        inverse = np.ones(self.temperatures)
        if not self.bias:
            return inverse
        shares = np.log(np.bincount(self.labels, self.weights, minlength=self.classes))
        return np.concatenate([inverse, shares - shares.mean()])

    def bounds(self, lower: float, upper: float) -> tuple[Floats, Floats]:
        """Box of the parameters: the scaled inverse temperature in lower..upper, the bias free."""
        free = np.full(self.classes if self.bias else 0, np.inf)
        return (
            np.concatenate([np.full(self.temperatures, lower), -free]),
            np.concatenate([np.full(self.temperatures, upper), free]),
        )

    def pack(self, temperature: float | Floats, bias: Floats) -> Floats:
        """Parameters of a scaling."""
        inverse = np.broadcast_to(self.scale / np.asarray(temperature), self.classes)[: self.temperatures]
        return np.concatenate([inverse, bias]) if self.bias else inverse

    def unpack(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Inverse temperatures (C,) in the units of the logits, and the bias (C,) with zero mean."""
        inverse = np.broadcast_to(parameters[: self.temperatures], self.classes) / self.scale
        offsets = parameters[self.temperatures :] if self.bias else np.zeros(self.classes)
        return inverse, offsets - offsets.mean()

    def loss(self, parameters: Floats) -> float:
        """Weighted mean of -log probability of the true class."""
        scores = self._scores(parameters)
        own = np.take_along_axis(scores, self.labels[:, np.newaxis], axis=1)
        relative = scores - own
        top = relative.max(axis=1)
        return float(self.weights @ (top + np.log(np.exp(relative - top[:, np.newaxis]).sum(axis=1))))

    def derivatives(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Gradient (P,) and Hessian (P, P)."""
        scores = self._scores(parameters)
        probabilities = softmax(scores)
        weighted = probabilities * self.weights[:, np.newaxis]
        residuals = weighted.copy()
        residuals[np.arange(self.labels.size), self.labels] -= self.weights
        slopes, curvature, mixed = (
            self._per_class(probabilities, weighted, residuals)
            if self.per_class_temperature
            else self._shared(probabilities, weighted, residuals)
        )
        if not self.bias:
            return slopes, curvature
        offsets = np.diag(weighted.sum(axis=0)) - weighted.T @ probabilities + 1 / self.classes
        return (
            np.concatenate([slopes, residuals.sum(axis=0)]),
            np.block([[curvature, mixed], [mixed.T, offsets]]),
        )

    def loss_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """Loss and gradient (P,), in one pass and little memory; for one temperature and a bias."""
        return loss_and_gradient(self.rows, self.labels, self.weights, parameters, self.classes)

    def curvature(self, parameters: Floats) -> Floats:
        """Diagonal of the Hessian, (P,), for one temperature and a bias."""
        result = np.zeros_like(parameters)
        for rows in chunks(self.labels.size, self.classes):
            scaled = self.rows[rows]
            probabilities = softmax(scaled * parameters[0] + parameters[1:])
            weighted = probabilities * self.weights[rows, np.newaxis]
            mean = (probabilities * scaled).sum(axis=1, keepdims=True)
            result[0] += np.vdot(weighted, (scaled - mean) ** 2)
            result[1:] += (weighted * (1 - probabilities)).sum(axis=0)
        return result

    def sample_gradients(self, parameters: Floats) -> Floats:
        """Gradient of each sample's own unweighted loss, shape (N, P)."""
        residuals = softmax(self._scores(parameters))
        residuals[np.arange(self.labels.size), self.labels] -= 1
        slopes = residuals * self.rows
        if not self.per_class_temperature:
            slopes = slopes.sum(axis=1, keepdims=True)
        return np.hstack([slopes, residuals]) if self.bias else slopes

    def _scores(self, parameters: Floats) -> Floats:
        scores = self.rows * parameters[: self.temperatures]
        return scores + parameters[self.temperatures :] if self.bias else scores

    def _shared(
        self, probabilities: Floats, weighted: Floats, residuals: Floats
    ) -> tuple[Floats, Floats, Floats]:
        mean = (probabilities * self.rows).sum(axis=1, keepdims=True)
        spread = weighted * (self.rows - mean)
        return (
            np.array([(residuals * self.rows).sum()]),
            np.array([[(spread * (self.rows - mean)).sum()]]),
            spread.sum(axis=0)[np.newaxis, :],
        )

    def _per_class(
        self, probabilities: Floats, weighted: Floats, residuals: Floats
    ) -> tuple[Floats, Floats, Floats]:
        inner = weighted * self.rows
        return (
            (residuals * self.rows).sum(axis=0),
            np.diag((inner * self.rows).sum(axis=0)) - inner.T @ (probabilities * self.rows),
            np.diag(inner.sum(axis=0)) - inner.T @ probabilities,
        )


def affine_problem(logits: Logits, labels: Integers, weights: Floats) -> AffineProblem:
    """The problem of affine scaling with one temperature for all classes."""
    rows = centre_rows(logits)
    return AffineProblem(
        rows, labels, weights, bias=True, per_class_temperature=False, scale=typical_size(rows)
    )
