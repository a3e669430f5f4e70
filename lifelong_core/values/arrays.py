"""Array types, argument checks and row operations that every layer shares.

Each check `as_...` returns the checked array, or raises an error that names the field.
"""

from collections.abc import Sequence
from typing import TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.values.class_labels import (
    are_numbers,
    class_index,
    composed,
    describe_labels,
    is_missing,
    key_form,
)
from lifelong_core.values.errors import InvalidInputError

Floats: TypeAlias = NDArray[np.float64]
Logits: TypeAlias = NDArray[np.float32]
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
AnyArray = TypeVar("AnyArray", bound=NDArray[np.generic])

PREVALENCE_TOLERANCE = 1e-6

LARGEST_NUMBER = 1e100
"""Largest absolute value of parameters and costs, so that no score or expected cost of float32 logits overflows."""
PROBABILITY_TOLERANCE = 1e-4
"""looser, because a softmax in float32 over many classes does not sum to 1 exactly"""
MANY_CLASSES = 50
"""With more classes than this, steps whose time grows with C^2 N or C^3 take other algorithms with the same results up
to rounding, or an approximation where their docstring says so."""


def as_logits(values: ArrayLike, *, classes: int | None = None, field: str = "logits") -> Logits:
    """Finite raw network outputs of shape (N, C), C >= 2, as contiguous float32 (as logged).

    One logit z per sample, shape (N, 1) or (N,), is read as the logits (0, z) of two classes.

    Raises:
        InvalidInputError: not numeric, not two-dimensional, no column, a number of columns other than `classes`, or a
            value that is not finite in float32; or shape (2,), which is one sample or two.
    """
    array = _numeric(values, field)
    if classes in (None, 2):
        array = with_both_columns(array)
    if array.shape == (2,):
        raise InvalidInputError(
            "two numbers are one sample of two classes, or two samples with one logit each.",
            field=field,
            hint="Send [[z0, z1]] for one sample, [[z], [z]] for two.",
        )
    if array.ndim != 2 or array.shape[1] < 2:
        raise InvalidInputError(
            f"expected shape (N, C) with at least two classes, got {array.shape}.",
            field=field,
            hint="Send one row per sample and one column per class.",
        )
    if classes is not None and array.shape[1] != classes:
        raise InvalidInputError(
            f"expected {classes} columns, one per class, got {array.shape[1]}.",
            field=field,
            hint="Check that the logits come from the model that is named. One logit per sample is for two classes.",
        )
    with np.errstate(over="ignore"):
        logits = np.ascontiguousarray(array, dtype=np.float32)
    finite = np.isfinite(logits).all(axis=1)
    if not finite.all():
        raise InvalidInputError(
            f"row {int(np.argmin(finite))} holds a value that is not a finite float32.",
            field=field,
            hint="Leave out samples for which the model gave NaN or infinity.",
        )
    return logits


def with_both_columns(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The columns (0, z) for one logit z per sample, (N, 1) or (N,); other arrays as they are, (2,) among them.

    Examples:
        >>> with_both_columns(np.array([[1.5], [-2.0]])).tolist()
        [[0.0, 1.5], [0.0, -2.0]]
    """
    if array.shape[1:] == (1,) or (array.ndim == 1 and array.size not in (0, 2)):
        return np.column_stack([np.zeros(len(array)), array.ravel()])
    return array


def as_labels(values: ArrayLike, *, classes: int, field: str = "labels") -> Integers:
    """Class indices of shape (N,) in 0..classes-1 as int64.

    Raises:
        InvalidInputError: not one-dimensional, not whole numbers, or outside the range.
    """
    array = _numeric(values, field)
    if array.ndim != 1:
        raise InvalidInputError(f"expected shape (N,), got {array.shape}.", field=field)
    with np.errstate(invalid="ignore"):  # NaN becomes some number, which differs from the value
        labels = array.astype(np.int64)
    if not np.array_equal(labels, array):
        raise InvalidInputError(
            "expected whole numbers.", field=field, hint="Give class indices, starting at 0."
        )
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        raise InvalidInputError(
            f"expected class indices in 0..{classes - 1}, got {labels.min()}..{labels.max()}.", field=field
        )
    return labels


def read_labels(
    values: ArrayLike, class_names: Sequence[str] | None, *, field: str = "labels"
) -> NDArray[np.generic]:
    """Labels of a file or request as indices; `as_labels` checks what is no name.

    Texts follow the rule of `class_index`. So do whole numbers where a class has a number as its name, unless only
    indices fit all of them; numbers that may be either, such as 1 and 2 of the classes 1, 2 and 3, are refused.

    Args:
        values: names of classes, or whole numbers.
        class_names: None: they are not known.
        field: name of the array in errors.

    Raises:
        InvalidInputError: a label is no class, or may be two.
    """
    array = np.asarray(values)
    if array.dtype.kind == "f" and np.array_equal(array, np.rint(array)):
        array = array.astype(np.int64)
    if class_names is None or array.ndim != 1 or array.dtype.kind not in "iuU":
        return array
    if array.dtype.kind != "U" and not are_numbers(class_names):
        return array
    distinct, places = np.unique(array, return_inverse=True)
    named = [class_index(label, class_names) for label in distinct.tolist()]
    if array.dtype.kind != "U" and array.size and distinct[0] >= 0 and distinct[-1] < len(class_names):
        if None in named:
            return array
        if named != distinct.tolist():
            raise InvalidInputError(
                f"the numbers {distinct[0]}..{distinct[-1]} may be names or indices of classes.",
                field=field,
                hint=f"Give names as texts. {describe_labels(class_names)}",
            )
    if None in named:
        label = str(distinct[named.index(None)])
        raise InvalidInputError(
            f"{label[:80]!r} is no class.", field=field, hint=describe_labels(class_names)
        )
    return np.array(named, np.int64)[places]


def as_decisions(values: ArrayLike, *, classes: int, field: str = "decisions") -> Integers:
    """Decisions of shape (N,) as int64: classes, `classes` to abstain, -1 for no valid output.

    Raises:
        InvalidInputError: not one-dimensional, not whole numbers, or outside the range.
    """
    array = _numeric(values, field)
    return np.where(
        array == -1, -1, as_labels(np.where(array == -1, 0, array), classes=classes + 1, field=field)
    )


def as_prevalence(values: ArrayLike, *, classes: int | None = None, field: str = "prevalence") -> Floats:
    """Class probabilities of shape (C,), not negative, that sum to 1, as float64 (renormalised exactly).

    Raises:
        InvalidInputError: another shape, a negative or non-finite entry, or a sum off 1 by more than 1e-6.
    """
    array = _numeric(values, field).astype(np.float64)
    if array.ndim != 1 or array.size < 2 or (classes is not None and array.size != classes):
        raise InvalidInputError(f"expected shape ({classes or 'C'},), got {array.shape}.", field=field)
    if not np.isfinite(array).all() or array.min() < 0 or abs(array.sum() - 1) > PREVALENCE_TOLERANCE:
        raise InvalidInputError(
            f"expected class probabilities that are not negative and sum to 1, got {array.tolist()}.",
            field=field,
        )
    return array / array.sum()


def as_probabilities(
    values: ArrayLike, *, classes: int | None = None, field: str = "probabilities"
) -> Floats:
    """Class probabilities of shape (N, C), C >= 2, as float64; each row is not negative and sums to 1.

    An array of float64 is not copied: a million rows of 50 classes take 400 MB.

    Raises:
        InvalidInputError: another shape, a negative or non-finite entry, or a sum off 1 by more than 1e-4.
    """
    array = _numeric(values, field).astype(np.float64, copy=False)
    if array.ndim != 2 or array.shape[1] < 2 or (classes is not None and array.shape[1] != classes):
        raise InvalidInputError(f"expected shape (N, {classes or 'C'}), got {array.shape}.", field=field)
    with np.errstate(invalid="ignore", over="ignore"):
        # A value that is not finite gives a sum that is not close to 1.
        is_one = np.abs(array @ np.ones(array.shape[1]) - 1) <= PROBABILITY_TOLERANCE
    if not (is_one.all() and array.min(initial=0) >= 0):
        legal = is_one & (array >= 0).all(axis=1)
        raise InvalidInputError(
            f"row {int(np.argmin(legal))} is not a set of probabilities that are not negative and sum to 1.",
            field=field,
        )
    return array


def as_costs(values: ArrayLike, *, classes: int, field: str = "costs") -> Floats:
    """Cost matrix of shape (C, C), or (C, C + 1) where the last decision is to abstain, as float64.

    `costs[i, j]` is the cost of deciding j when i is true; finite, and any sign (a correct decision may pay).

    Raises:
        InvalidInputError: another shape, or a value that is not finite or larger than LARGEST_NUMBER.
    """
    array = _numeric(values, field).astype(np.float64)
    if array.ndim != 2 or array.shape[0] != classes or array.shape[1] not in (classes, classes + 1):
        raise InvalidInputError(
            f"expected shape ({classes}, {classes}) or ({classes}, {classes + 1}), got {array.shape}.",
            field=field,
            hint="Rows are true classes, columns decisions; a last extra column is the decision to abstain.",
        )
    if not np.isfinite(array).all() or np.abs(array).max() > LARGEST_NUMBER:
        raise InvalidInputError(f"expected finite costs, of at most {LARGEST_NUMBER:g} in size.", field=field)
    return array


def as_confusion(values: ArrayLike, *, field: str = "confusion") -> Floats:
    """Confusion matrix of shape (C, C), or (C, C + 1) where the last decision is to abstain, as float64.

    Entries are counts or weights: finite and not negative.

    Raises:
        InvalidInputError: another shape, or an entry that is negative or not finite.
    """
    array = _numeric(values, field).astype(np.float64)
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] not in (array.shape[0], array.shape[0] + 1):
        raise InvalidInputError(f"expected shape (C, C) or (C, C + 1), got {array.shape}.", field=field)
    if not np.isfinite(array).all() or (array < 0).any():
        raise InvalidInputError("expected counts that are finite and not negative.", field=field)
    return array


def as_parameter(values: ArrayLike, *, field: str) -> Floats:
    """Return a float64 copy of finite numbers of reasonable size.

    Raises:
        InvalidInputError: not numbers, not finite, or larger than LARGEST_NUMBER.
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:  # the last: an integer that no float holds
        raise InvalidInputError("expected numbers.", field=field) from error
    if not np.isfinite(array).all():
        raise InvalidInputError("expected finite numbers.", field=field)
    if np.abs(array).max(initial=0) > LARGEST_NUMBER:
        raise InvalidInputError(f"expected numbers of at most {LARGEST_NUMBER:g} in size.", field=field)
    return array


def as_number(value: ArrayLike, *, field: str) -> float:
    """One finite number of reasonable size.

    Raises:
        InvalidInputError: it is not.
    """
    number = as_parameter(value, field=field)
    if number.ndim:
        raise InvalidInputError("expected one number.", field=field)
    return float(number)


def as_bandwidth(value: float, *, smallest: float) -> float:
    """Bandwidth of a kernel, between `smallest` and LARGEST_NUMBER.

    Raises:
        InvalidInputError: not a number, too small or too large.
    """
    if not smallest <= value <= LARGEST_NUMBER:
        raise InvalidInputError(
            f"expected a number in {smallest:g}..{LARGEST_NUMBER:g}, got {value}.", field="bandwidth"
        )
    return float(value)


def as_groups(values: ArrayLike | None, *, samples: int, field: str = "groups") -> NDArray[np.generic] | None:
    """Group keys of shape (N,); None: every sample is its own group.

    A sample whose key is missing (empty, NaN, None, ...) is its own group, too: all keys are then numbers.

    Raises:
        InvalidInputError: as `as_column`.
    """
    if values is None:
        return None
    array = as_column(values, samples=samples, field=field, what="group")
    if array.dtype.kind == "U":
        array = np.array([key_form(key) for key in array.tolist()], dtype=np.str_)
    if array.dtype.kind in "US":
        texts = [key if isinstance(key, str) else key.decode("latin-1") for key in array.tolist()]
        missing = np.array([is_missing(key) for key in texts])
    else:
        missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(samples, np.bool_)
    if missing.any():
        array = np.unique(array, return_inverse=True)[1]
        array[missing] = array.max() + 1 + np.arange(missing.sum())
    return array


def as_column(values: ArrayLike, *, samples: int, field: str, what: str = "value") -> NDArray[np.generic]:
    """An array with one element for each sample, shape (N,); texts are in Unicode's form NFC.

    Raises:
        InvalidInputError: another shape than (samples,), or Python objects, which may have no order.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInputError(f"expected one {what} per sample.", field=field) from error
    if array.shape != (samples,):
        raise InvalidInputError(
            f"expected one {what} per sample, shape ({samples},), got {array.shape}.", field=field
        )
    if array.dtype.kind == "O":
        raise InvalidInputError(
            f"expected numbers, strings or bytes, one {what} per sample.",
            field=field,
            hint="Convert them, e.g. with astype(str).",
        )
    if array.dtype.kind == "U" and (names := [composed(text) for text in array.tolist()]) != array.tolist():
        array = np.array(names)
    return array


def centre_rows(logits: Logits) -> Floats:
    """Logits as float64 with zero mean per row: all computations ignore a constant added to a row."""
    rows = logits.astype(np.float64)
    rows -= rows.mean(axis=1, keepdims=True)
    return rows


def softmax(scores: Floats) -> Floats:
    """Return exp(scores) normalised per row, shape (N, C), for scores of any size.

    A row's result does not depend on the other rows, to the last bit.

    Examples:
        >>> softmax(np.array([[0.0, 0.0], [1000.0, 0.0]])).tolist()
        [[0.5, 0.5], [1.0, 0.0]]
    """
    result = scores - scores.max(axis=1, keepdims=True)
    np.exp(result, out=result)
    result /= result.sum(axis=1, keepdims=True)
    return result


def read_only(array: AnyArray) -> AnyArray:
    """The same array, read-only from now on, for the fields of frozen value types."""
    array.setflags(write=False)
    return array


def _numeric(values: ArrayLike, field: str) -> NDArray[np.generic]:
    if isinstance(values, list | tuple) and _holds_text(cast("Sequence[object]", values)):
        raise InvalidInputError("expected numbers, got texts.", field=field)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInputError("expected rows of equal length.", field=field) from error
    if array.dtype.kind not in "biuf":
        raise InvalidInputError(f"expected numbers, got values of type {array.dtype}.", field=field)
    return array


def _holds_text(values: Sequence[object]) -> bool:
    """Whether nested lists hold a text: in an array, every element would get the size of the longest one."""
    kinds = set(map(type, values))
    if kinds & {str, bytes}:
        return True
    return bool(kinds & {list, tuple}) and any(
        _holds_text(cast("Sequence[object]", value)) for value in values if isinstance(value, list | tuple)
    )
