"""Inputs and parameters of `compute_metrics`, checked once."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from numbers import Real
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.calibration.binned import DEFAULT_BINS
from lifelong_core.metrics.calibration.kernel import Estimator
from lifelong_core.metrics.counting.confusion import confusion_matrix as count
from lifelong_core.values.arrays import (
    Floats,
    Integers,
    Mask,
    as_confusion,
    as_costs,
    as_labels,
    as_prevalence,
    as_probabilities,
)
from lifelong_core.values.errors import InvalidInputError

INVALID = -1
"""Decision of a sample without a valid output."""

MOST_CLASSES_GUESSED = 10_000
"""Larger labels are probably no class indices."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """Inputs of the caller, unchecked."""

    confusion_matrix: ArrayLike | None = None
    labels: ArrayLike | None = None
    probabilities: ArrayLike | None = None
    decisions: ArrayLike | None = None
    costs: ArrayLike | None = None
    prevalence: ArrayLike | None = None
    classes: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedInputs:
    """Consistent inputs. Samples without a valid output are counted, and excluded from everything else."""

    confusion: Floats | None
    """shape (C, D): given, or counted from the decisions, or from the most probable classes (ties: the lowest)"""
    is_confusion_given: bool
    labels: Integers | None
    """shape (N,)"""
    probabilities: Floats | None
    """shape (N, C)"""
    costs: Floats | None
    """shape (C, D)"""
    prevalence: Floats | None
    """shape (C,), prevalence of the target population; None: that of the samples"""
    invalid: Integers | Floats
    """shape (C,), excluded samples of each true class, or their shares where `confusion` holds shares"""
    decisions: Integers | None = None
    """shape (N,): given; None: the most probable classes"""

    @classmethod
    def of(cls, inputs: Inputs) -> Self:
        """Check the inputs.

        Raises:
            InvalidInputError: a shape or a value does not fit, or two inputs contradict each other.
        """
        declared = _declared_classes(inputs)
        samples = None if inputs.labels is None else _Samples.of(inputs, inputs.labels, declared)
        if samples is None:
            _check_absent(inputs.decisions, "decisions")
            _check_absent(inputs.probabilities, "probabilities")
        classes = declared or max(2, samples.largest_index + 1 if samples else 0)
        costs = None if inputs.costs is None else as_costs(inputs.costs, classes=classes)
        return cls(
            confusion=_confusion(inputs, samples, classes, costs),
            is_confusion_given=inputs.confusion_matrix is not None,
            labels=samples.labels if samples else None,
            probabilities=samples.probabilities if samples else None,
            costs=costs,
            prevalence=(
                None if inputs.prevalence is None else as_prevalence(inputs.prevalence, classes=classes)
            ),
            invalid=np.bincount(samples.invalid if samples else [], minlength=classes).astype(np.int64),
            decisions=samples.decisions if samples else None,
        )


@dataclass(frozen=True)
class Parameters:
    """Parameters of metrics. Each affects only the metrics in its description; their functions check the values.

    Examples:
        >>> Parameters.of({"bins": 10}).bins_or_default
        10
        >>> Parameters.of({"target": {"TPR": 0.8}}).target
        ('TPR', 0.8)
        >>> Parameters.of({"bin": 10})
        Traceback (most recent call last):
        ...
        lifelong_core.values.errors.InvalidInputError: bin: no metric has such a parameter. Did you mean bins?
    """

    beta: float = 1.0
    """F_beta: weight of sensitivity relative to precision"""
    threshold: float = 0.5
    """NB: probability of the class from which on one would act"""
    target: tuple[str, float] | None = None
    """per-class metrics that count: another of these metrics, and the value that the cut-off of the class's probability
    must reach, such as ("TPR", 0.8), {"TPR": 0.8} or 0.8 for TPR; None: the metrics count the decisions"""
    target_split: tuple[ArrayLike, ArrayLike] | None = None
    """labels and probabilities of other samples, which select that cut-off; None: the same samples, which is
    optimistic"""
    bins: int | None = None
    """ECE, CWCE: number of bins, None: 15. TCE, MCE: None: no bins, conditional on equal probabilities"""
    right_closed: bool = False
    """ECE, CWCE, TCE, MCE: each bin includes its upper edge instead of its lower one"""
    norm: float = 1
    """ECE, CWCE, TCE, MCE, CE, ECE_KDE: power of the distance"""
    bandwidth: float | None = None
    """KCE, ECE_KDE: bandwidth of the kernel; None: the median distance of two predictions, and by
    leaving one out"""
    estimator: Estimator = "unbiased"
    """KCE: "unbiased" or "biased", of the squared error, or "root" of the biased one"""
    subsample: int | None = None
    """KCE, ECE_KDE: number of samples used; None: a number that takes a fraction of a second"""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Build parameters by name; the others have their defaults.

        Raises:
            InvalidInputError: there is no such parameter, or the target is none.
        """
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                raise InvalidInputError(
                    "no metric has such a parameter.",
                    field=name,
                    hint=f"Did you mean {close[0]}?" if close else f"Parameters: {', '.join(known)}.",
                )
        checked: dict[str, Any] = {**given, "target": _as_target(given.get("target"))}
        return cls(**checked)

    @property
    def bins_or_default(self) -> int:
        """Number of bins for metrics that always use bins."""
        return DEFAULT_BINS if self.bins is None else self.bins


@dataclass(frozen=True, eq=False)
class _Samples:
    """Arrays of the samples with a valid output."""

    labels: Integers
    probabilities: Floats | None
    decisions: Integers | None
    invalid: Integers
    """labels of the samples without a valid output"""

    @classmethod
    def of(cls, inputs: Inputs, given_labels: ArrayLike, declared: int | None) -> Self:
        bound = declared or MOST_CLASSES_GUESSED
        labels = as_labels(given_labels, classes=bound)
        decisions, is_valid = None, np.ones(labels.size, dtype=np.bool_)
        if inputs.decisions is not None:
            decisions, is_valid = _valid_decisions(inputs.decisions, bound)
            _check_size(decisions.size, labels.size, "decisions")
            decisions = decisions[is_valid]
        probabilities = None
        if inputs.probabilities is not None:
            probabilities = _valid_probabilities(inputs.probabilities, is_valid, declared)
        return cls(labels[is_valid], probabilities, decisions, labels[~is_valid])

    @property
    def largest_index(self) -> int:
        """Largest class that occurs; -1 without any."""
        parts = (
            [self.labels, self.invalid]
            if self.decisions is None
            else [self.labels, self.invalid, self.decisions]
        )
        return max(int(part.max(initial=-1)) for part in parts)


def _confusion(inputs: Inputs, samples: _Samples | None, classes: int, costs: Floats | None) -> Floats | None:
    counted = None if samples is None else _counted(samples, classes, costs)
    if inputs.confusion_matrix is None:
        return counted
    given = as_confusion(inputs.confusion_matrix, field="confusion_matrix")
    if given.shape[0] != classes:
        raise InvalidInputError(
            f"expected {classes} classes, as in the other inputs, got {given.shape[0]}.",
            field="confusion_matrix",
        )
    if counted is not None and inputs.decisions is not None and not _is_same(given, counted):
        raise InvalidInputError(
            "it differs from that of the labels and decisions.",
            field="confusion_matrix",
            hint="Give either the matrix or the decisions.",
        )
    return given


def _counted(samples: _Samples, classes: int, costs: Floats | None) -> Floats | None:
    decisions = samples.decisions
    if decisions is None:
        if samples.probabilities is None:
            return None
        decisions = samples.probabilities.argmax(axis=1)
    can_abstain = decisions.max(initial=0) == classes or (costs is not None and costs.shape[1] > classes)
    columns = classes + 1 if can_abstain else classes
    return count(samples.labels, decisions, classes=classes, decisions_count=columns).astype(np.float64)


def _is_same(first: Floats, second: Floats) -> bool:
    """Whether two confusion matrices are equal up to an empty last column."""
    narrow, wide = sorted((first, second), key=lambda counts: counts.shape[1])
    return np.array_equal(narrow, wide[:, : narrow.shape[1]]) and not wide[:, narrow.shape[1] :].any()


def _valid_decisions(given: ArrayLike, bound: int) -> tuple[Integers, Mask]:
    """Decisions of all samples, arbitrary without a valid output, and the mask of valid outputs."""
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise InvalidInputError("expected shape (N,).", field="decisions") from error
    is_valid = np.ones(array.shape, dtype=np.bool_)
    if array.dtype.kind in "biuf":
        is_valid = array != INVALID
        array = np.where(is_valid, array, 0)
    # One more than there are classes may be the decision to abstain.
    return as_labels(array, classes=bound + 1, field="decisions"), is_valid


def _valid_probabilities(given: ArrayLike, is_valid: Mask, declared: int | None) -> Floats:
    if is_valid.all():
        probabilities = as_probabilities(given, classes=declared)
        _check_size(len(probabilities), is_valid.size, "probabilities")
        return probabilities
    try:
        rows = np.asarray(given)
    except ValueError as error:
        raise InvalidInputError("expected rows of equal length.", field="probabilities") from error
    _check_size(len(rows) if rows.ndim else 0, is_valid.size, "probabilities")
    return as_probabilities(rows[is_valid], classes=declared)


def _declared_classes(inputs: Inputs) -> int | None:
    """Number of classes that the shape of an input shows; later checks compare the other inputs with it."""
    if inputs.classes is not None:
        if not inputs.classes >= 2 or int(inputs.classes) != inputs.classes:
            raise InvalidInputError(f"expected at least two classes, got {inputs.classes}.", field="classes")
        return int(inputs.classes)
    for values, axis in (
        (inputs.probabilities, 1),
        (inputs.confusion_matrix, 0),
        (inputs.costs, 0),
        (inputs.prevalence, 0),
    ):
        if values is None:
            continue
        try:
            found = np.shape(values)[axis]
        except (ValueError, IndexError):  # is said better where the values are checked
            continue
        if found >= 2:
            return found
    return None


def _check_absent(values: ArrayLike | None, field: str) -> None:
    if values is not None:
        raise InvalidInputError(
            f"{field} need the true classes beside them.", field="labels", hint="Give labels too."
        )


def _check_size(found: int, expected: int, field: str) -> None:
    if found != expected:
        raise InvalidInputError(f"expected one per label ({expected}), got {found}.", field=field)


def _as_target(target: Any) -> tuple[str, float] | None:
    if target is None:
        return None
    pairs = list(cast(Mapping[Any, Any], target).items()) if isinstance(target, Mapping) else [target]
    match pairs:
        case [Real() as value]:
            return "TPR", float(value)
        case [(str(acronym), Real() as value)]:
            return acronym, float(value)
        case _:
            raise InvalidInputError(
                f"expected a metric and its value, got {target!r}.",
                field="target",
                hint='For example target=("TPR", 0.8).',
            )
