"""From scores of patches to the score of an image: multiple instance learning, after R. Romanova (2020).

The last axis holds the patches; the pooled score replaces it. Some images may have marked patches, in which the finding
is known to lie: those are pooled as section III-D has it, all others by eqs. 1 to 5. `patch_head` has the same for
training, on logits.
"""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.values.arrays import Floats, Mask
from lifelong_core.values.errors import InvalidInputError

SHARPNESS = 10.0
"""r of log-sum-exp pooling where none is given"""


def max_pooling(scores: ArrayLike, marked: ArrayLike | None = None) -> Floats:
    """The largest score (eq. 1); of an image with marks, the largest among the marked patches.

    Args:
        scores: shape (..., N), of the patches.
        marked: shape (..., N), booleans: where the finding lies; an image without a mark counts as unmarked.

    Raises:
        InvalidInputError: there is no patch, a score is not finite, or the marks do not fit.

    Examples:
        >>> max_pooling([0.1, 0.9, 0.4]), max_pooling([0.1, 0.9, 0.4], [True, False, True])
        (array(0.9), array(0.4))
    """
    values, inside = _scores(scores), _marks(scores, marked)
    has_marks = inside.any(axis=-1, keepdims=True)
    return np.asarray(np.where(inside | ~has_marks, values, -np.inf).max(axis=-1))


def mean_pooling(scores: ArrayLike, marked: ArrayLike | None = None) -> Floats:
    """The mean score (eq. 2); of an image with marks, that of y inside them and of 1 - y outside.

    Args:
        scores: shape (..., N), of the patches; in [0, 1] if there are marks.
        marked: as for `max_pooling`.

    Raises:
        InvalidInputError: as for `max_pooling`, or a score that is no probability beside marks.

    Examples:
        >>> mean_pooling([0.25, 0.75]), mean_pooling([0.25, 0.75], [False, True])
        (array(0.5), array(0.75))
    """
    return np.asarray(_expected(scores, marked).mean(axis=-1))


def log_sum_exp_pooling(
    scores: ArrayLike, marked: ArrayLike | None = None, *, sharpness: float = SHARPNESS
) -> Floats:
    """A smooth maximum, log(mean(exp(r y))) / r (eq. 4; eq. 3 with r = 1); beside marks, of y inside and 1 - y outside.

    It lies between the mean, its limit for a small r, and the maximum, its limit for a large r.

    Args:
        scores: shape (..., N), of the patches; in [0, 1] if there are marks.
        marked: as for `max_pooling`.
        sharpness: r, positive.

    Raises:
        InvalidInputError: as for `mean_pooling`, or the sharpness is not positive.

    Examples:
        >>> log_sum_exp_pooling([0.0, 1.0], sharpness=1).round(4), log_sum_exp_pooling([0.0, 1.0]).round(4)
        (np.float64(0.6201), np.float64(0.9307))
    """
    if not 0 < sharpness < np.inf:
        raise InvalidInputError(f"expected a positive number, got {sharpness}.", field="sharpness")
    values = _expected(scores, marked)
    largest = values.max(axis=-1, keepdims=True)
    # Relative to the largest, nothing overflows, and small scores keep their digits.
    shortfall: Floats = np.expm1(sharpness * (values - largest)).mean(axis=-1)
    pooled: Floats = largest[..., 0] + np.log1p(shortfall) / sharpness
    return np.asarray(pooled)


def noisy_or_pooling(scores: ArrayLike, marked: ArrayLike | None = None) -> Floats:
    """The probability that some patch is positive, 1 - prod(1 - y), if patches are independent (eq. 5).

    Of an image with marks, the probability that just the marked patches are positive: the product of y inside and of
    1 - y outside (eq. 23, whose print lacks the `1 -`). It is a tiny number for many patches; `pooling_modules` gives
    its logit.

    Args:
        scores: shape (..., N), probabilities of the patches.
        marked: as for `max_pooling`.

    Raises:
        InvalidInputError: as for `max_pooling`, or a score that is no probability.

    Examples:
        >>> noisy_or_pooling([0.5, 0.5]), noisy_or_pooling([0.5, 0.75], [False, True])
        (array(0.75), array(0.375))
    """
    values, inside = _probabilities(scores), _marks(scores, marked)
    with np.errstate(divide="ignore"):  # a patch that is certain: log 0
        any_positive: Floats = -np.expm1(np.log1p(-values).sum(axis=-1))
    as_marked: Floats = np.where(inside, values, 1 - values).prod(axis=-1)
    return np.asarray(np.where(inside.any(axis=-1), as_marked, any_positive))


def _expected(scores: ArrayLike, marked: ArrayLike | None) -> Floats:
    """The scores; of an image with marks, how well each patch agrees with them: y inside, 1 - y outside."""
    if marked is None:
        return _scores(scores)
    values, inside = _probabilities(scores), _marks(scores, marked)
    return np.where(inside | ~inside.any(axis=-1, keepdims=True), values, 1 - values)


def _scores(values: ArrayLike) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("expected one number for each patch.", field="scores") from error
    if array.ndim == 0 or array.shape[-1] == 0:
        raise InvalidInputError(
            f"expected shape (..., N) with at least one patch, got {array.shape}.", field="scores"
        )
    if not np.isfinite(array).all():
        raise InvalidInputError("expected finite scores.", field="scores")
    return array


def _probabilities(values: ArrayLike) -> Floats:
    array = _scores(values)
    if array.min(initial=0) < 0 or array.max(initial=1) > 1:
        raise InvalidInputError(
            "expected probabilities, in [0, 1].", field="scores", hint="Apply a sigmoid to logits."
        )
    return array


def _marks(scores: ArrayLike, marked: ArrayLike | None) -> Mask:
    shape = np.shape(scores)
    if marked is None:
        return np.zeros(shape, dtype=np.bool_)
    array = np.asarray(marked)
    if array.shape != shape or array.dtype.kind != "b":
        raise InvalidInputError(
            f"expected booleans of the shape of the scores, {shape}, got {array.dtype} of {array.shape}.",
            field="marked",
        )
    return array
