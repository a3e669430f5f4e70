"""Proposed answers that data suggest, to be confirmed by a person."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.metrics.inputs import MOST_CLASSES_GUESSED
from lifelong_core.values.arrays import (
    Floats,
    Integers,
    as_decisions,
    as_groups,
    as_labels,
    as_prevalence,
    as_probabilities,
)
from lifelong_core.values.documents import Frozen
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import normal_probability

IMBALANCE = 2.0
"""Classes are called imbalanced where one is at least this many times as frequent as another. No source has a limit."""

REPRESENTATIVE_LEVEL = 0.01
"""Significance level, over all classes, of the test that the class mix differs from that of use."""


class Proposal(Frozen):
    """An answer that data suggest."""

    field: str = Field(description="The field of the fingerprint.")
    value: Any
    reason: str


def propose_answers(
    labels: ArrayLike,
    *,
    classes: int | None = None,
    probabilities: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    target_prevalence: ArrayLike | None = None,
) -> tuple[Proposal, ...]:
    """Return answers to the items that data can answer, each with its reason; confirm them with `with_answers`.

    Args:
        labels: shape (N,), true classes 0..C-1.
        classes: number of classes C; None: as many columns as the probabilities have, or one more than the largest
            label.
        probabilities: shape (N, C), or None where there are no scores; a row that is not finite is an invalid output.
        decisions: shape (N,), 0..D-1, or -1 for an invalid output.
        groups: shape (N,), the group of each sample, its patient for instance.
        target_prevalence: shape (C,), share of each class where the classifier is used.

    Raises:
        InvalidInputError: a shape or a value does not fit, or there is no label.

    Examples:
        >>> for proposal in propose_answers([0, 0, 0, 0, 0, 1], groups=["a", "a", "b", "b", "c", "c"]):
        ...     print(proposal.field, proposal.value, "-", proposal.reason)
        number_of_classes 2 - The largest label is 1.
        class_imbalance True - Class 0 has 5 of 6 samples, class 1 has 1.
        dependent_cases True - 6 samples belong to 3 groups.
    """
    scores = None if probabilities is None else _as_scores(probabilities, classes)
    count, why = _classes(labels, classes, scores)
    reference = as_labels(labels, classes=count)
    if reference.size == 0:
        raise InvalidInputError("expected at least one label.", field="labels")
    proposals = [Proposal(field="number_of_classes", value=count, reason=why)]
    sizes = np.bincount(reference, minlength=count).astype(np.int64)
    if scores is not None:
        proposals.append(_scores_available(scores))
    if target_prevalence is not None:
        proposals += _representative(
            sizes, as_prevalence(target_prevalence, classes=count, field="target_prevalence")
        )
    proposals.append(_imbalance(sizes))
    keys = as_groups(groups, samples=reference.size)
    if keys is not None:
        proposals.append(_dependent(np.unique(keys).size, reference.size))
    if scores is not None or decisions is not None:
        proposals.append(_invalid(scores, decisions, reference.size, count))
    return tuple(proposals)


def propose_costs(fingerprint: ProblemFingerprint) -> Proposal | None:
    """Return the costs that correspond to a risk threshold (thesis Def. 2.57); None without such a threshold.

    Examples:
        >>> propose_costs(ProblemFingerprint(
        ...     number_of_classes=2, decision_rule="cost_benefit", threshold_perspective="risk_threshold",
        ...     risk_threshold=0.1, target_class=1,
        ... )).value
        ((0.0, 1.0), (9.0, 0.0))
    """
    risk, found = fingerprint.risk_threshold, fingerprint.target_class
    if risk is None or found not in (0, 1) or fingerprint.number_of_classes != 2:
        return None
    if (fingerprint.decision_rule, fingerprint.threshold_perspective) != ("cost_benefit", "risk_threshold"):
        return None
    missed = float(f"{(1 - risk) / risk:.6g}")
    return Proposal(
        field="costs",
        value=((0.0, 1.0), (missed, 0.0)) if found == 1 else ((0.0, missed), (1.0, 0.0)),
        reason=f"To act above a risk of {risk:g} says that one missed case weighs as much as {missed:g} false alarms.",
    )


def _as_scores(probabilities: ArrayLike, classes: int | None) -> Floats:
    """Check probabilities, in which rows of invalid outputs are allowed."""
    try:
        scores = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("expected numbers of shape (N, C).", field="probabilities") from error
    if scores.ndim == 2 and scores.size:
        usable = np.isfinite(scores).all(axis=1, keepdims=True)
        as_probabilities(np.where(usable, scores, 1 / scores.shape[1]), classes=classes)
        return scores
    return as_probabilities(scores, classes=classes)


def _classes(labels: ArrayLike, classes: int | None, scores: Floats | None) -> tuple[int, str]:
    if classes is not None:
        return classes, "You said so."
    if scores is not None:
        return scores.shape[1], f"Each sample has {scores.shape[1]} scores."
    largest = int(as_labels(labels, classes=MOST_CLASSES_GUESSED).max(initial=0))
    return max(largest + 1, 2), f"The largest label is {largest}."


def _scores_available(scores: Floats) -> Proposal:
    graded = bool(((scores > 0) & (scores < 1)).any())
    reason = (
        "The scores take values between 0 and 1." if graded else "The scores are 0 or 1, which are decisions."
    )
    return Proposal(field="class_scores_available", value=graded, reason=reason)


def _representative(sizes: Integers, target: Floats) -> list[Proposal]:
    same = _explained_by_chance(sizes, target)
    observed = ", ".join(f"{share:.3g}" for share in sizes / sizes.sum())
    wanted = ", ".join(f"{share:.3g}" for share in target)
    verdict = "chance explains the difference" if same else "which is more than chance explains"
    reason = f"The class shares are {observed}, those of use {wanted}: {verdict}."
    proposals = [Proposal(field="prevalences_representative", value=same, reason=reason)]
    if not same:
        given = "You gave them."
        proposals.append(Proposal(field="target_prevalences_known", value=True, reason=given))
        proposals.append(Proposal(field="target_prevalences", value=tuple(target.tolist()), reason=given))
    return proposals


def _explained_by_chance(sizes: Integers, target: Floats) -> bool:
    """Whether sampling from the target prevalences explains the class counts."""
    spread = np.sqrt(sizes.sum() * target * (1 - target))
    off = np.abs(sizes - sizes.sum() * target)
    with np.errstate(
        invalid="ignore", divide="ignore"
    ):  # a class that is never, or always, there: inf or 0 / 0
        scores = np.nan_to_num(off / spread, nan=0.0, posinf=np.inf)
    p_values = 2 * normal_probability(-scores)
    return bool(p_values.min() * sizes.size >= REPRESENTATIVE_LEVEL)


def _imbalance(sizes: Integers) -> Proposal:
    most, least = int(sizes.argmax()), int(sizes.argmin())
    reason = f"Class {most} has {sizes[most]} of {sizes.sum()} samples, class {least} has {sizes[least]}."
    return Proposal(
        field="class_imbalance", value=bool(sizes[most] >= IMBALANCE * sizes[least]), reason=reason
    )


def _dependent(groups: int, samples: int) -> Proposal:
    return Proposal(
        field="dependent_cases",
        value=groups < samples,
        reason=f"{samples} samples belong to {groups} groups.",
    )


def _invalid(scores: Floats | None, decisions: ArrayLike | None, samples: int, classes: int) -> Proposal:
    invalid = np.zeros(samples, dtype=bool)
    if scores is not None:
        if scores.shape[0] != samples:
            raise InvalidInputError(
                f"expected one row per label ({samples}), got {scores.shape[0]}.", field="probabilities"
            )
        invalid |= ~np.isfinite(scores).all(axis=1)
    if decisions is not None:
        decided = as_decisions(decisions, classes=classes)
        if decided.shape != (samples,):
            raise InvalidInputError(
                f"expected one decision per label ({samples}), got shape {decided.shape}.", field="decisions"
            )
        invalid |= decided == -1
    number = int(invalid.sum())
    reason = f"{number} of {samples} samples {'has' if number == 1 else 'have'} no usable output."
    if number == 0:
        reason = f"All {samples} samples have a usable output."
    return Proposal(field="invalid_outputs", value=number > 0, reason=reason)
