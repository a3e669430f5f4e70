"""Predicted uncertainties of samples: their kinds, their checks and their limits, which every layer shares."""

from collections.abc import Mapping
from math import log
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.values.arrays import LARGEST_NUMBER, Floats
from lifelong_core.values.errors import InvalidInputError

UncertaintyKind: TypeAlias = Literal["standard_deviation", "variance", "entropy", "other"]
"""Kind of an uncertainty of the probability of the positive class. Entropies are in nats; `other` is any number that is
not negative."""
UNCERTAINTY_KINDS: Final[tuple[UncertaintyKind, ...]] = get_args(UncertaintyKind)

LARGEST_SPREAD = 0.5
"""Largest standard deviation of numbers in [0, 1] (Popoviciu's inequality)"""
LARGEST_UNCERTAINTY: Mapping[UncertaintyKind, float] = MappingProxyType(
    {
        "standard_deviation": LARGEST_SPREAD,
        "variance": LARGEST_SPREAD**2,
        "entropy": log(2),
        "other": LARGEST_NUMBER,
    }
)
"""Largest possible uncertainty of a prediction of two classes, by kind."""
ROUNDING = 1e-6
"""Relative excess that float32 may have over the largest uncertainty"""

FEWEST_MEMBERS = 2
MOST_MEMBERS = 100
MOST_SIGMAS = 50
MOST_DAMPINGS = 6
"""Limits of the grid of uncertainty-aware scores"""


def as_uncertainties(values: ArrayLike, *, samples: int, kind: UncertaintyKind = "other") -> Floats:
    """Uncertainties of shape (N,) as float64: finite, not negative and at most the largest possible one.

    Raises:
        InvalidInputError: not numbers, another shape, or a value outside.

    Examples:
        >>> as_uncertainties([0, 0.25], samples=2, kind="variance").tolist()
        [0.0, 0.25]
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInputError("expected one number per sample.", field="uncertainties") from error
    if array.shape != (samples,):
        raise InvalidInputError(
            f"expected one number per sample, shape ({samples},), got {array.shape}.", field="uncertainties"
        )
    if array.dtype.kind not in "biuf":
        raise InvalidInputError(f"expected numbers, got values of type {array.dtype}.", field="uncertainties")
    found = array.astype(np.float64)
    largest = LARGEST_UNCERTAINTY[kind]
    illegal = ~((found >= 0) & (found <= largest * (1 + ROUNDING)))
    if illegal.any():
        index = int(np.argmax(illegal))
        is_known = kind != "other"
        raise InvalidInputError(
            f"expected finite numbers from 0 to {largest:g}"
            + (f", the largest {kind.replace('_', ' ')} of a probability" if is_known else "")
            + f", got {found[index]:g} at index {index}.",
            field="uncertainties",
            hint="An uncertainty of another kind has no such limit: state its kind." if is_known else None,
        )
    return found


def parse_numbers(text: str, *, field: str) -> list[float]:
    """Numbers that commas separate, as options and query parameters give them.

    Raises:
        InvalidInputError: a part is not a number.

    Examples:
        >>> parse_numbers("0, 0.25", field="sigma")
        [0.0, 0.25]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InvalidInputError(
            f"expected numbers separated by commas, got {text[:80]!r}.",
            field=field,
            hint="For example 0,0.1,0.2.",
        ) from error


def check_members(members: int) -> None:
    """Check the number of members of an ensemble, of dropout draws or of augmentations.

    Raises:
        InvalidInputError: there are too few or too many.
    """
    if not FEWEST_MEMBERS <= members <= MOST_MEMBERS:
        raise InvalidInputError(
            f"expected {FEWEST_MEMBERS} to {MOST_MEMBERS} members, got {members}.",
            field="members",
            hint="Give the outputs of several models, dropout draws or augmentations on the same samples.",
        )
