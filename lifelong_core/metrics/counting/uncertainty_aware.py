"""Metrics of binary decisions with smaller weights for samples near the threshold, and for uncertain samples.

After L. Sperling et al., Uncertainty-aware evaluation of machine learning performance in binary classification tasks.
A sample counts with the weight erf(|p - t| / (s sqrt 2)) erf(|c - t| / (s sqrt 2)) exp(-u d): how sure it is that its
probability p and its reference c lie on their side of a Gaussian threshold with mean t and standard deviation s
(eq. 6, of which the area has to be taken without sign), damped by its uncertainty u (eq. 8).

Without spread, s = 0, the limit for s -> 0 is meant: the weights are 1, and 0 for p = t or c = t. So the classical
metrics are the limit where no probability equals the threshold. For t other than 1/2, the weights of the two reference
classes differ, so that accuracy, precision and F1 change with s even for certain predictions.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.metrics.counting.multiclass import accuracies
from lifelong_core.metrics.counting.one_versus_rest import f_beta, fall_out, precision, sensitivity
from lifelong_core.metrics.declaration import Orientation, metric
from lifelong_core.metrics.scores.samples import as_values
from lifelong_core.values.arrays import LARGEST_NUMBER, Floats
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import error_function, weighted_counts
from lifelong_core.values.uncertainties import LARGEST_SPREAD, check_members

UNCERTAINTY_AWARE: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType(
    {
        "UA-accuracy": accuracies,
        "UA-precision": lambda sums: precision(sums)[..., 1],
        "UA-recall": lambda sums: sensitivity(sums)[..., 1],
        "UA-FPR": lambda sums: fall_out(sums)[..., 1],
        "UA-F1": lambda sums: f_beta(sums)[..., 1],
    }
)
"""By acronym, the scores (eqs. 13-17) as functions of sums of weights (..., 2, 2), with values (...)."""


def uncertainty_aware_confusion(
    labels: ArrayLike,
    probabilities: ArrayLike,
    uncertainties: ArrayLike,
    *,
    threshold: float = 0.5,
    sigma: float,
    damping: float,
) -> Floats:
    """Sums of the samples' weights by reference and decision, [[TN, FP], [FN, TP]] (eqs. 9-12).

    Args:
        labels: shape (N,), references c in [0, 1], positive above the threshold; usually 0 and 1.
        probabilities: shape (N,), p in [0, 1] of the positive class; decided positively from the threshold on.
        uncertainties: shape (N,), u, not negative.
        threshold: t, in [0, 1].
        sigma: s, spread of the threshold, not negative.
        damping: d, not negative; 0: uncertainties do not matter.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> uncertainty_aware_confusion([0, 1, 1], [0.2, 0.4, 0.9], [0, 0, 0], sigma=0, damping=0).tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """
    reference = as_values(labels, field="labels", low=0, high=1)
    samples = reference.size
    predicted = as_values(probabilities, field="probabilities", samples=samples, low=0, high=1)
    uncertain = as_values(uncertainties, field="uncertainties", samples=samples, low=0, high=LARGEST_NUMBER)
    as_values([threshold], field="threshold", low=0, high=1)
    as_values([sigma], field="sigma", low=0, high=LARGEST_NUMBER)
    as_values([damping], field="damping", low=0, high=LARGEST_NUMBER)
    weights = sureness(predicted, threshold, sigma) * sureness(reference, threshold, sigma)
    weights *= np.exp(-uncertain * damping)
    cells = 2 * (reference > threshold) + (predicted >= threshold)
    return weighted_counts(cells, weights, size=4).reshape(2, 2)


class UncertaintyAwareScore(Protocol):
    """Score of a binary classifier's decisions, weighted by how sure and how certain each sample is."""

    def __call__(
        self,
        labels: ArrayLike,
        probabilities: ArrayLike,
        uncertainties: ArrayLike,
        *,
        threshold: float = 0.5,
        sigma: float,
        damping: float,
    ) -> float:
        """A number in [0, 1]; nan if no sample that it counts has a weight.

        Args:
            labels: shape (N,), 0 and 1.
            probabilities: shape (N,), probability of class 1.
            uncertainties: shape (N,), not negative.
            threshold: in [0, 1].
            sigma: spread of the threshold, not negative.
            damping: reduction of a sample's weight by its uncertainty, not negative.

        Raises:
            InvalidInputError: a shape or a value does not fit.
        """
        ...


def _score(
    what: str,
    meaning: str,
    formula: str,
    of_sums: Callable[[Floats], Floats],
    orientation: Orientation = "up",
) -> UncertaintyAwareScore:
    """Declare the score that is `of_sums` of the sums of weights (..., 2, 2)."""

    def score(
        labels: ArrayLike,
        probabilities: ArrayLike,
        uncertainties: ArrayLike,
        *,
        threshold: float = 0.5,
        sigma: float,
        damping: float,
    ) -> float:
        confusion = uncertainty_aware_confusion(
            labels, probabilities, uncertainties, threshold=threshold, sigma=sigma, damping=damping
        )
        return float(of_sums(confusion))

    score.__name__ = f"uncertainty_aware_{'false_positive_rate' if what == 'FPR' else what.lower()}"
    score.__doc__ = f"{meaning} {formula} of weights (UA-{what}).\n\n{UncertaintyAwareScore.__call__.__doc__}"
    return metric(
        f"UA-{what}",
        f"uncertainty-aware {what}",
        f"{meaning} Samples near the threshold and uncertain ones count less.",
        definition="Sperling et al., eq. 13-17",
        formula=f"{formula} on weights w_i=erf(|p-t|/(s sqrt2)) erf(|c-t|/(s sqrt2)) exp(-u d)",
        undefined="every relevant weight is 0 (no such sample, p = t, c = t)",
        orientation=orientation,
        scope="binary",
        invalid="worst",
        family="uncertainty-aware",
    )(score)


uncertainty_aware_accuracy = _score(
    "accuracy",
    "How often the decision is right.",
    "(TP+TN)/(TP+TN+FP+FN)",
    UNCERTAINTY_AWARE["UA-accuracy"],
)
"""Share of the weight of right decisions, (TP + TN) / (TP + TN + FP + FN), high is good (eq. 13)."""
uncertainty_aware_precision = _score(
    "precision", "How often a positive decision is right.", "TP/(TP+FP)", UNCERTAINTY_AWARE["UA-precision"]
)
"""Share of right decisions in the weight of positive decisions, TP / (TP + FP), high is good (eq. 14)."""
uncertainty_aware_recall = _score(
    "recall", "How often a positive is found.", "TP/(TP+FN)", UNCERTAINTY_AWARE["UA-recall"]
)
"""Share of right decisions in the weight of positive samples, TP / (TP + FN), high is good (eq. 15)."""
uncertainty_aware_false_positive_rate = _score(
    "FPR", "How often a negative raises a false alarm.", "FP/(FP+TN)", UNCERTAINTY_AWARE["UA-FPR"], "down"
)
"""Share of wrong decisions in the weight of negative samples, FP / (FP + TN), low is good (eq. 16)."""
uncertainty_aware_f1 = _score(
    "F1",
    "Harmonic mean of precision and recall.",
    "2PR/(P+R), use 2TP/(2TP+FP+FN)",
    UNCERTAINTY_AWARE["UA-F1"],
)
"""Harmonic mean of precision and recall of the weights, 2 TP / (2 TP + FP + FN), high is good (eq. 17)."""


def sureness(values: Floats, threshold: float, sigma: float) -> Floats:
    """How sure it is that each value lies on its side of a Gaussian threshold, in [0, 1] (eq. 6).

    0 on the threshold, whatever the spread; without spread, 1 elsewhere.

    Args:
        values: any shape, in [0, 1].
        threshold: mean of the threshold.
        sigma: its standard deviation, not negative.
    """
    distances = ratio(np.abs(values - threshold), np.array(sigma * np.sqrt(2)))
    return np.where(values == threshold, 0.0, error_function(distances))


def member_spread(probabilities: ArrayLike) -> Floats:
    """Standard deviation of each sample's probability over the members, with divisor M, shape (N,), in [0, 0.5].

    Sperling et al. take the epistemic uncertainty of Monte Carlo dropout, after Kendall and Gal (2017, eq. 9): the mean
    of squares less the squared mean of the M drawn predictions. This is its square root, which has the unit of a
    probability. It does not hold the uncertainty that all members share, such as noise in the image.

    Args:
        probabilities: shape (M, N), probability of the positive class by each of M >= 2 members.

    Raises:
        InvalidInputError: another shape, fewer than 2 or more than 100 members, or a value outside [0, 1].

    Examples:
        >>> member_spread([[0.25, 0.5, 0.0], [0.75, 0.5, 1.0]]).tolist()
        [0.25, 0.0, 0.5]
    """
    try:
        drawn = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("expected members of the same shape.", field="members") from error
    if drawn.ndim != 2:
        raise InvalidInputError(f"expected shape (M, N), got {drawn.shape}.", field="members")
    check_members(len(drawn))
    if not ((drawn >= 0) & (drawn <= 1)).all():
        raise InvalidInputError("expected probabilities in [0, 1].", field="members")
    return np.minimum(drawn.std(axis=0), LARGEST_SPREAD)
