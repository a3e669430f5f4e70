"""Metrics of an estimated confusion matrix: the requested ones, their gradients, and intervals by the delta method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.metrics.catalogue import METRICS, PER_CLASS_COUNTS, counting_metric
from lifelong_core.metrics.counting.confusion import one_versus_rest
from lifelong_core.metrics.counting.cost import costs_of
from lifelong_core.values.arrays import Floats, as_confusion
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import t_quantile

_STEP = 1e-5
"""of the numeric derivatives, as a share of all samples"""
_NO_ERROR = 1e-9
"""standard error, as a share of the range of values, below which an interval has no width worth a transformation"""
_LARGEST_QUANTILE = 1e3
"""With a larger one the spread is unknown, and the interval is the whole range."""
_CHUNK = 1 << 22
"""numbers in memory at once while derivatives are computed"""

AUROC = "AUROC"


@dataclass(frozen=True, eq=False)
class MetricGradients:
    """Values of K metrics of a confusion matrix, and their derivatives by its entries."""

    names: tuple[str, ...]
    """K keys of a PerformanceEstimate's `estimates`, e.g. "AC", "TPR[2]"; in a binary task "TPR", of class 1"""
    values: Floats
    """shape (K,), nan where a metric is undefined"""
    gradients: Floats
    """shape (K, C, D), by the share of each entry; the sum over entries weighted by their shares is 0, because every
    metric is the same for a multiple of the matrix; nan where a metric is undefined or infinite"""
    bounds: Floats
    """shape (K, 2), least and largest value that is possible; infinite where there is none"""

    @property
    def bounds_by_name(self) -> dict[str, tuple[float, float]]:
        """`bounds` by key."""
        return {
            name: (float(low), float(high)) for name, (low, high) in zip(self.names, self.bounds, strict=True)
        }

    def variances(self, covariance: Floats) -> Floats:
        """Variance of each metric by the delta method, shape (K,), from the covariance of the shares, (CD, CD)."""
        rows = self.gradients.reshape(len(self.names), -1)
        return np.einsum("ka,ab,kb->k", rows, covariance, rows)


def metric_gradients(
    confusion: ArrayLike,
    acronyms: Sequence[str] = ("AC", "EC"),
    costs: ArrayLike | None = None,
    *,
    beta: float = 1.0,
) -> MetricGradients:
    """Values of metrics that count decisions, and their derivatives by the entries of the confusion matrix.

    Args:
        confusion: shape (C, D), counts or shares; the derivatives are those at shares, which sum to 1.
        acronyms: acronyms of METRICS that count decisions. A metric of one class against the rest gives one value for
            each class, in a binary task one for class 1.
        costs: of EC, NEC and WCK, shape (C, D); None: 0-1 costs.
        beta: of F_beta.

    Raises:
        InvalidInputError: a shape or a value does not fit, the matrix is empty, or a metric does not count.

    Examples:
        >>> found = metric_gradients([[40, 10], [5, 45]], ["AC", "TPR"])
        >>> found.names, found.values.round(3).tolist()
        (('AC', 'TPR'), [0.85, 0.9])
        >>> found.gradients[0].round(3).tolist()
        [[0.15, -0.85], [-0.85, 0.15]]
    """
    shares = as_confusion(confusion)
    if not shares.sum() > 0:
        raise InvalidInputError("expected at least one sample.", field="confusion")
    shares = shares / shares.sum()
    matrix = costs_of(costs, shares)
    names: list[str] = []
    values: list[Floats] = []
    gradients: list[Floats] = []
    bounds: list[tuple[float, float]] = []
    for acronym in acronyms:
        value, gradient = _one(shares, acronym, matrix, beta)
        kept = slice(1, 2) if value.size > 1 and shares.shape[0] == 2 else slice(None)
        values.append(value[kept])
        gradients.append(gradient[kept])
        names += metric_names(acronym, shares.shape[0])
        limits = METRICS[acronym].bounds
        if acronym == "EC":
            limits = (float(matrix.min()), float(matrix.max()))
        elif acronym == "NEC" and matrix.min() >= 0:
            limits = (0.0, float("inf"))
        bounds += [limits] * values[-1].size
    if not names:
        return MetricGradients((), np.zeros(0), np.zeros((0, *shares.shape)), np.zeros((0, 2)))
    joined = np.concatenate(gradients)
    joined[~np.isfinite(joined).all(axis=(1, 2))] = np.nan
    return MetricGradients(tuple(names), np.concatenate(values), joined, np.array(bounds, dtype=np.float64))


def metric_names(acronym: str, classes: int) -> list[str]:
    """Keys of one metric in a PerformanceEstimate's `estimates`.

    Examples:
        >>> metric_names("TPR", 3), metric_names("TPR", 2), metric_names("AC", 3)
        (['TPR[0]', 'TPR[1]', 'TPR[2]'], ['TPR'], ['AC'])
    """
    if not METRICS[acronym].is_per_class or classes == 2:
        return [acronym]
    return [f"{acronym}[{k}]" for k in range(classes)]


def metric_intervals(
    metrics: MetricGradients,
    variances: Floats,
    *,
    degrees_of_freedom: Floats | float = np.inf,
    confidence: float = 0.95,
) -> Mapping[str, EstimatedMetric]:
    """Intervals of the metrics from their variances.

    A metric with two finite bounds gets the interval of Wilson (1927) for a share of as many samples as would have this
    variance: it stays within the bounds and is wider towards the middle, as the distribution near a bound is. Others
    get value +- t quantile * standard error within their bounds.

    Args:
        metrics: values and bounds.
        variances: shape (K,), variance of each value; nan: the interval is unknown; infinite: it is the whole range.
        degrees_of_freedom: of the t distribution, shape (K,) or one number; 0: the spread is unknown, and the interval
            is the whole range.
        confidence: nominal coverage of each interval.

    Examples:
        >>> found = metric_gradients([[40, 10], [5, 45]], ["AC"])
        >>> interval = metric_intervals(found, np.array([0.85 * 0.15 / 100]))["AC"]
        >>> round(interval.low, 3), round(interval.high, 3)  # Wilson's interval for 85 of 100
        (0.767, 0.907)
    """
    freedom = np.broadcast_to(np.asarray(degrees_of_freedom, dtype=np.float64), metrics.values.shape)
    # Beyond a million degrees of freedom, the t distribution is the normal one.
    quantiles = t_quantile(np.clip(freedom, 1e-3, 1e6), (1 + confidence) / 2)
    intervals: dict[str, EstimatedMetric] = {}
    for name, value, variance, bounds, quantile in zip(
        metrics.names, metrics.values.tolist(), variances.tolist(), metrics.bounds, quantiles, strict=True
    ):
        low, high = _interval(value, variance, bounds.tolist(), float(quantile))
        intervals[name] = EstimatedMetric(value, low, high)
    return intervals


def _interval(
    value: float, variance: float, bounds: tuple[float, float], quantile: float
) -> tuple[float, float]:
    if not np.isfinite(value) or np.isnan(variance):
        return float("nan"), float("nan")
    if quantile > _LARGEST_QUANTILE or np.isinf(variance):
        return bounds
    error = float(np.sqrt(max(variance, 0.0)))
    least, largest = bounds
    scale = largest - least
    if not (0 < scale < np.inf and error > _NO_ERROR * scale):
        return max(value - quantile * error, least), min(value + quantile * error, largest)
    share, spread = min(max((value - least) / scale, 0.0), 1.0), error / scale
    # Close to a bound, the share's own variance is too small for a number of samples to follow from it.
    nearest = min(quantile * spread, 0.5)
    typical = min(max(share, nearest), 1 - nearest)
    doubt = quantile**2 * spread**2 / (typical * (1 - typical))
    centre = (share + doubt / 2) / (1 + doubt)
    reach = np.sqrt(doubt * share * (1 - share) + doubt**2 / 4) / (1 + doubt)
    low, high = max(centre - reach, 0.0), min(centre + reach, 1.0)
    return float(min(least + scale * low, value)), float(max(least + scale * high, value))


def _one(shares: Floats, acronym: str, costs: Floats, beta: float) -> tuple[Floats, Floats]:
    """Values (J,) and gradients (J, C, D) of one metric."""
    if acronym in ("AC", "ER", "EC"):
        paid = costs if acronym == "EC" else np.eye(*shares.shape)
        paid = 1 - paid if acronym == "ER" else paid
        value = float((shares * paid).sum())
        return np.array([value]), (paid - value)[np.newaxis]
    if acronym in PER_CLASS_COUNTS:
        return _per_class(shares, acronym, beta)
    if acronym == "BA":
        recalls, gradients = _per_class(shares, "TPR", beta)
        return recalls.mean(keepdims=True), gradients.mean(axis=0, keepdims=True)
    function = counting_metric(acronym, costs=costs if acronym in ("NEC", "WCK") else None)
    return function(shares).reshape(1), _derivatives(shares, function)[np.newaxis]


def _per_class(shares: Floats, acronym: str, beta: float) -> tuple[Floats, Floats]:
    """Values and derivatives of a metric that is a function of the four counts of each class against the rest."""
    classes = shares.shape[0]
    counts = one_versus_rest(shares)
    pairs = np.stack(
        [counts.true_negatives, counts.false_positives, counts.false_negatives, counts.true_positives],
        axis=-1,
    ).reshape(classes, 2, 2)
    metric = counting_metric(acronym, beta=beta)
    by_count = np.stack([_derivatives(pair, lambda four: metric(four)[..., 1]) for pair in pairs])
    gradients = np.broadcast_to(by_count[:, 0, 0, np.newaxis, np.newaxis], (classes, *shares.shape)).copy()
    own = np.arange(classes, dtype=np.int64)
    gradients[own, :, own] = by_count[:, 0, 1, np.newaxis]
    gradients[own, own, :] = by_count[:, 1, 0, np.newaxis]
    gradients[own, own, own] = by_count[:, 1, 1]
    return metric(pairs)[:, 1], gradients


def _derivatives(shares: Floats, function: Callable[[Floats], Floats]) -> Floats:
    """Numeric derivatives, shape (C, D): central, or forward where a share is too small for a step down."""
    flat = shares.reshape(-1)
    derivatives = np.empty(flat.size)
    for begin in range(0, flat.size, max(1, _CHUNK // flat.size)):
        cells = np.arange(begin, min(flat.size, begin + max(1, _CHUNK // flat.size)))
        steps = np.zeros((cells.size, flat.size))
        steps[np.arange(cells.size), cells] = _STEP
        central = flat[cells] > _STEP
        steps_down = np.where(central[:, np.newaxis], -steps, 2 * steps)
        shape = (cells.size, *shares.shape)
        up = function((flat + steps).reshape(shape))
        other = function((flat + steps_down).reshape(shape))
        with np.errstate(
            invalid="ignore"
        ):  # an infinite metric, such as LR+ without an error, has no derivative
            forward = (4 * up - other - 3 * function(shares)) / (2 * _STEP)
            derivatives[cells] = np.where(central, (up - other) / (2 * _STEP), forward)
    return derivatives.reshape(shares.shape)


@dataclass(frozen=True)
class RequestedMetrics:
    """Metrics to estimate."""

    acronyms: tuple[str, ...]
    keys: tuple[str, ...]
    """of the estimates that are wanted"""

    @classmethod
    def of(cls, metrics: Sequence[str], classes: int) -> Self:
        """Metrics by acronym, or by acronym and class ("TPR[2]").

        Raises:
            InvalidInputError: no such metric, or one that decisions and probabilities alone do not give.
        """
        acronyms, keys = dict[str, None](), list[str]()
        for name in metrics:
            acronym = name.partition("[")[0]
            if acronym != AUROC and (acronym not in METRICS or METRICS[acronym].family != "counting"):
                raise InvalidInputError(
                    f"{name!r} cannot be estimated without labels.",
                    field="metrics",
                    hint="Name metrics that count decisions, such as AC, EC, BA, TPR, PPV, F_beta, MCC; or AUROC.",
                )
            names = metric_names(acronym, classes)
            if name != acronym and name not in names:
                raise InvalidInputError(f"{name!r} is not one of {', '.join(names)}.", field="metrics")
            acronyms[acronym] = None
            keys += names if name == acronym else [name]
        return cls(tuple(acronyms), tuple(dict.fromkeys(keys)))

    def select(self, estimates: Mapping[str, EstimatedMetric]) -> dict[str, EstimatedMetric]:
        """The wanted ones, in the order of the request."""
        return {key: estimates[key] for key in self.keys}
