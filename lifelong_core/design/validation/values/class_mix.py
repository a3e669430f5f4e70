"""Values at the class mix of use, where the data have another one (FP4.2).

One rule: a value is that of use if its metric does not depend on the class shares, or if it counts decisions and the
target prevalences are stated. Then the rates of each class are those of the data, and the class shares are the stated
ones; net benefit thresholds probabilities that are corrected to these shares (thesis Remark 2.58). Every other value is
that of the data, and no acceptance threshold is judged by it. Net benefit without stated target prevalences is
undefined.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.metrics import METRICS, corrected_probabilities
from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.metrics.scores.at_target import SHARE_OF_POSITIVES
from lifelong_core.values.arrays import Floats, Integers, as_prevalence
from lifelong_core.values.errors import InvalidInputError

NO_NET_BENEFIT = (
    "the class mix of the data is not that of use (FP4.2), and no target prevalences are stated, on which net benefit"
    " depends"
)


@dataclass(frozen=True, eq=False)
class ClassMix:
    """Class shares of use, where they differ from the shares of the data."""

    in_use: Floats | None
    """shape (C,), the stated target prevalences; None: not known"""
    of_scores: Floats
    """shape (C,), class shares for which the probabilities hold"""
    is_assumed: bool
    """whether `of_scores` are the shares of the data, because no others are stated"""

    @classmethod
    def of(
        cls, fingerprint: ProblemFingerprint, labels: Integers, score_prevalence: ArrayLike | None
    ) -> Self | None:
        """The class mix; None where the data have the class shares of use.

        Args:
            fingerprint: FP4.2 and the target prevalences.
            labels: shape (N,), of the data.
            score_prevalence: shape (C,), class shares for which the probabilities hold; None: those of the labels.

        Raises:
            InvalidInputError: `score_prevalence` does not fit, or lacks a class that occurs in use.
        """
        target = fingerprint.target_prevalences
        classes = fingerprint.number_of_classes or (2 if target is None else len(target))
        stated = (
            None
            if score_prevalence is None
            else as_prevalence(score_prevalence, classes=classes, field="score_prevalence")
        )
        if fingerprint.prevalences_representative is not False:
            return None
        in_use = None if target is None else np.array(target) / np.sum(target)
        if stated is not None and in_use is not None and (stated[in_use > 0] == 0).any():
            missing = int(np.flatnonzero((in_use > 0) & (stated == 0))[0])
            raise InvalidInputError(
                f"the share of class {missing} is 0, but it occurs in use.",
                field="score_prevalence",
                hint="State the class shares of the data on which the probabilities were calibrated.",
            )
        shares = np.bincount(labels, minlength=classes) / labels.size
        return cls(in_use, shares if stated is None else stated, is_assumed=stated is None)

    def corrected(self, probabilities: Floats) -> Floats:
        """Probabilities (n, C) for the class mix of use; nan if a class of use has no share to correct from."""
        if self.in_use is None:
            return probabilities
        if ((self.in_use > 0) & (self.of_scores == 0)).any():
            return np.full_like(probabilities, np.nan)
        return corrected_probabilities(probabilities, given=self.of_scores, wanted=self.in_use)

    def weigh(self, counts: Floats) -> Floats:
        """Counts (..., C, K), by class first, at the class mix of use; as they are where it is not known.

        nan in the row of a class of use without a sample.
        """
        if self.in_use is None:
            return counts
        shares = self.in_use[:, np.newaxis]
        return np.where(shares > 0, shares * ratio(counts, counts.sum(axis=-1, keepdims=True)), 0.0)

    def missing_class(self, labels: Integers) -> int | None:
        """A class that occurs in use and not among the labels."""
        if self.in_use is None:
            return None
        absent = np.bincount(labels, minlength=self.in_use.size) == 0
        found = np.flatnonzero(absent & (self.in_use > 0))
        return int(found[0]) if found.size else None


def is_converted(acronym: str, mix: ClassMix | None, *, has_prevalence: bool, at_target: bool) -> bool:
    """Whether a metric is computed at the class mix of use.

    Args:
        acronym: of the metric.
        mix: that of use; None: the data have it.
        has_prevalence: whether the metric itself is told class shares, as EC may be.
        at_target: whether it is computed at cut-offs, which are chosen for the class mix of use.
    """
    if mix is None or mix.in_use is None or has_prevalence:
        return False
    card = METRICS[acronym]
    return card.family == "counting" and (at_target or bool(card.prevalence_dependent))


def refusal(label: str, acronyms: tuple[str, ...], mix: ClassMix | None, *, is_of_use: bool) -> str | None:
    """The reason why no acceptance threshold is judged by a value; None if one may be.

    Args:
        label: of the metric.
        acronyms: the metric, and the target metric of its cut-offs.
        mix: that of use; None: the data have it.
        is_of_use: whether the value is computed at stated class shares.

    Examples:
        >>> mix = ClassMix(None, np.array([0.5, 0.5]), is_assumed=True)
        >>> refusal("BA", ("BA",), mix, is_of_use=False) is None
        True
        >>> refusal("BS", ("BS",), mix, is_of_use=False)
        'Not judged: BS depends on the class mix, and that of the data is not that of use (FP4.2).'
    """
    if mix is None or is_of_use or not any(map(_depends_on_class_mix, acronyms)):
        return None
    why = f"Not judged: {label} depends on the class mix, and that of the data is not that of use (FP4.2)."
    counts = mix.in_use is None and METRICS[acronyms[0]].family == "counting" and len(acronyms) == 1
    return f"{why} State the target prevalences." if counts else why


def _depends_on_class_mix(acronym: str) -> bool:
    """The share of positive decisions does, and is in no catalogue."""
    return acronym == SHARE_OF_POSITIVES or bool(METRICS[acronym].prevalence_dependent)
