"""Performance from posteriors: probabilities of the true class under the estimated prevalence, beside the decisions."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.performance.effects import Effects, TrueClasses
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.values.arrays import Floats, Integers, Logits, as_logits


@dataclass(frozen=True, eq=False)
class JudgedWindow:
    """Answers of a head to the rows of a window; the samples of a summary count as at their cell's mean logits."""

    counts: Floats
    """shape (U,), samples at each distinct row"""
    decisions: Integers
    """shape (U,), 0..D-1"""
    probabilities: Floats
    """shape (U, C), of the head"""

    @classmethod
    def of(cls, window: ArrayLike | WindowSummary, head: PostProcessingHead) -> Self:
        """Apply the head to a window, (N, C) or a summary."""
        if isinstance(window, WindowSummary):
            logits, counts = window.points()
        else:
            logits = as_logits(window, classes=head.classes)
            counts = np.ones(len(logits), dtype=np.int64)
        return cls.of_rows(logits, counts.astype(np.float64), head)

    @classmethod
    def of_rows(cls, logits: Logits, counts: Floats, head: PostProcessingHead) -> Self:
        """Apply the head to distinct rows, (U, C), with their numbers of samples, (U,)."""
        output = head.apply(logits)
        return cls(counts, output.decisions, output.probabilities)

    @property
    def shares(self) -> Floats:
        """Share of the samples at each row, shape (U,)."""
        return self.counts / self.counts.sum()

    def confusion(self, posteriors: Floats, decisions: int) -> Floats:
        """Shares of true class and decision, (C, D), given probabilities of the true classes, (U, C)."""
        weighted = posteriors * self.shares[:, np.newaxis]
        confusion = np.zeros((posteriors.shape[1], decisions))
        for decision in np.unique(self.decisions).tolist():
            confusion[:, decision] = weighted[self.decisions == decision].sum(axis=0)
        return confusion


def posteriors_in_window(
    quantifier: FittedQuantifier, window: ArrayLike | WindowSummary, prevalence: Floats
) -> Floats:
    """Posterior probability of each true class under a prevalence, shape (U, C), for the window's distinct rows.

    Args:
        quantifier: fitted on the calibration set; its class densities are used.
        window: logits, shape (N, C), or a summary by this quantifier.
        prevalence: shape (C,).

    Raises:
        InvalidInputError: a shape or a value does not fit, or another quantifier made the summary.
    """
    return WindowPosteriors.of(quantifier, window, prevalence).posteriors


@dataclass(frozen=True, eq=False)
class WindowPosteriors:
    """Posteriors of the window's rows, and how they depend on the prevalence."""

    posteriors: Floats
    """shape (U, C), rows sum to 1"""
    ratios: Floats
    """shape (U, C), class densities divided by the density of the mix"""
    source: tuple[FittedQuantifier, ArrayLike | WindowSummary] | None = None
    """whose densities of which window; None: probabilities of another origin"""

    @classmethod
    def of(cls, quantifier: FittedQuantifier, window: ArrayLike | WindowSummary, prevalence: Floats) -> Self:
        """Posteriors under a prevalence, (C,)."""
        densities = quantifier.densities(window)
        mixed = densities @ prevalence
        # A row that no class of positive prevalence explains tells nothing.
        ratios = np.divide(
            densities, mixed[:, np.newaxis], out=np.ones_like(densities), where=mixed[:, np.newaxis] > 0
        )
        return cls(ratios * prevalence, ratios, (quantifier, window))

    def change(self, per_class: Floats, posterior_mean: Floats) -> Floats:
        """Derivative by the prevalence of sum_c posterior_c * per_class_c, shape (U, C).

        Args:
            per_class: shape (U, C).
            posterior_mean: shape (U,), that sum itself.
        """
        return self.ratios * (per_class - posterior_mean[:, np.newaxis])

    def true_classes(self, window: JudgedWindow, gradients: Floats) -> TrueClasses:
        """Effects of the true classes on K statistics of the confusion matrix, with gradients of shape (K, C, D)."""
        means = np.empty((self.posteriors.shape[0], len(gradients)))
        variances = np.empty(len(gradients))
        posteriors = np.maximum(self.posteriors, 0)
        for column, gradient in enumerate(gradients):
            per_class = gradient.T[window.decisions]
            means[:, column] = (posteriors * per_class).sum(axis=1)
            squares = (posteriors * (per_class - means[:, [column]]) ** 2).sum(axis=1)
            variances[column] = window.shares @ squares
        return TrueClasses(means, variances)

    def effects(self, window: JudgedWindow, gradients: Floats, values: Floats) -> Effects:
        """Effects on K statistics of the confusion matrix, with gradients of shape (K, C, D) and values (K,)."""
        rows = np.empty((self.posteriors.shape[0], len(gradients)))
        through = np.empty((self.posteriors.shape[1], len(gradients)))
        for column, gradient in enumerate(gradients):
            per_class = gradient.T[window.decisions]
            rows[:, column] = (self.posteriors * per_class).sum(axis=1)
            through[:, column] = window.shares @ self.change(per_class, rows[:, column])
        slopes = (
            self.slopes(gradient.T[window.decisions], row, window.shares)
            for gradient, row in zip(gradients, rows.T, strict=True)
        )
        return Effects(values, rows, through, self.density_effects(slopes), np.zeros(values.size))

    def slopes(self, per_class: Floats, posterior_mean: Floats, weights: Floats) -> Floats:
        """Derivative by the log densities of sum_n weight_n sum_c posterior_nc * per_class_nc, shape (U, C)."""
        centred = per_class - posterior_mean[:, np.newaxis]
        return weights[:, np.newaxis] * self.posteriors * centred

    def density_effects(self, slopes: Iterable[Floats]) -> Floats:
        """Effects of each calibration sample through the densities on statistics with these slopes, shape (M, K)."""
        if self.source is None:
            return np.zeros((0, len(list(slopes))))
        quantifier, window = self.source
        return quantifier.density_effects(window, slopes)
