"""Outputs of a model for labelled samples, checked once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.values.arrays import (
    Floats,
    Integers,
    Mask,
    as_decisions,
    as_groups,
    as_labels,
    as_logits,
    as_probabilities,
    softmax,
)
from lifelong_core.values.errors import InvalidInputError

INVALID = -1
"""The decision on a sample for which the model gave no valid output."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelOutputs:
    """Outputs of one model for the common samples."""

    probabilities: ArrayLike | None = None
    """shape (N, C)"""
    logits: ArrayLike | None = None
    """shape (N, C), in place of probabilities, which are their softmax"""
    decisions: ArrayLike | None = None
    """shape (N,): classes, C to abstain, -1 for no valid output; None: the likeliest class (ties: the lowest index)"""
    score_prevalence: ArrayLike | None = None
    """shape (C,), class shares for which the probabilities hold, those of their calibration or those that a head
    assumes; None: those of the labels"""
    cut_off_data: tuple[ArrayLike, ArrayLike] | None = None
    """labels (M,) and this model's probabilities (M, C) of other samples, on which cut-offs are chosen"""
    uncertainties: ArrayLike | None = None
    """shape (N,), predicted uncertainty of each sample, not negative; two classes only"""
    members: Sequence[ArrayLike] | None = None
    """in place of uncertainties: probabilities (N, C) of the same samples by several models, dropout draws or
    augmentations, whose spread is the uncertainty; without probabilities and logits, the model's are their mean"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """Labelled samples with checked outputs of a model."""

    labels: Integers
    """shape (N,), true classes"""
    probabilities: Floats | None
    """shape (N, C); a sample without a valid output has equal ones, which count nowhere"""
    decisions: Integers
    """shape (N,): classes, C to abstain, -1 for no valid output"""
    unit: Integers
    """shape (N,), 0..U-1: which samples belong together"""
    classes: int
    is_decided: bool
    """True: decisions were given; False: they follow from the probabilities"""

    @classmethod
    def of(
        cls, labels: ArrayLike, outputs: ModelOutputs, *, classes: int, groups: ArrayLike | None = None
    ) -> Self:
        """Check labels and outputs.

        Raises:
            InvalidInputError: a shape or a value does not fit, there is no sample, or nothing was given to judge.
        """
        reference = as_labels(labels, classes=classes)
        if reference.size == 0:
            raise InvalidInputError("expected at least one sample.", field="labels")
        decisions = None if outputs.decisions is None else as_decisions(outputs.decisions, classes=classes)
        is_valid = np.ones(reference.size, np.bool_) if decisions is None else decisions != INVALID
        _check_size(is_valid.size, reference.size, "decisions")
        probabilities = _probabilities(outputs, is_valid, classes)
        if decisions is None and probabilities is None:
            raise InvalidInputError(
                "nothing was given to validate.",
                field="probabilities",
                hint="Give probabilities, logits or decisions.",
            )
        return cls(
            labels=reference,
            probabilities=probabilities,
            decisions=_likeliest(probabilities) if decisions is None else decisions,
            unit=units_of(groups, samples=reference.size),
            classes=classes,
            is_decided=decisions is not None,
        )

    @property
    def size(self) -> int:
        """The number of samples."""
        return self.labels.size

    @property
    def is_valid(self) -> Mask:
        """Whether the model gave a valid output, shape (N,)."""
        return self.decisions != INVALID

    @property
    def can_abstain(self) -> bool:
        """Whether the decision to abstain occurs."""
        return bool((self.decisions == self.classes).any())

    @property
    def cases(self) -> int:
        """The number of independent cases: groups, else samples."""
        return np.unique(self.unit).size

    @property
    def scores(self) -> Floats:
        """The probabilities.

        Raises:
            InvalidInputError: there are none.
        """
        if self.probabilities is None:
            raise InvalidInputError(
                "a recommended metric needs probabilities.",
                field="probabilities",
                hint="Give probabilities or logits, or a fingerprint without class scores.",
            )
        return self.probabilities

    def part(self, rows: Integers | Mask) -> "Samples":
        """Some of the samples."""
        return Samples(
            labels=self.labels[rows],
            probabilities=None if self.probabilities is None else self.probabilities[rows],
            decisions=self.decisions[rows],
            unit=self.unit[rows],
            classes=self.classes,
            is_decided=self.is_decided,
        )

    def inputs(self) -> dict[str, Any]:
        """The arguments of `compute_metrics`."""
        given = {"labels": self.labels, "decisions": self.decisions, "classes": self.classes}
        return given if self.probabilities is None else {**given, "probabilities": self.probabilities}


def units_of(groups: ArrayLike | None, *, samples: int) -> Integers:
    """The resampling unit of each sample, shape (N,), 0..U-1; without groups each sample is its own unit.

    Raises:
        InvalidInputError: the groups do not fit.
    """
    keys = as_groups(groups, samples=samples)
    if keys is None:
        return np.arange(samples)
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def _probabilities(outputs: ModelOutputs, is_valid: Mask, classes: int) -> Floats | None:
    if outputs.probabilities is not None and outputs.logits is not None:
        raise InvalidInputError(
            "probabilities and logits were both given.", field="logits", hint="Give one of them."
        )
    given = outputs.logits if outputs.probabilities is None else outputs.probabilities
    if given is None:
        return None
    field = "logits" if outputs.probabilities is None else "probabilities"
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise InvalidInputError("expected rows of equal length.", field=field) from error
    _check_size(len(array) if array.ndim else 0, is_valid.size, field)
    if array.dtype.kind == "f" and not np.isfinite(array[is_valid]).all():
        raise InvalidInputError(
            "a sample has an output that is not finite.",
            field=field,
            hint="Give decisions, with -1 for samples on which the model gave no valid output.",
        )
    valid = array if is_valid.all() else array[is_valid]
    scores = np.full((is_valid.size, classes), 1 / classes)
    if field == "logits":
        scores[is_valid] = softmax(as_logits(valid, classes=classes).astype(np.float64))
    else:
        scores[is_valid] = as_probabilities(valid, classes=classes)
    return scores


def _likeliest(probabilities: Floats | None) -> Integers:
    return np.empty(0, np.int64) if probabilities is None else probabilities.argmax(axis=1).astype(np.int64)


def _check_size(found: int, expected: int, field: str) -> None:
    if found != expected:
        raise InvalidInputError(f"expected one per label ({expected}), got {found}.", field=field)
