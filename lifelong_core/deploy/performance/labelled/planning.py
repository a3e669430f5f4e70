"""A labelling plan: which samples of a window to label, and how narrow their labels make the interval on cost."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.checks import as_level, as_whole_number
from lifelong_core.deploy.performance.labelled.sampling import (
    FLOOR,
    decision_uncertainty,
    draw_sample,
    labelling_probabilities,
)
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import (
    Floats,
    Integers,
    Mask,
    as_costs,
    as_labels,
    as_probabilities,
    read_only,
)
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import t_quantile

LARGEST_SIZE = 1_000_000
"""Largest number of labels that is asked for."""


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
