"""Metrics that count, by acronym, for many confusion matrices at once, as the bootstrap needs them."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from numpy.typing import ArrayLike

from lifelong_core.metrics.catalogue.metrics import METRICS, PER_CLASS_COUNTS, metric_info
from lifelong_core.metrics.counting.cost import expected_costs, normalised_expected_costs
from lifelong_core.metrics.counting.multiclass import (
    accuracies,
    balanced_accuracies,
    cohen_kappas,
    error_rates,
    matthews_correlations,
    weighted_cohen_kappas,
)
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

_OF_ALL_CLASSES: Mapping[str, Callable[..., Floats]] = MappingProxyType(
    {
        "AC": accuracies,
        "ER": error_rates,
        "BA": balanced_accuracies,
        "EC": expected_costs,
        "NEC": normalised_expected_costs,
        "WCK": weighted_cohen_kappas,
        "CK": cohen_kappas,
        "MCC": matthews_correlations,
    }
)


def counting_metric(
    acronym: str,
    *,
    costs: ArrayLike | None = None,
    prevalence: ArrayLike | None = None,
    beta: float = 1.0,
    threshold: float = 0.5,
) -> Callable[[Floats], Floats]:
    """Return a metric that counts as a function of confusion matrices (..., C, D): shape (...), or (..., C) per class.

    Args:
        acronym: acronym of a metric that counts.
        costs: of EC, NEC and WCK, shape (C, D); None: 0-1 costs.
        prevalence: of EC and NEC, shape (C,); None: that of each matrix.
        beta: of F_beta.
        threshold: of NB.

    Raises:
        InvalidInputError: there is no such metric, or it does not count.

    Examples:
        >>> from lifelong_core.metrics.resampling.bootstrap import bootstrap_confusions
        >>> resampled = bootstrap_confusions([0] * 50 + [1] * 50, [0] * 40 + [1] * 60, classes=2)
        >>> intervals = resampled.of(counting_metric("F_beta", beta=2)).intervals()
        >>> [round(one.estimate, 2) for one in intervals]
        [0.83, 0.96]
    """
    if metric_info(acronym).family != "counting":
        raise InvalidInputError(f"{acronym} does not count decisions.", field="acronym")
    match acronym:
        case "EC" | "NEC":
            return partial(_OF_ALL_CLASSES[acronym], costs=costs, prevalence=prevalence)
        case "WCK":
            return partial(weighted_cohen_kappas, costs=costs)
        case "F_beta":
            return partial(METRICS[acronym].function, beta=beta)
        case "NB":
            return partial(METRICS[acronym].function, threshold=threshold)
        case _:
            return METRICS[acronym].function if acronym in PER_CLASS_COUNTS else _OF_ALL_CLASSES[acronym]
