"""Comparison of methods over many setups (Defs. 5.19 to 5.21).

A setup is a target, seed, scenario, measure and meta metric; its figures are those of the methods. All figures are
positively oriented: negate `regret`.
"""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.develop.transferability.meta_metrics import as_floats, places, signs
from lifelong_core.values.arrays import Floats, Mask
from lifelong_core.values.errors import InvalidInputError

DECIMALS = 10
"""Figures that agree in so many decimals are equal: two methods may sum the same sources in another order."""


def rank_methods(figures: ArrayLike) -> Floats:
    """Ranks of the methods in each setup, 1 the best; equal figures share the mean of their ranks.

    Args:
        figures: positively oriented (negate `regret`), methods on the last axis, shape (..., methods).

    Examples:
        >>> rank_methods([0.5, 0.9, 0.5]).tolist()
        [2.5, 1.0, 2.5]
    """
    rounded = np.round(as_floats(figures), DECIMALS)
    above, equal = places(rounded)
    return np.where(np.isnan(rounded), np.nan, above + (equal + 1) / 2)


def win_rate(figures: ArrayLike) -> Floats:
    """Share of the setups in which each method is first, shared first places counted for each (Def. 5.20).

    Args:
        figures: positively oriented, shape (setups, methods). A setup with a nan is left out.

    Returns:
        shape (methods,); the sum is above 1 where first places are shared; nan without setups.

    Examples:
        >>> win_rate([[0.5, 0.9], [0.5, 0.5]]).tolist()
        [0.5, 1.0]
    """
    complete, _ = _complete(figures)
    rounded = np.round(complete, DECIMALS)
    first = rounded == rounded.max(axis=-1, keepdims=True)
    return mean_over_setups(first)


def setup_stability(figures: ArrayLike) -> Floats:
    """How well the order of the methods survives when one component of the setup varies (Def. 5.19).

    For each component, the mean of Kendall's tau (b) between the figures of all methods in two setups that differ in
    this component only; 1: always the same order. Setups with a nan, or in which all methods are equal, are left out.

    Args:
        figures: positively oriented, shape (A_1, ..., A_c, methods): one axis for each component, such as target,
            seed, scenario, measure and meta metric.

    Returns:
        shape (c,); nan for a component of which no two setups can be compared.

    Examples:
        >>> setup_stability([[[1, 2, 3], [3, 2, 1]], [[1, 2, 3], [3, 2, 1]]]).round(3).tolist()
        [1.0, -1.0]
    """
    rounded = np.round(as_floats(figures), DECIMALS)
    methods = rounded.shape[-1]
    first, second = np.triu_indices(methods, 1)
    order = signs(rounded)[..., first, second].astype(np.float64)
    length = np.sqrt((order**2).sum(axis=-1))
    usable = (length > 0) & ~np.isnan(rounded).any(axis=-1)
    unit = np.where(usable[..., np.newaxis], order / np.where(length > 0, length, 1)[..., np.newaxis], 0)
    found: list[float] = []
    for axis in range(rounded.ndim - 1):
        # The sum of tau over pairs of setups is half of |sum of unit vectors|² minus the number of setups.
        number = usable.sum(axis=axis)
        pairs = (number * (number - 1) / 2).sum()
        taus = ((unit.sum(axis=axis) ** 2).sum(axis=-1) - number).sum() / 2
        found.append(float(taus / pairs) if pairs else np.nan)
    return np.array(found)


def bootstrap_weights(
    setups: int, *, groups: ArrayLike | None = None, replicates: int = 1000, seed: int = 0
) -> Floats:
    """How often each setup occurs in each bootstrap replicate (Def. 5.21), shape (replicates, setups).

    Args:
        setups: number of setups.
        groups: label of each setup, shape (setups,): whole groups are drawn. Setups of one target, and targets of one
            data set, resemble each other, so draw data sets for honest intervals. None: single setups are drawn, as
            in the thesis, which makes intervals too narrow.
        replicates: number of resamplings.
        seed: of the random numbers.

    Raises:
        InvalidInputError: another number of labels than of setups.
    """
    labels = np.arange(setups) if groups is None else np.asarray(groups)
    if labels.shape != (setups,):
        raise InvalidInputError(f"expected shape ({setups},), got {labels.shape}.", field="groups")
    distinct, member = np.unique(labels, return_inverse=True)
    number = distinct.size
    drawn = np.random.default_rng(seed).multinomial(
        number, np.full(number, 1 / max(number, 1)), size=replicates
    )
    return drawn[:, member].astype(np.float64)


def mean_over_setups(figures: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Mean of each method over the setups, shape (methods,), or (replicates, methods) by `bootstrap_weights`.

    Args:
        figures: shape (setups, methods). A setup with a nan is left out, for all methods.
        weights: shape (replicates, setups); None: each setup counts once.
    """
    complete, kept = _complete(figures)
    counts = np.ones(len(complete)) if weights is None else as_floats(weights)[..., kept]
    total = counts.sum(axis=-1)[..., np.newaxis]
    return np.divide(
        counts @ complete,
        total,
        out=np.full((*counts.shape[:-1], complete.shape[-1]), np.nan),
        where=total > 0,
    )


def rank_then_mean(figures: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Rank the methods in each setup, then average the ranks (Def. 5.21; Wiesenfarth et al. 2021).

    Arguments and shapes are those of `mean_over_setups`.

    Examples:
        >>> rank_then_mean([[0.9, 0.1], [0.4, 0.5], [0.4, 0.5]]).round(3).tolist()
        [1.667, 1.333]
    """
    return mean_over_setups(rank_methods(figures), weights)


def mean_then_rank(figures: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Average the figures of each method over the setups, then rank the means (Def. 5.21).

    Arguments and shapes are those of `mean_over_setups`.

    Examples:
        >>> mean_then_rank([[0.9, 0.1], [0.4, 0.5], [0.4, 0.5]]).tolist()
        [1.0, 2.0]
    """
    return rank_methods(mean_over_setups(figures, weights))


def _complete(figures: ArrayLike) -> tuple[Floats, Mask]:
    """The setups without a nan, and which they are."""
    array = as_floats(figures)
    kept = np.array(~np.isnan(array).any(axis=-1))
    return array[kept], kept
