"""Parameters of metrics, as `compute_metrics` takes them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from numbers import Real
from typing import Any, Self, cast

from numpy.typing import ArrayLike

from lifelong_core.errors import InvalidInputError
from lifelong_core.metrics.calibration.binned import DEFAULT_BINS
from lifelong_core.metrics.calibration.kernel import DIRICHLET_BANDWIDTH, Estimator


@dataclass(frozen=True)
class Parameters:
    """Each belongs to the metrics that it names; the others ignore it. The metrics' functions check the values.

    Examples:
        >>> Parameters.of({"bins": 10}).bins_or_default
        10
        >>> Parameters.of({"target": {"TPR": 0.8}}).target
        ('TPR', 0.8)
        >>> Parameters.of({"bin": 10})
        Traceback (most recent call last):
        ...
        lifelong_core.errors.InvalidInputError: bin: no metric has such a parameter. Did you mean bins?
    """

    beta: float = 1.0
    """F_beta: how many times as much sensitivity counts as precision"""
    threshold: float = 0.5
    """NB: the probability of the class from which one would act on it"""
    target: tuple[str, float] | None = None
    """per-class metrics that count: another of these and the value to which the cut-off of the class's probability has
    to bring it, such as ("TPR", 0.8), {"TPR": 0.8} or just 0.8 for TPR; None: they count the decisions"""
    target_split: tuple[ArrayLike, ArrayLike] | None = None
    """labels and probabilities of other samples, on which that cut-off is chosen; None: on the same, too optimistic"""
    bins: int | None = None
    """ECE, CWCE: number of bins, None: 15. TCE, MCE: None: not binned, given exactly equal probabilities"""
    right_closed: bool = False
    """ECE, CWCE, TCE, MCE: each bin includes its upper edge instead of its lower one"""
    norm: float = 1
    """ECE, CWCE, TCE, MCE, CE, ECE_KDE: power of the distance"""
    bandwidth: float | None = None
    """KCE, ECE_KDE: of the kernel; None: the median distance of two predictions, and 0.1"""
    estimator: Estimator = "unbiased"
    """KCE: "unbiased" or "biased", of the squared error, or "root" of the biased one"""
    subsample: int | None = None
    """KCE, ECE_KDE: how many samples are looked at; None: as many as take a fraction of a second"""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Parameters by name, the others at their defaults.

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
        """For metrics that are always binned."""
        return DEFAULT_BINS if self.bins is None else self.bins

    @property
    def dirichlet_bandwidth(self) -> float:
        """That of ECE_KDE."""
        return DIRICHLET_BANDWIDTH if self.bandwidth is None else self.bandwidth


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
