"""Which predictions to label: inclusion probabilities proportional to uncertainty, and the draw."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.checks import as_whole_number
from lifelong_core.values.arrays import (
    Floats,
    Integers,
    as_column,
    as_costs,
    as_labels,
    as_parameter,
    as_probabilities,
)
from lifelong_core.values.errors import InvalidInputError

FLOOR = 0.3
"""Default share of the labels that are spread evenly over all samples."""

_NOTHING = 1e-12
"""Scores below this share of the largest one are 0."""


def decision_uncertainty(posteriors: ArrayLike, decisions: ArrayLike, costs: ArrayLike) -> Floats:
    """Standard deviation of the cost of each decision under its posterior, shape (N,).

    Labelling with probabilities proportional to it minimises the variance of the expected cost, where the posteriors
    are right (Saerndal, Swensson and Wretman 1992, section 12.2). With 0-1 costs it is sqrt(p (1 - p)) for the
    posterior p of the decided class, and serves accuracy.

    Args:
        posteriors: shape (N, C), probability of each true class.
        decisions: shape (N,), 0..D-1.
        costs: shape (C, D).

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> decision_uncertainty([[0.8, 0.2], [1, 0]], [0, 0], [[0, 1], [5, 0]]).tolist()
        [2.0, 0.0]
    """
    shares = as_probabilities(posteriors, field="posteriors")
    matrix = as_costs(costs, classes=shares.shape[1])
    decided = as_labels(decisions, classes=matrix.shape[1], field="decisions")
    as_column(decided, samples=len(shares), field="decisions", what="decision")
    paid = matrix.T[decided]
    means = (shares * paid).sum(axis=1, keepdims=True)
    return np.sqrt((shares * (paid - means) ** 2).sum(axis=1))


def labelling_probabilities(scores: ArrayLike, size: int, *, floor: float = FLOOR) -> Floats:
    """Inclusion probability of each sample, shape (N,): in (0, 1], with the sum `size`.

    A share `floor` of the labels is spread evenly, the others in proportion to the scores. So no weight, the inverse of
    a probability, exceeds N / (floor * size), and samples on which the model is wrongly sure have a chance too: the
    estimate stays valid under every shift.

    Args:
        scores: shape (N,), not negative, e.g. of `decision_uncertainty`.
        size: number of labels, 1..N.
        floor: in (0, 1]; 1: all samples have the same probability.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> labelling_probabilities([1, 1, 2, 4], 2, floor=0.5).round(3).tolist()
        [0.375, 0.375, 0.5, 0.75]
    """
    sizes = as_parameter(scores, field="scores")
    if sizes.ndim != 1 or sizes.size == 0 or (sizes < 0).any():
        raise InvalidInputError(
            "expected at least one number, none negative, one for each sample.", field="scores"
        )
    count = as_whole_number(size, 1, sizes.size, field="size")
    if not 0 < floor <= 1:
        raise InvalidInputError(f"expected a number above 0 and at most 1, got {floor}.", field="floor")
    even = floor * count / sizes.size
    scaled = sizes / max(float(sizes.max()), np.finfo(np.float64).tiny)
    scaled[scaled < _NOTHING] = 0.0
    positive = scaled > 0
    if positive.sum() + even * (~positive).sum() <= count:
        # Every uncertain sample is labelled; the others share the rest.
        rest = (count - positive.sum()) / max(1, (~positive).sum())
        return np.where(positive, 1.0, rest)
    order = np.argsort(-scaled)
    # With the k largest scores certain, the factor of the others gives them the remaining labels.
    certain = np.arange(sizes.size)
    remaining = np.cumsum(scaled[order][::-1])[::-1]
    wanted = count - certain - even * (sizes.size - certain)
    factors = np.divide(wanted, remaining, out=np.zeros_like(remaining), where=remaining > 0)
    fits = even + factors * scaled[order] <= 1
    factor = max(float(factors[int(np.argmax(fits))]), 0.0)
    return np.minimum(even + factor * scaled, 1.0)


def draw_sample(
    probabilities: ArrayLike, rng: np.random.Generator | int, *, strata: ArrayLike | None = None
) -> Integers:
    """Draw samples with exactly these inclusion probabilities; indices in ascending order.

    Systematic sampling in random order (Madow 1949): the number of samples is the sum of the probabilities, rounded up
    or down.

    Args:
        probabilities: shape (N,), in 0..1.
        rng: seed or generator.
        strata: shape (N,), for example the decisions: each stratum gets its expected number of samples, rounded
            up or down.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> chosen = draw_sample([0.5] * 10, 0, strata=[0] * 4 + [1] * 6)
        >>> len(chosen), int((chosen < 4).sum())
        (5, 2)
    """
    shares = as_parameter(probabilities, field="probabilities")
    if shares.ndim != 1 or (shares < 0).any() or (shares > 1).any():
        raise InvalidInputError("expected one number in 0..1 for each sample.", field="probabilities")
    generator = np.random.default_rng(rng)
    keys = np.zeros(shares.size) if strata is None else as_column(strata, samples=shares.size, field="strata")
    places = np.unique(keys, return_inverse=True)[1]
    # The order of the strata is random too, so that no two of them always share a step.
    order = np.lexsort(
        (generator.random(shares.size), generator.permutation(places.max(initial=0) + 1)[places])
    )
    # Sums that differ from whole numbers by rounding errors would change the size.
    ends = np.cumsum(shares[order]).round(9)
    steps = np.floor(ends - generator.random())
    return np.sort(order[np.diff(steps, prepend=-1.0) > 0]).astype(np.int64)
