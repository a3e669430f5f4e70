"""The confusion matrix, the input of every metric that counts."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.values.arrays import Floats, Integers, as_confusion, as_labels, as_prevalence
from lifelong_core.values.errors import InvalidInputError


def confusion_matrix(
    labels: ArrayLike, decisions: ArrayLike, *, classes: int, decisions_count: int | None = None
) -> Integers:
    """Count the samples of class i with decision j, shape (C, D) (thesis Def. 2.11).

    Args:
        labels: shape (N,), true classes 0..C-1.
        decisions: shape (N,), 0..D-1.
        classes: number of classes C.
        decisions_count: number of decisions D, C + 1 where abstaining is one; None: C.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> confusion_matrix([0, 0, 1, 1], [0, 1, 1, 1], classes=2).tolist()
        [[1, 1], [0, 2]]
    """
    columns = classes if decisions_count is None else decisions_count
    counts = np.bincount(
        confusion_cells(labels, decisions, classes=classes, decisions_count=columns),
        minlength=classes * columns,
    )
    return counts.reshape(classes, columns).astype(np.int64)


def confusion_cells(
    labels: ArrayLike, decisions: ArrayLike, *, classes: int, decisions_count: int
) -> Integers:
    """Entry of each sample in the flattened confusion matrix, label * D + decision, shape (N,).

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> confusion_cells([0, 1], [1, 1], classes=2, decisions_count=2).tolist()
        [1, 3]
    """
    reference = as_labels(labels, classes=classes)
    decided = as_labels(decisions, classes=decisions_count, field="decisions")
    if reference.shape != decided.shape:
        raise InvalidInputError(
            f"expected as many decisions as labels ({reference.size}), got {decided.size}.", field="decisions"
        )
    return reference * decisions_count + decided


def as_confusions(values: ArrayLike) -> Floats:
    """Scale one confusion matrix (C, D), or an array of them (..., C, D), so that the largest entry is in [0.5, 1).

    Every metric is the same for a multiple of the matrix. Scaling by a power of two changes no digit, and afterwards no
    product of entries can overflow.

    Raises:
        InvalidInputError: another shape, or an entry that is negative or not finite.

    Examples:
        >>> as_confusions([[8, 2], [1, 9]]).tolist()
        [[0.5, 0.125], [0.0625, 0.5625]]
    """
    counts = _stack(np.asarray(values)) if _dimensions(values) > 2 else as_confusion(values)
    _, exponent = np.frexp(counts.max(axis=(-2, -1), keepdims=True))
    return np.ldexp(counts, -exponent)


def reweight_classes(confusions: ArrayLike, prevalence: ArrayLike) -> Floats:
    """Confusion matrices with the same rates within each class and other class shares (thesis Prop. 2.25).

    Args:
        confusions: shape (C, D), or (..., C, D).
        prevalence: shape (C,), the class shares to have.

    Returns:
        Shape (..., C, D), row i sums to prevalence[i]; nan in the row of a class that has a share and no sample.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> reweight_classes([[40, 10], [5, 45]], [0.9, 0.1]).round(2).tolist()
        [[0.72, 0.18], [0.01, 0.09]]
    """
    counts = as_confusions(confusions)
    shares = as_prevalence(prevalence, classes=counts.shape[-2])[:, np.newaxis]
    return np.where(shares > 0, shares * ratio(counts, counts.sum(axis=-1, keepdims=True)), 0.0)


def ratio(numerator: Floats | float, denominator: Floats | float) -> Floats:
    """Quotient; nan for 0 / 0, infinite for x / 0 and beyond the largest number, without a warning.

    Examples:
        >>> ratio(np.array([1.0, 1.0, 0.0]), np.array([2.0, 0.0, 0.0])).tolist()
        [0.5, inf, nan]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.divide(numerator, denominator + 0.0)  # -0.0, of negative costs, becomes 0.0


@dataclass(frozen=True, eq=False)
class OneVersusRest:
    """True and false positives and negatives of each class against the rest; each of shape (..., C)."""

    true_positives: Floats
    false_negatives: Floats
    false_positives: Floats
    true_negatives: Floats

    @classmethod
    def of(cls, counts: Floats) -> Self:
        """Count from confusion matrices (..., C, D) without subtraction, so that zeros of weights are exactly 0."""
        classes = counts.shape[-2]
        diagonal = np.eye(classes, counts.shape[-1], dtype=np.bool_)
        wrong = np.where(diagonal, 0.0, counts)
        elsewhere = np.where(diagonal, 0.0, _sums_of_the_others(counts))[..., :classes]
        return cls(
            true_positives=np.diagonal(counts, axis1=-2, axis2=-1),
            false_negatives=wrong.sum(axis=-1),
            false_positives=wrong.sum(axis=-2)[..., :classes],
            true_negatives=elsewhere.sum(axis=-2),
        )

    @property
    def positives(self) -> Floats:
        """Samples of the class."""
        return self.true_positives + self.false_negatives

    @property
    def negatives(self) -> Floats:
        """Samples of the rest."""
        return self.true_negatives + self.false_positives

    @property
    def decided_positive(self) -> Floats:
        """Decisions for the class."""
        return self.true_positives + self.false_positives

    @property
    def decided_negative(self) -> Floats:
        """Decisions against it."""
        return self.true_negatives + self.false_negatives

    @property
    def determinant(self) -> Floats:
        """TP TN - FP FN: 0 where decisions and classes are independent."""
        return self.true_positives * self.true_negatives - self.false_positives * self.false_negatives


def one_versus_rest(confusion: ArrayLike) -> OneVersusRest:
    """True and false positives and negatives of each class against the rest (thesis Def. 2.13).

    Args:
        confusion: shape (C, D).

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> counts = one_versus_rest([[4, 1, 0], [0, 5, 0], [2, 0, 3]])
        >>> counts.false_positives.tolist(), counts.true_negatives.tolist()
        ([2.0, 1.0, 0.0], [8.0, 9.0, 10.0])
    """
    return OneVersusRest.of(as_confusion(confusion))


def _dimensions(values: ArrayLike) -> int:
    try:
        return np.ndim(values)
    except ValueError:  # rows of unequal length, which `as_confusion` explains
        return 0


def _stack(values: NDArray[np.generic]) -> Floats:
    """Checked by the smallest and the largest of each entry."""
    stack = values.astype(np.float64)
    leading = tuple(range(stack.ndim - 2))
    as_confusion(stack.min(axis=leading, initial=0))
    as_confusion(stack.max(axis=leading, initial=0))
    return stack


def _sums_of_the_others(counts: Floats) -> Floats:
    """Sum of each row without the current entry, shape (..., C, D), added up from both ends."""
    sums = np.zeros_like(counts)
    sums[..., 1:] += np.cumsum(counts[..., :-1], axis=-1)
    sums[..., :-1] += np.cumsum(counts[..., :0:-1], axis=-1)[..., ::-1]
    return sums
