"""A labelling plan: inclusion probabilities of the samples, the draw, and the width of the interval on cost."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.checks import as_level, as_whole_number
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import (
    Floats,
    Integers,
    Mask,
    as_column,
    as_costs,
    as_labels,
    as_parameter,
    as_probabilities,
    read_only,
)
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import t_quantile

LARGEST_SIZE = 1_000_000
"""Largest number of labels that is asked for."""

FLOOR = 0.3
"""Default share of the labels that are spread evenly over all samples."""
_NOTHING = 1e-12
"""Scores below this share of the largest one are 0."""


@dataclass(frozen=True, eq=False)
class LabellingChoice(ArrayValue):
    """Samples of a window that were chosen for labelling."""

    propensities: Floats
    """shape (N,), in (0, 1]: probability with which each sample was chosen; 1 where it had a label before"""
    chosen: Integers
    """shape (m,), indices of the chosen samples in a random order: labelled in this order, any first part of them is a
    valid sample too"""
    expected_width: float
    """expected width of the interval on expected cost with these labels, as far as the posteriors are right"""
    random_width: float
    """the same for as many labels of samples drawn with equal probability, alone; nan for a single one"""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        object.__setattr__(self, "propensities", read_only(self.propensities))
        object.__setattr__(self, "chosen", read_only(self.chosen))


def choose_labels(
    posteriors: ArrayLike,
    decisions: ArrayLike,
    costs: ArrayLike,
    size: int,
    *,
    labelled: Mask | None = None,
    floor: float = FLOOR,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> LabellingChoice:
    """Choose which samples of a window to label, so that the interval on expected cost becomes narrow.

    Samples that have a label are not chosen again. They count with propensity 1: given that they were labelled before
    the draw, they are a stratum that is known completely, however they were selected, and the estimate for the whole
    window stays valid. The draw is stratified by decision.

    Args:
        posteriors: shape (N, C), probability of each true class.
        decisions: shape (N,), 0..D-1.
        costs: shape (C, D).
        size: number of labels wanted, at least 1; at most all samples without label are chosen.
        labelled: shape (N,), samples that have a label; None: none has.
        floor: share of the labels that is spread evenly, in (0, 1].
        confidence: nominal coverage of the intervals.
        rng: seed or generator.

    Raises:
        InvalidInputError: a shape or a value does not fit, or every sample has a label.

    Examples:
        >>> posteriors = np.array([[0.99, 0.01]] * 50 + [[0.6, 0.4]] * 50)
        >>> choice = choose_labels(posteriors, [0] * 100, [[0, 1], [5, 0]], 20)
        >>> len(choice.chosen), int((choice.chosen >= 50).sum())
        (20, 15)
        >>> round(choice.expected_width, 2), round(choice.random_width, 2)
        (1.47, 1.89)
    """
    shares = as_probabilities(posteriors, field="posteriors")
    wanted = as_whole_number(size, 1, LARGEST_SIZE, field="size")
    scores = decision_uncertainty(shares, decisions, costs)
    known = np.zeros(scores.size, dtype=np.bool_) if labelled is None else np.asarray(labelled, np.bool_)
    if known.shape != scores.shape:
        raise InvalidInputError(f"expected {scores.size} values, got {known.size}.", field="labelled")
    open_samples = np.flatnonzero(~known)
    if open_samples.size == 0:
        raise InvalidInputError(
            "every prediction of the window has a label.", field="labelled", hint="Take a newer window."
        )
    generator = np.random.default_rng(rng)
    drawn = labelling_probabilities(scores[open_samples], min(wanted, open_samples.size), floor=floor)
    strata = np.asarray(decisions)[open_samples]
    chosen = generator.permutation(open_samples[draw_sample(drawn, generator, strata=strata)])
    propensities = np.ones(scores.size)
    propensities[open_samples] = drawn
    total = _cost_variance(shares, decisions, costs)
    from_labels = ((1 / propensities - 1) * scores**2).sum() / scores.size**2
    level = as_level(confidence, "confidence")
    return LabellingChoice(
        propensities=propensities,
        chosen=chosen.astype(np.int64),
        expected_width=_width(from_labels + total / scores.size, chosen.size + int(known.sum()), level),
        random_width=_width(total / chosen.size, chosen.size, level),
    )


def _cost_variance(posteriors: Floats, decisions: ArrayLike, costs: ArrayLike) -> float:
    """Variance of the cost of one sample of the population."""
    matrix = as_costs(costs, classes=posteriors.shape[1])
    paid = matrix.T[as_labels(decisions, classes=matrix.shape[1], field="decisions")]
    mean = float((posteriors * paid).sum(axis=1).mean())
    return float((posteriors * (paid - mean) ** 2).sum(axis=1).mean())


def _width(variance: float, labels: int, confidence: float) -> float:
    """Width of the t interval of a mean from this number of labels; nan for a single one."""
    if labels < 2:
        return float("nan")
    return 2 * float(t_quantile(labels - 1, (1 + confidence) / 2)) * float(np.sqrt(variance))


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
