"""Parameters of metrics, for `compute_metrics`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from numbers import Real
from typing import Any, Self, cast

from numpy.typing import ArrayLike

from lifelong_core.metrics.calibration.binned import DEFAULT_BINS
from lifelong_core.metrics.calibration.kernel import Estimator
from lifelong_core.values.errors import InvalidInputError


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
