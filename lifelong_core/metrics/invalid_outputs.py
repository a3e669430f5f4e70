"""Samples without a valid output and their effect on metrics (FP5.3).

Their share f of the samples counts as the worst value of the metric: the metric is (1 - f) times the value of the other
samples plus f times the worst value. Where the bad end has no bound, the naive classifier's value replaces the worst
(thesis Table 4.3). A metric that is a mean over the samples of some true classes uses the share f among these samples,
so that an invalid sample is a miss of its own class and a false alarm for every other; BA, J, EC, NEC, RBS and BSS
consist of such means.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np

from lifelong_core.metrics.calibration.kernel import Estimate
from lifelong_core.metrics.catalogue import METRICS
from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.metrics.counting.cost import linear_costs, quadratic_costs, zero_one_costs
from lifelong_core.metrics.evaluation import EVALUATORS, SharedComputations, Value
from lifelong_core.metrics.scores.scoring_rules import skill
from lifelong_core.values.arrays import Floats


def value_of(acronym: str, work: SharedComputations) -> Value:
    """Value of a metric over all samples.

    Raises:
        InvalidInputError: an input is missing, or a parameter does not fit.
    """
    return with_invalid(acronym, EVALUATORS[acronym](work), work)


def with_invalid(acronym: str, value: Value, work: SharedComputations) -> Value:
    """Value of a metric over all samples, from its value on the samples with a valid output."""
    if not work.inputs.invalid.any():
        return value
    shares = _Shares.of(work)
    if isinstance(value, Estimate):
        mixed = _mixed(value.value, shares.of_all, _worst(acronym, work, shares))
        error = value.standard_error * float(1 - shares.of_all)
        return Estimate(float(mixed), standard_error=error, samples=value.samples)
    if acronym in _MADE_OF_MEANS and not (acronym == "J" and work.parameters.target):
        mixed = _MADE_OF_MEANS[acronym](work, shares)
    else:
        mixed = _mixed(value, shares.among_those_of(acronym), _worst(acronym, work, shares))
    return float(mixed) if np.ndim(mixed) == 0 else np.asarray(mixed)


@dataclass(frozen=True, eq=False)
class _Shares:
    """Shares of the classes, and of the samples without a valid output in them."""

    prevalence: Floats
    """shape (C,), shares of the true classes among all samples"""
    of_all: Floats
    of_class: Floats
    """shape (C,), among the samples of each class"""
    of_rest: Floats
    """shape (C,), among those of all other classes"""

    @classmethod
    def of(cls, work: SharedComputations) -> Self:
        invalid, labels = work.inputs.invalid, work.inputs.labels
        valid = work.confusion.sum(axis=1) if labels is None else np.bincount(labels, minlength=invalid.size)
        sizes = invalid + valid
        rest, rest_invalid = sizes.sum() - sizes, invalid.sum() - invalid
        return cls(
            prevalence=sizes / sizes.sum(),
            of_all=np.asarray(invalid.sum() / sizes.sum()),
            of_class=invalid / np.where(sizes > 0, sizes, 1),
            of_rest=rest_invalid / np.where(rest > 0, rest, 1),
        )

    def among_those_of(self, acronym: str) -> Floats:
        """Share among the samples that a metric is a mean over."""
        match acronym:
            case "TPR" | "FNR":
                return self.of_class
            case "TNR" | "FPR":
                return self.of_rest
            case _:
                return self.of_all


def _mixed(value: Value, share: Floats, worst: Value) -> Floats:
    of_valid = np.where(
        share < 1, value, 0.0
    )  # without a valid sample it is undefined, which does not matter
    return np.where(share > 0, (1 - share) * of_valid + share * worst, of_valid)


def _worst(acronym: str, work: SharedComputations, shares: _Shares) -> Value:
    if METRICS[acronym].is_bounded:
        return METRICS[acronym].worst
    return _NAIVE[acronym](work, shares)


def _naive_net_benefit(work: SharedComputations, shares: _Shares) -> Floats:
    threshold, rest = np.array(work.parameters.threshold), 1 - shares.prevalence
    harm = np.where(rest > 0, rest, 1.0) * ratio(threshold, 1 - threshold)
    return np.maximum(shares.prevalence - np.where(rest > 0, harm, 0.0), 0.0)


def _entropy(_: SharedComputations, shares: _Shares) -> float:
    present = shares.prevalence[shares.prevalence > 0]
    return float(-(present * np.log(present)).sum())


def _worst_kappa(work: SharedComputations, _: _Shares) -> float:
    """Worst value of kappa: -1 for costs with a bound at the bad end, in any unit; otherwise 0, the naive value."""
    costs, classes = work.costs, len(work.costs)
    if costs.shape != (classes, classes) or not costs.max() > 0:
        return 0.0
    bounded = (zero_one_costs(classes), linear_costs(classes), quadratic_costs(classes))
    return -1.0 if any(np.allclose(costs / costs.max(), known / known.max()) for known in bounded) else 0.0


def _naive_cost(work: SharedComputations, shares: _Shares) -> float:
    given = work.inputs.prevalence
    return float(((shares.prevalence if given is None else given) @ work.costs).min())


def _expected_cost(work: SharedComputations, shares: _Shares) -> float:
    by_class = ratio((work.confusion * work.costs).sum(axis=1), work.confusion.sum(axis=1))
    mixed = _mixed(by_class, shares.of_class, _naive_cost(work, shares))
    given = work.inputs.prevalence
    weights = shares.prevalence if given is None else given
    return float(np.where(weights > 0, weights * mixed, 0.0).sum())


def _normalised_expected_cost(work: SharedComputations, shares: _Shares) -> float:
    if shares.of_all == 1:
        return 1.0
    return float(ratio(np.array(_expected_cost(work, shares)), np.array(_naive_cost(work, shares))))


def _sensitivity(work: SharedComputations, shares: _Shares) -> Floats:
    return _mixed(work.one_class_metric("TPR")(work.confusion), shares.of_class, 0.0)


def _youden_index(work: SharedComputations, shares: _Shares) -> Floats:
    specificity = _mixed(work.one_class_metric("TNR")(work.confusion), shares.of_rest, 0.0)
    return _sensitivity(work, shares) + specificity - 1


def _brier_score(work: SharedComputations, shares: _Shares, worst: float) -> float:
    return float(_mixed(work.brier_score, shares.of_all, worst))


def _brier_skill_score(work: SharedComputations, shares: _Shares) -> float:
    naive = float((shares.prevalence * (1 - shares.prevalence)).sum())
    return 0.0 if shares.of_all == 1 else skill(_brier_score(work, shares, naive), naive)


_NAIVE: Mapping[str, Callable[[SharedComputations, _Shares], Value]] = MappingProxyType(
    {
        "WCK": _worst_kappa,
        "LR-": lambda _work, _shares: 1.0,
        "NB": _naive_net_benefit,
        "NLL": _entropy,
        "KCE": lambda _work, _shares: 0.0,
        "ECCL": lambda _work, _shares: 0.0,
    }
)
"""Values of a classifier that ignores the image, for metrics without a worst value; its predictions are the class
shares, which are calibrated."""

_MADE_OF_MEANS: Mapping[str, Callable[[SharedComputations, _Shares], Value]] = MappingProxyType(
    {
        "BA": lambda work, shares: float(_sensitivity(work, shares).mean()),
        "J": _youden_index,
        "EC": _expected_cost,
        "NEC": _normalised_expected_cost,
        "RBS": lambda work, shares: float(np.sqrt(_brier_score(work, shares, METRICS["BS"].worst))),
        "BSS": _brier_skill_score,
    }
)
