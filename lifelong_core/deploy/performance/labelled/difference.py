"""Performance from posteriors of all samples of a window, corrected by the labels of some of them."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from lifelong_core.deploy.performance.labelled.estimate import LabelledEstimate, Target


def difference_estimate(
    posteriors: ArrayLike,
    decisions: ArrayLike,
    sample: ArrayLike,
    labels: ArrayLike,
    propensities: ArrayLike,
    *,
    costs: ArrayLike | None = None,
    metrics: Sequence[str] = ("AC", "EC"),
    groups: ArrayLike | None = None,
    confidence: float = 0.95,
    target: Target = "population",
) -> LabelledEstimate:
    """Performance of a window's decisions from posteriors of all samples and labels of some.

    The posteriors predict the class of every sample; the labelled samples, weighted by their inverse propensities,
    correct the prediction (difference estimator; Saerndal, Swensson and Wretman 1992, section 6.3). Wrong posteriors
    cost precision, never validity: the propensities are known, so the interval assumes nothing about the shift.

    Args:
        posteriors: shape (N, C), probability of each true class, of all samples of the window.
        decisions: shape (N,), 0..D-1.
        sample: shape (m,), indices of the labelled samples, m >= 2.
        labels: shape (m,), their true classes.
        propensities: shape (m,), in (0, 1]: probability with which each was chosen for labelling, e.g. of
            `labelling_probabilities`.
        costs: shape (C, D); None: 0-1 costs.
        metrics: acronyms of METRICS that count decisions.
        groups: shape (N,), samples of one group may depend on each other; None: all independent. They matter only for
            the target "population": given the window, the choice of the samples is the only random part.
        confidence: nominal coverage of each interval.
        target: what the intervals cover: "population", performance in the population from which the window comes, like
            the intervals of `estimate_performance`; "window", performance on these N predictions.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    raise NotImplementedError
