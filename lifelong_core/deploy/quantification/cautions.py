"""Limits of every estimate from a calibration set: cautions as sentences, and the separation of the classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.calibration.cross_entropy import chunks
from lifelong_core.deploy.labeled import LabeledLogits, class_means, independent_cases
from lifelong_core.deploy.numerics.newton import one_hot
from lifelong_core.deploy.numerics.simplex import tangent_basis
from lifelong_core.values.arrays import MANY_CLASSES, Floats, Mask
from lifelong_core.values.scientific import chi_square_quantile

FEW_SAMPLES = 200
FEW_OF_A_CLASS = 30
"""With fewer samples of a class, coverage depends on the draw of the calibration set. Nominal 95 % intervals, with
biases taken as certain, covered .98, .93 and .89 for windows of 100, 500 and 2,000 with fewer samples (four
populations, ten draws or more), and .96, .96 and .95 with more (seventeen)."""

RULE_OF_THREE = 3.0
"""With no mistake in n cases, the one-sided 95 % bound of the share of mistakes is about 3 / n."""

_NAMED = 5
"""Most classes that a sentence names; of more it gives the number."""

MINIMUM_SEPARATION = 1e-4
"""Smallest allowed singular value of the simplex of the classes' mean features, on directions that sum to zero, in
units of the features' standard deviation. Below it some change of the prevalence needs a hundred million samples to be
seen."""
CHANCE = 0.05
"""A direction counts as possibly blurred if chance alone makes the class means differ this much with at least this
probability."""
_ROUNDING = 1e-12
"""Features with a smaller spread are constant up to rounding."""
_CERTAIN = 50.0
"""Multiple of its mean that no chi square, with any degrees of freedom, exceeds with a relevant probability."""


def find_cautions(calibration: LabeledLogits, blurred: Floats | None) -> tuple[str, ...]:
    """Warnings as sentences; empty for a sound calibration set.

    Args:
        calibration: the calibration set.
        blurred: shape (K, C), changes of the prevalence that may not show (see `separation`), if they were examined.

    Examples:
        >>> labels = np.repeat([0, 1], [250, 12])
        >>> logits = np.eye(2)[labels]
        >>> logits[[0, -1]] = logits[[-1, 0]]  # one mistake in each class
        >>> find_cautions(LabeledLogits(logits, labels), None)
        ('Fewer than 30 calibration samples are of class 1: intervals may be too narrow.',)
    """
    cautions: list[str] = []
    rare = [k for k, count in enumerate(calibration.counts.tolist()) if count < FEW_OF_A_CLASS]
    if rare:
        cautions.append(
            f"Fewer than {FEW_OF_A_CLASS} calibration samples are of {_named(rare)}: intervals may be too narrow."
        )
    if calibration.samples < FEW_SAMPLES:
        cautions.append(
            f"There are fewer than {FEW_SAMPLES} calibration samples ({calibration.samples}): intervals may be too "
            "narrow."
        )
    cautions += _unmistaken(calibration)
    if blurred is not None and blurred.shape[0]:
        mixed = [
            k for k, weight in enumerate(abs(blurred).max(axis=0).tolist()) if weight > 1 / blurred.shape[1]
        ]
        cautions.append(
            f"The calibration set does not show that mixes of {_named(mixed)} look different: their prevalences may "
            "be confused."
        )
    return tuple(cautions)


def _unmistaken(calibration: LabeledLogits) -> list[str]:
    """Warning about classes without a mistaken calibration case (Hanley and Lippman-Hand 1983).

    Such cases have no spread: no interval from them shows the mistakes that further cases would.
    """
    mistaken = calibration.labels[calibration.logits.argmax(axis=1) != calibration.labels]
    cases = independent_cases(calibration)
    flawless = np.setdiff1d(np.flatnonzero(cases > RULE_OF_THREE), mistaken)
    if not flawless.size:
        return []
    counts = cases[flawless]
    bound = RULE_OF_THREE / int(counts.min())
    number = f"{counts.min():,}" + (" or more" if np.ptp(counts) else "")
    return [
        f"No calibration case of {_named(flawless.tolist())} was mistaken in {number}, so up to {100 * bound:.2g} % "
        f"may be: intervals narrower than ±{bound:.2g} are not certain."
    ]


def _named(classes: Sequence[int]) -> str:
    if len(classes) > _NAMED:
        return f"{len(classes)} classes"
    *first, last = (str(k) for k in classes)
    return f"class {last}" if not first else f"classes {', '.join(first)} and {last}"


@dataclass(frozen=True)
class Separation:
    """Separation of mixes of the classes by their mean features."""

    thinnest: float
    """smallest singular value of the class means, in standard deviations of the features"""
    pair: tuple[int, int]
    """the two classes that move most along the thinnest direction, in opposite senses"""
    blurred: Floats
    """shape (K, C), unit vectors that sum to zero: changes of the prevalence that may change no mean feature"""

    @classmethod
    def of(cls, features: Floats, calibration: LabeledLogits) -> Self:
        """Separation by the calibration samples' features, shape (N, F)."""
        means = class_means(features, calibration)
        basis = tangent_basis(calibration.classes)
        # All directions: with fewer features than classes, some show in none of them.
        _, found, rows = np.linalg.svd(means @ basis, full_matrices=True)
        sizes = np.concatenate([found, np.zeros(basis.shape[1] - found.size)])
        directions = rows @ basis.T
        spread = float(np.sqrt(features.var(axis=0).sum()))
        shares = _shares_of_chance(calibration)
        residuals = features - means.T[calibration.labels]
        blurred = _blurred(sizes, residuals, shares, directions, calibration)
        thinnest = directions[-1]
        return cls(
            thinnest=float(sizes[-1]) / spread if spread > _ROUNDING else 0.0,
            pair=(int(np.argmax(thinnest)), int(np.argmin(thinnest))),
            blurred=directions[blurred],
        )

    def ambiguity(self, prevalence: Floats) -> Floats:
        """Covariance, shape (C, C), of moves of a prevalence along the blurred directions within the simplex."""
        reach = np.array([_reach(prevalence, direction) for direction in self.blurred])
        scaled = self.blurred * reach[:, np.newaxis]
        return scaled.T @ scaled


def _shares_of_chance(calibration: LabeledLogits) -> Floats:
    """Share of each sample's squared residual in the sampling variance of each class mean, shape (N, C)."""
    counts, labels = calibration.counts, calibration.labels
    shares = one_hot(labels, counts.size) / (counts * np.maximum(counts - 1, 1))
    # One sample shows no spread: it is taken to be that within the other classes.
    shares[:, counts == 1] = 1 / max(labels.size - counts.size, 1)
    return shares


def _blurred(
    sizes: Floats, residuals: Floats, shares: Floats, directions: Floats, calibration: LabeledLogits
) -> Mask:
    """Which directions may be blurred, shape (C - 1,)."""
    if calibration.classes <= MANY_CLASSES:
        pairs = zip(sizes, directions, strict=True)
        return np.array([_is_chance(size, residuals, shares, direction) for size, direction in pairs])
    # Samples of a class have one weight, so that sums over classes replace a product of matrices per direction.
    first = np.unique(calibration.labels, return_index=True)[1]
    weights = directions**2 @ shares[first].T
    squares = (residuals**2).sum(axis=1)
    means = weights @ np.bincount(calibration.labels, squares)
    blurred = np.where(means > 0, sizes**2 <= _CERTAIN * means, sizes <= _ROUNDING)
    doubtful = np.flatnonzero(blurred & (means > 0))
    if doubtful.size:
        products = _squared_products(residuals, calibration)
        own = weights[doubtful]
        freedom = means[doubtful] ** 2 / ((own @ products) * own).sum(axis=1)
        quantiles = [chi_square_quantile(one, 1 - CHANCE) for one in freedom.tolist()]
        blurred[doubtful] = sizes[doubtful] ** 2 < np.array(quantiles) / freedom * means[doubtful]
    return blurred


def _squared_products(residuals: Floats, calibration: LabeledLogits) -> Floats:
    """Sum over the samples of two classes of (residual * residual)^2, shape (C, C)."""
    order = np.argsort(calibration.labels, kind="stable")
    rows, labels = residuals[order].astype(np.float32), calibration.labels[order]
    begins = np.cumsum(calibration.counts) - calibration.counts
    result = np.zeros((calibration.classes, calibration.classes))
    for part in chunks(labels.size, labels.size, 1 << 21):
        sums = np.add.reduceat((rows[part] @ rows.T) ** 2, begins, axis=1)
        np.add.at(result, labels[part], sums)
    return result


def _is_chance(size: float, residuals: Floats, shares: Floats, direction: Floats) -> bool:
    """Whether means that are equal in this direction could differ so much by chance.

    The squared difference of means is then a sum of weighted chi squares, approximated by a multiple of one with the
    same mean and variance (Satterthwaite 1946).
    """
    weights = shares @ direction**2
    mean = float(weights @ (residuals**2).sum(axis=1))
    if mean <= 0:
        return size <= _ROUNDING
    if size**2 > _CERTAIN * mean:
        return False
    scaled = residuals * np.sqrt(weights)[:, np.newaxis]
    gram = scaled.T @ scaled if scaled.shape[1] <= scaled.shape[0] else scaled @ scaled.T
    freedom = mean**2 / float((gram**2).sum())
    return size**2 < chi_square_quantile(freedom, 1 - CHANCE) / freedom * mean


def _reach(prevalence: Floats, direction: Floats) -> float:
    """Longest step along the direction, in either sense, that keeps every class at 0 or more."""
    down, up = direction < 0, direction > 0
    return float(max((prevalence[down] / -direction[down]).min(), (prevalence[up] / direction[up]).min()))
