"""Scores of a bucket of predictions for the sequential test: sums of a head's probabilities and of their products."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.numerics.rows import member_sums
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, as_groups, as_logits, as_parameter, read_only
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class BucketScores(ArrayValue):
    """First two moments of the scores of one bucket; a score is a head's probabilities for one sample.

    The size does not depend on the number of samples, and buckets add up.

    Examples:
        >>> one = BucketScores(1, [0.75, 0.25], [[0.5625, 0.1875], [0.1875, 0.0625]])
        >>> (one + one).samples, (one + one).mean.tolist()
        (2, [0.75, 0.25])
    """

    samples: int
    """number of samples, not negative"""
    sums: Floats
    """shape (C,), sums of the samples' scores"""
    products: Floats
    """shape (C, C), sum over groups of the outer product of a group's summed scores; a sample without a group is its
    own group"""
    largest: float = 1.0
    """samples of the largest group, at least 1"""

    def __post_init__(self) -> None:
        """Freeze the arrays.

        Raises:
            InvalidInputError: a shape or a value does not fit.
        """
        sums = as_parameter(self.sums, field="sums")
        products = as_parameter(self.products, field="products")
        if sums.ndim != 1 or sums.size < 2:
            raise InvalidInputError(f"expected shape (C,) with C >= 2, got {sums.shape}.", field="sums")
        if products.shape != sums.shape * 2:
            raise InvalidInputError(
                f"expected shape {sums.shape * 2}, got {products.shape}.", field="products"
            )
        if self.samples < 0:
            raise InvalidInputError("expected a number that is not negative.", field="samples")
        if not self.largest >= 1:
            raise InvalidInputError("expected a number of at least 1.", field="largest")
        object.__setattr__(self, "sums", read_only(sums))
        object.__setattr__(self, "products", read_only(products))

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.sums.size

    @property
    def mean(self) -> Floats:
        """Mean score, shape (C,); NaN without samples."""
        return self.sums / self.samples if self.samples else np.full(self.classes, np.nan)

    def __add__(self, other: Self) -> Self:
        """Join two buckets without a common group; associative and commutative up to rounding.

        Raises:
            InvalidInputError: the other has another number of classes.
        """
        if other.classes != self.classes:
            raise InvalidInputError(f"expected {self.classes} classes, got {other.classes}.", field="buckets")
        return type(self)(
            self.samples + other.samples,
            self.sums + other.sums,
            self.products + other.products,
            max(self.largest, other.largest),
        )

    def squares_around(self, centre: Floats) -> Floats:
        """Sum over groups of the outer product of a group's summed (score - centre), shape (C, C).

        The two moments suffice, because scores sum to 1: a group's size is the sum of its summed scores.
        """
        sized = self.products.sum(axis=1)  # summed scores of each group, times its size
        return (
            self.products
            - np.outer(sized, centre)
            - np.outer(centre, sized)
            + sized.sum() * np.outer(centre, centre)
        )


def bucket_scores(
    head: PostProcessingHead,
    logits: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    design_effect: float = 1.0,
    largest: float | None = None,
) -> BucketScores:
    """Compute the scores of a bucket of samples, in any order.

    Args:
        head: head whose probabilities are the scores.
        logits: shape (N, C), N >= 0.
        counts: shape (N,), samples per row; None: one each. Rows that represent slightly different samples reduce the
            accuracy of the scores; the effect on their mean must stay far below the tolerance.
        groups: shape (N,); samples of one group may depend on each other, and all samples of a row are in its group.
            Groups should not span several buckets: if they do, use longer buckets.
        design_effect: if `groups` is None: number of dependent samples equivalent to one independent sample.
        largest: if `groups` is None: samples of the largest group, or an upper bound; at least the value from groups
            and design effect, which is the default. The bound on the loss of a bet by a bucket is strict only if no
            group is larger; a design effect is a mean over groups, so the largest group may exceed it.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> head = PostProcessingHead(1.0, [0.0, 0.0], [[0, 1], [1, 0]], [0.5, 0.5], ("benign", "malignant"))
        >>> bucket = bucket_scores(head, [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], groups=["a", "a", "b"])
        >>> bucket.samples, bucket.largest, bucket.mean.tolist()
        (3, 2.0, [0.5, 0.5])
    """
    rows = as_logits(logits, classes=head.classes)
    keys = as_groups(groups, samples=rows.shape[0])
    weights = _as_counts(counts, rows.shape[0])
    if not 1 <= design_effect < np.inf:
        raise InvalidInputError(f"expected at least 1, got {design_effect}.", field="design_effect")
    if largest is not None and not 1 <= largest < np.inf:
        raise InvalidInputError(f"expected at least 1, got {largest}.", field="largest")
    samples = int(weights.sum())
    if samples == 0:
        return BucketScores(0, np.zeros(head.classes), np.zeros((head.classes, head.classes)))
    scores = head.apply(rows).probabilities
    if keys is None:
        products, seen = scores.T @ (scores * weights[:, np.newaxis]), 1.0
    else:
        sums, sizes = _by_group(scores * weights[:, np.newaxis], weights, keys)
        products, seen = sums.T @ sums, float(sizes.max())
    known = max(design_effect * seen, largest or 1.0)
    return BucketScores(samples, weights @ scores, design_effect * products, known)


def _as_counts(values: ArrayLike | None, samples: int) -> Floats:
    if values is None:
        return np.ones(samples)
    counts = as_parameter(values, field="counts")
    if counts.shape != (samples,) or (counts < 0).any() or (counts != np.floor(counts)).any():
        raise InvalidInputError(
            f"expected {samples} whole numbers that are not negative, one per row.", field="counts"
        )
    return counts


def _by_group(values: Floats, counts: Floats, groups: NDArray[np.generic]) -> tuple[Floats, Floats]:
    """Summed rows (G, C) and summed counts (G,) of each group."""
    _, member = np.unique(groups, return_inverse=True)
    return member_sums(values, member), member_sums(counts, member)
