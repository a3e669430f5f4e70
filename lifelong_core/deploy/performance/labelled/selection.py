"""Do the labelled samples of a population differ from the unlabelled ones?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.documents import FlatDocument
from lifelong_core.deploy.numerics.newton import member_sums
from lifelong_core.values.arrays import Floats, as_groups, as_logits, as_parameter, centre_rows, softmax
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import f_tail

_AXES = 10
_SAMPLES_PER_AXIS = 5
_SMALLEST_AXIS = 1e-6


@dataclass(frozen=True)
class SelectionTest(FlatDocument):
    """Test of "labelled and unlabelled logits have the same distribution"."""

    statistic: float
    p_value: float
    level: float
    rejected: bool
    labelled: int
    unlabelled: int
    text: str
    """one sentence"""


def selection_test(
    labelled: ArrayLike,
    unlabelled: ArrayLike,
    *,
    labelled_groups: ArrayLike | None = None,
    unlabelled_groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.01,
) -> SelectionTest:
    """Test whether labelled and unlabelled logits of one population differ.

    Where they do, the labelled samples were selected, and performance on them alone is not that of the population. The
    test compares the means of the softmax, of the size of the centred logits and of the distance of the two largest
    ones, on their main axes (Hotelling 1931), with a covariance that respects groups. It does not see a selection that
    depends on the true class beyond the logits.

    Args:
        labelled: shape (m, C), logits of samples with label.
        unlabelled: shape (n, C), logits of samples without label, or of all samples, labelled ones included (the test
            is then conservative).
        labelled_groups: shape (m,); None: all independent.
        unlabelled_groups: shape (n,); a group may have samples in both parts.
        weights: shape (m,), positive, inverse propensities of the labelled samples; None: equal.
        level: largest probability of a rejection where the two do not differ.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    first = as_logits(labelled, field="labelled")
    second = as_logits(unlabelled, classes=first.shape[1], field="unlabelled")
    counts = len(first), len(second)
    if min(counts) == 0:
        raise InvalidInputError(
            "expected at least one sample in each part.", field="labelled" if counts[0] == 0 else "unlabelled"
        )
    shares = _shares(weights, counts[0])
    member = _members(labelled_groups, unlabelled_groups, counts)
    accepted = as_level(level, "level")
    features = _features(np.vstack([first, second]))
    signed = np.concatenate([shares, np.full(counts[1], -1 / counts[1])])
    statistic, degrees, freedom = _statistic(features, signed, member)
    p_value = 1.0
    if degrees > 0 and freedom > 0:
        p_value = f_tail(degrees, freedom, statistic * freedom / ((freedom + degrees - 1) * degrees))
    rejected = p_value < accepted
    verdict = "differ from" if rejected else "do not differ detectably from"
    text = f"The {counts[0]} labelled samples {verdict} the {counts[1]} unlabelled ones (p = {p_value:.2g})"
    text += ": performance on them alone may not be that of the population." if rejected else "."
    return SelectionTest(statistic, p_value, accepted, rejected, *counts, text)


def _shares(weights: ArrayLike | None, count: int) -> Floats:
    """Weights of the labelled samples that sum to 1."""
    found = np.ones(count) if weights is None else as_parameter(weights, field="weights")
    if found.shape != (count,) or (found <= 0).any():
        raise InvalidInputError(f"expected {count} positive numbers.", field="weights")
    return found / found.sum()


def _members(
    first: ArrayLike | None, second: ArrayLike | None, counts: tuple[int, int]
) -> NDArray[np.intp] | None:
    """Group of each sample of both parts; a key in both parts is one group."""
    keys = as_groups(first, samples=counts[0], field="labelled_groups")
    others = as_groups(second, samples=counts[1], field="unlabelled_groups")
    if keys is None and others is None:
        return None
    if keys is None or others is None:
        raise InvalidInputError(
            "expected groups of both parts, or of none.",
            field="labelled_groups" if keys is None else "unlabelled_groups",
        )
    both = as_groups(np.concatenate([np.asarray(first), np.asarray(second)]), samples=sum(counts))
    return np.unique(np.asarray(both), return_inverse=True)[1]


def _features(logits: NDArray[np.float32]) -> Floats:
    """Features that show moved, scaled and less certain logits, shape (N, C + 2), with unit variance."""
    scores = centre_rows(logits)
    ordered = np.sort(scores, axis=1)
    sizes = np.log(np.maximum((scores**2).sum(axis=1), np.finfo(np.float64).tiny))
    features = np.column_stack([softmax(scores), sizes, ordered[:, -1] - ordered[:, -2]])
    deviations = features.std(axis=0)
    return (features - features.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)


def _statistic(features: Floats, signed: Floats, member: NDArray[np.intp] | None) -> tuple[float, int, float]:
    """Hotelling's statistic, its degrees of freedom and those of its denominator."""
    labelled = signed > 0
    difference = signed @ features
    means = np.where(
        labelled[:, np.newaxis],
        signed[labelled] @ features[labelled],
        -signed[~labelled] @ features[~labelled],
    )
    sums = (features - means) * signed[:, np.newaxis]
    if member is not None:
        sums = member_sums(sums, member)
    lengths = (sums**2).sum(axis=1)
    # The part with few samples dominates the spread, so that their number limits what is known of it.
    units = float(lengths.sum() ** 2 / max(float((lengths**2).sum()), np.finfo(np.float64).tiny))
    covariance = sums.T @ sums * (units / max(units - 1, 1.0))
    spread = features.T @ features / len(features)
    sizes, axes = np.linalg.eigh(spread)
    kept = sizes > _SMALLEST_AXIS * max(float(sizes.max()), np.finfo(np.float64).tiny)
    most = max(1, min(_AXES, int(units / _SAMPLES_PER_AXIS)))
    axes = axes[:, kept][:, ::-1][:, :most]
    if axes.shape[1] == 0:
        return 0.0, 0, 0.0
    step = axes.T @ difference
    statistic = float(step @ np.linalg.pinv(axes.T @ covariance @ axes, hermitian=True) @ step)
    return statistic, axes.shape[1], max(units - axes.shape[1], 1.0)
