"""Target prevalence of the candidate: pooled with other environments, smoothed, at most one step away."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lifelong_core.deploy.numerics.simplex import simplex_least_squares, smooth, tangent_basis
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis, PrevalenceEstimate, t_interval
from lifelong_core.values.arrays import Floats
from lifelong_core.values.scientific import chi_square_quantile

MINIMUM_OTHERS = 3
"""Fewest other environments from which the spread between environments can be estimated."""
_CAUTION = 0.25
"""The spread between environments is taken so large that the observed one has this tail probability. An overestimated
spread shrinks too little; an underestimated one pulls a hospital to the average of the others."""
_USUAL = 0.75
"""An environment farther from the others than this share of them raises the spread: the environments differ more than
they seem to."""
_SMALLEST_VARIANCE = 1e-12
_HALVINGS = 60


def add_pseudo_samples(estimate: PrevalenceEstimate, calibration_samples: int) -> Floats:
    """Estimate with half a further sample of each class, shape (C,), positive (Jeffreys' prior).

    The window counts for at most as many samples as the calibration set has, so that an unseen class gets no smaller
    prevalence than the calibration set could show. The class may return, and must then be decided and detected.
    """
    raised = min(estimate.effective_n, calibration_samples) * estimate.prevalence + 0.5
    return raised / raised.sum()


def limit_step(assumed: Floats, wanted: Floats, maximum_step: float) -> Floats:
    """The wanted prevalence, or the point on the way to it at the maximum L1 distance from the assumed prevalence."""
    distance = float(np.abs(wanted - assumed).sum())
    return wanted if distance <= maximum_step else assumed + maximum_step / distance * (wanted - assumed)


def is_return(assumed: Floats, target: Floats, previous: Floats | None) -> bool:
    """Whether the target lies back towards the prevalence before the last swap."""
    if previous is None or previous.shape != assumed.shape:
        return False
    return float((target - assumed) @ (previous - assumed)) > 0


@dataclass(frozen=True)
class Pooling:
    """Shrinkage of an estimate towards the other environments: p + gain @ (centre - p).

    The covariance grows by `spread`: the uncertainty of the centre, and the differences between environments.
    """

    prevalence: Floats
    """shape (C,), the pooled estimate, on the simplex"""
    gain: Floats
    """shape (C, C): 0 uses the own window alone, 1 the others alone (on directions that sum to zero)"""
    spread: Floats
    """shape (C, C), covariance added to that of the estimate"""
    heterogeneity: float
    """in 0..1: variance between environments in units of mean * (1 - mean), of each class"""
    environments: int
    """number of other environments used"""


@dataclass(frozen=True)
class PooledAnalysis:
    """Analysis of a window, shrunk towards the other environments."""

    analysis: Analysis
    """with the pooled estimate, and the remaining influence of the window's samples on it"""
    spread: Floats
    """shape (C, C), covariance of the estimate due to the other environments"""
    environments: int
    """number of other environments used"""


def pool_analysis(analysis: Analysis, others: Sequence[PrevalenceEstimate]) -> PooledAnalysis | None:
    """Apply `pool` to the estimate of an analysis and to its influences; None where pooling is impossible."""
    own, influence = analysis.estimate, analysis.influence
    sampling = replace(influence, calibration=np.zeros_like(influence.calibration))
    shared = replace(
        influence, window=np.zeros_like(influence.window), pseudo=np.zeros_like(influence.pseudo)
    )
    pooled = pool(
        own.prevalence,
        analysis.spread(sampling).covariance + analysis.change_doubt,
        others,
        shared_covariance=analysis.spread(shared).covariance + analysis.doubt,
    )
    if pooled is None:
        return None
    kept = np.eye(own.prevalence.size) - pooled.gain.T
    # What the calibration set adds stays whole: it moves the others' estimates as it moves this one.
    remaining = replace(influence, window=influence.window @ kept, pseudo=influence.pseudo @ kept)
    change_doubt = kept.T @ analysis.change_doubt @ kept
    spread = analysis.spread(remaining)
    covariance = spread.covariance + analysis.doubt + change_doubt + pooled.spread
    low, high = t_interval(pooled.prevalence, covariance, spread.degrees_of_freedom, own.confidence)
    estimate = replace(
        own,
        prevalence=pooled.prevalence,
        low=low,
        high=high,
        method=f"{own.method}, pooled",
        covariance=covariance,
        degrees_of_freedom=spread.degrees_of_freedom,
    )
    return PooledAnalysis(
        replace(analysis, estimate=estimate, influence=remaining, change_doubt=change_doubt),
        pooled.spread,
        pooled.environments,
    )


def pool(
    prevalence: Floats,
    window_covariance: Floats,
    others: Sequence[PrevalenceEstimate],
    *,
    shared_covariance: Floats | None = None,
) -> Pooling | None:
    """Shrink a prevalence towards those of other environments (empirical Bayes, Efron and Morris 1973).

    The model: the environments' true prevalences scatter around a common centre m with covariance h (diag(m) - m m'),
    like those of a Dirichlet distribution. h comes from the others by the Q-profile method (Viechtbauer 2007) at its
    cautious end. The own window does not enter the centre. It raises h where it would be an outlier under the others'
    scatter: an environment unlike the others must rely on its own samples. Only the sampling error of the window is
    shrunk; the error due to the calibration set is common to all environments, so that pooling cannot correct it.

    Args:
        prevalence: shape (C,), estimate of this environment.
        window_covariance: shape (C, C), part of its covariance due to the window.
        others: estimates of the other environments.
        shared_covariance: shape (C, C), covariance of the error common to all environments, which does not make their
            estimates differ; None: there is none.

    Returns:
        None with fewer than MINIMUM_OTHERS other environments of the same classes, or where the own window is an
        outlier for every h.

    Examples:
        >>> def estimate(first, error):
        ...     covariance = error**2 * np.array([[1, -1], [-1, 1]])
        ...     p = np.array([first, 1 - first])
        ...     return PrevalenceEstimate(p, p, p, 0.95, 100, 100.0, "MLLS", covariance, np.full(2, 99.0))
        >>> own = estimate(0.20, 0.1)
        >>> others = [estimate(first, 0.01) for first in (0.09, 0.10, 0.12, 0.11)]
        >>> pool(own.prevalence, own.covariance, others).prevalence.round(2).tolist()
        [0.11, 0.89]
    """
    classes = prevalence.size
    usable = [other for other in others if other.prevalence.size == classes]
    if len(usable) < MINIMUM_OTHERS:
        return None
    basis = tangent_basis(classes)
    points = np.array([other.prevalence for other in usable]) @ basis
    errors = np.array([basis.T @ _own_error(other, shared_covariance) @ basis for other in usable])
    own = basis.T @ window_covariance @ basis
    heterogeneity = _fitting(
        prevalence @ basis, own, points, errors, basis, at_least=_heterogeneity(points, errors, basis)
    )
    if heterogeneity is None:
        return None
    centre, uncertainty, scatter = _centre(points, errors, basis, heterogeneity)
    prior = uncertainty + heterogeneity * scatter
    gain = own @ _inverses(own + prior)
    pooled = prevalence + basis @ (gain @ (centre - prevalence @ basis))
    lifted = basis @ gain @ basis.T
    return Pooling(
        prevalence=simplex_least_squares(np.eye(classes), pooled),
        gain=lifted,
        spread=lifted @ (basis @ prior @ basis.T) @ lifted.T,
        heterogeneity=heterogeneity,
        environments=len(usable),
    )


def _own_error(estimate: PrevalenceEstimate, shared: Floats | None) -> Floats:
    """The part of an estimate's covariance that other environments do not share, at least that of counted labels."""
    smoothed = smooth(estimate.prevalence, estimate.effective_n)
    counting = (np.diag(smoothed) - np.outer(smoothed, smoothed)) / estimate.effective_n
    if shared is None:
        return estimate.covariance
    sizes, axes = np.linalg.eigh(estimate.covariance - shared - counting)
    return counting + (axes * np.maximum(sizes, 0)) @ axes.T


def _heterogeneity(points: Floats, errors: Floats, basis: Floats) -> float:
    """Value of h at which the weighted squared distances from the centre reach the _CAUTION quantile of chi-square."""
    goal = chi_square_quantile((points.shape[0] - 1) * points.shape[1], _CAUTION)
    low, high = 0.0, 1.0
    if _distance(points, errors, basis, low) <= goal:
        return low
    if _distance(points, errors, basis, high) >= goal:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _distance(points, errors, basis, middle) > goal else (low, middle)
    return high


def _fitting(
    own: Floats, error: Floats, points: Floats, errors: Floats, basis: Floats, *, at_least: float
) -> float | None:
    """Smallest h from `at_least` to 1 under which the own estimate is no outlier among the others, or None."""
    goal = chi_square_quantile(own.size, _USUAL)

    def unusual(heterogeneity: float) -> bool:
        centre, uncertainty, scatter = _centre(points, errors, basis, heterogeneity)
        weights = _inverses(error + uncertainty + heterogeneity * scatter)
        return float((own - centre) @ weights @ (own - centre)) > goal

    if not unusual(at_least):
        return at_least
    low, high = at_least, 1.0
    if unusual(high):
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if unusual(middle) else (low, middle)
    return high


def _distance(points: Floats, errors: Floats, basis: Floats, heterogeneity: float) -> float:
    """Sum over environments of (p - m)' (V + h B)^-1 (p - m), which falls as h grows."""
    centre, _, scatter = _centre(points, errors, basis, heterogeneity)
    residuals = points - centre
    weights = _inverses(errors + heterogeneity * scatter)
    return float(np.einsum("ei,eij,ej->", residuals, weights, residuals))


def _centre(
    points: Floats, errors: Floats, basis: Floats, heterogeneity: float
) -> tuple[Floats, Floats, Floats]:
    """Centre and its covariance by generalised least squares, and B = diag(m) - m m', in tangent coordinates."""
    classes = basis.shape[0]
    mean = np.maximum(1 / classes + basis @ points.mean(axis=0), 1 / (2 * classes * points.shape[0]))
    mean /= mean.sum()
    scatter = basis.T @ (np.diag(mean) - np.outer(mean, mean)) @ basis
    weights = _inverses(errors + heterogeneity * scatter)
    uncertainty = _inverses(weights.sum(axis=0))
    pulled: Floats = np.einsum("eij,ej->i", weights, points)
    return uncertainty @ pulled, uncertainty, scatter


def _inverses(matrices: Floats) -> Floats:
    # A window in which nothing varies claims to be exact; none is.
    return np.asarray(
        np.linalg.inv(matrices + _SMALLEST_VARIANCE * np.eye(matrices.shape[-1])), dtype=np.float64
    )
