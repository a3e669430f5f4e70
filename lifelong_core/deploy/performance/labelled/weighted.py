"""Performance on labelled samples alone: weights, groups and wrong labels."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from lifelong_core.deploy.performance.labelled.estimate import LabelledEstimate


def weighted_estimate(
    decisions: ArrayLike,
    labels: ArrayLike,
    *,
    classes: int,
    costs: ArrayLike | None = None,
    metrics: Sequence[str] = ("AC", "EC"),
    propensities: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    error_rates: ArrayLike | None = None,
    confidence: float = 0.95,
) -> LabelledEstimate:
    """Performance in the population from labelled samples, with intervals.

    Args:
        decisions: shape (m,), 0..D-1, m >= 1.
        labels: shape (m,), true classes.
        classes: number of classes C.
        costs: shape (C, D); None: 0-1 costs, with D = C + 1 where a decision abstains.
        metrics: acronyms of METRICS that count decisions.
        propensities: shape (m,), in (0, 1]: probability with which each sample was chosen for labelling (up to a
            common factor); None: equal.
        groups: shape (m,), samples of one group may depend on each other; None: all independent.
        error_rates: shape (C,) or one number, in 0..1: largest share of the labels of each class that are wrong; the
            intervals cover the performance against the true classes for all rates up to these. None: no label is
            wrong.
        confidence: nominal coverage of each interval.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    raise NotImplementedError
