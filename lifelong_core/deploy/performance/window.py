"""The window whose decisions are judged: distinct rows, their numbers of samples, and what the head made of them."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.quantification.summaries.window_summary import WindowSummary
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
