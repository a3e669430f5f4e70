"""Are numbers that were given as logits probabilities?"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.errors import InvalidInputError

SINGLE_ROW_TOLERANCE = 2e-6
HALF_PRECISION_TOLERANCE = 1e-3
"""Tolerances of the sums of probabilities, for a single row and for several rows."""
_PERCENT = 100
_ROWS_OF_ONE_TOTAL = 10
"""Different rows from which on one common sum is no chance, whatever the sum."""
_ROWS_COMPARED = 1000
_LARGEST_ROUNDING = 0.05
SIGMOID_ROWS = 50
GRIDS = np.array([*range(1, 257), 1000, 10_000])
"""Values n of grids with the step 1/n: of 8-bit numbers, and of decimals that were rounded."""


def look_like_probabilities(logits: NDArray[np.floating[Any]]) -> bool:
    """Whether the rows, (N, C), are class probabilities (not negative, sum 1) rather than logits or log-probabilities.

    Probabilities in other units count, too; see `total_of_shares`.

    Cheap for logits: nearly all have a negative value or one above 1. A single row of logits could sum to 1 by chance,
    so it must do so as exactly as a softmax in float32; several rows, as exactly as one in float16. Of one logit per
    sample, (0, z), only many rows with z in [0, 1] look like the outputs of a sigmoid.

    Examples:
        >>> look_like_probabilities(np.array([[0.7, 0.3], [0.2, 0.8]]))
        True
        >>> look_like_probabilities(np.array([[0.7, 0.3], [0.2, 0.7]]))
        False
    """
    if not logits.size or logits.min() < 0:
        return False
    if total_of_shares(logits) is not None:
        return True
    if logits.max() > 1:
        return False
    if logits.shape[1] == 2 and len(logits) >= SIGMOID_ROWS and not logits[:, 0].any():
        return True
    tolerance = SINGLE_ROW_TOLERANCE if len(logits) == 1 else HALF_PRECISION_TOLERANCE
    return bool((np.abs(logits.sum(axis=1, dtype=np.float64) - 1) <= tolerance).all())


def total_of_shares(logits: NDArray[np.floating[Any]]) -> float | None:
    """Return the sum of all rows, (N, C), of shares in any unit (percent, 0..255, votes); None: no shares.

    All rows have values that are not negative, and one sum but for rounding. Fewer than 10 different rows are shares
    only if that sum is 100 (percent): logits that large do not occur.

    Examples:
        >>> total_of_shares(np.array([[70, 30], [20, 80], [33.3, 66.6]]))
        100.0
        >>> total_of_shares(np.array([[7, 3], [2, 8]])) is None
        True
    """
    if not logits.size or logits.min() < 0:
        return None
    sums = logits.sum(axis=1, dtype=np.float64)
    total = float(np.median(sums))
    tolerance = SINGLE_ROW_TOLERANCE * total
    if len(logits) > 1:
        steps = (0.1**places for places in range(4))
        grid = next(
            (step for step in steps if np.allclose(logits / step, np.rint(logits / step), atol=1e-2)), 0
        )
        rounding = grid * min(logits.shape[1] / 2, 1.5 * logits.shape[1] ** 0.5)
        tolerance = HALF_PRECISION_TOLERANCE * total + min(rounding, _LARGEST_ROUNDING * total)
    if abs(total - _PERCENT) <= tolerance:
        total = float(_PERCENT)
    if not total or (np.abs(sums - total) > tolerance).any():
        return None
    some = logits[:: max(1, len(logits) // _ROWS_COMPARED)]
    if total == _PERCENT or len({row.tobytes() for row in some}) >= _ROWS_OF_ONE_TOTAL:
        return total
    return None


def may_sum_to_one_by_chance(logits: NDArray[np.floating[Any]]) -> bool:
    """Whether all values lie in [0, 1] and are multiples of some 1/n, as quantised or rounded logits are.

    Of a thousand such rows with two classes some four sum to 1; of a million other ones, one does.

    Examples:
        >>> [may_sum_to_one_by_chance(np.array([row])) for row in ([0.25, 0.75], [0.23951, 0.76049])]
        [True, False]
    """
    if logits.max() > 1:
        return False
    scaled = logits[..., None].astype(np.float64) * GRIDS
    return bool((np.abs(scaled - scaled.round()) <= 1e-7 * GRIDS).all(axis=(0, 1)).any())


def expect_logits(logits: NDArray[np.floating[Any]], *, field: str = "logits") -> None:
    """Make sure that the rows are not all class probabilities.

    Raises:
        InvalidInputError: every row is a set of class probabilities.
    """
    if look_like_probabilities(logits):
        total = f"{total_of_shares(logits) or 1:.4g}"
        is_sigmoid = total == "1" and logits.shape[1] == 2 and not logits[:, 0].any()
        raise InvalidInputError(
            "expected logits, got probabilities: "
            + ("all lie in 0..1." if is_sigmoid else f"no value is negative, and every row sums to {total}."),
            field=field,
            hint="Send what goes into the softmax or sigmoid, or the natural logarithm of the probabilities of all"
            f" classes. If they are logits all the same, subtract {total} from all of them (in a graph: as its last"
            " node), also for the calibration: decisions stay the same.",
        )
