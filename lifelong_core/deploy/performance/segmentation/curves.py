"""Sums of calibrated probabilities as functions of one parameter of each predicted class.

A curve gives, for pixels predicted as k, the sum of the calibrated probability of class j over the pixels of each case.
The sum for j = k falls in the parameter: the temperature, the threshold, or the offset that is subtracted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from lifelong_core.deploy.performance.segmentation.sums import (
    LARGEST_LOG_TEMPERATURE,
    NODES,
    CaseSums,
    Counts,
    node_logs,
    threshold_log_odds,
)
from lifelong_core.values.arrays import Floats
from lifelong_core.values.scientific import root


class Curves(Protocol):
    """Sums of Z cases as functions of a parameter."""

    def sums(self, predicted: int, other: int, parameter: float) -> Floats:
        """Sum of the calibrated probability of `other` over the pixels predicted as `predicted`, shape (Z,)."""
        ...

    def pooled(self, weights: Floats) -> Self:
        """The curves of all pixels together, as of one case; `weights` (Z,) counts the cases."""
        ...

    def closest(self, excess: Callable[[float], float]) -> float:
        """The parameter at which a falling function is closest to 0."""
        ...

    def readable(self, predicted: int, parameter: float) -> float:
        """The parameter in the units of the paper."""
        ...

    def at_limit(self, parameter: float) -> bool:
        """Whether the parameter is an end of its range."""
        ...


@dataclass(frozen=True, eq=False)
class TemperatureCurves:
    """The softmax at a temperature; the parameter is its logarithm.

    Sums are smooth in it: the polynomial through their values at Chebyshev points is off by less than 1e-4 of the
    pixels.
    """

    values: np.ndarray
    """shape (Z, C, C, NODES)"""

    @classmethod
    def of(cls, sums: CaseSums) -> Self:
        """Curves of cases whose sums were kept at all temperatures."""
        if sums.tempered is None:
            raise TypeError("the sums lack temperatures")
        return cls(sums.tempered)

    def sums(self, predicted: int, other: int, parameter: float) -> Floats:
        """Sum of the calibrated probabilities, shape (Z,)."""
        return self.values[:, predicted, other] @ _node_weights(parameter)

    def pooled(self, weights: Floats) -> Self:
        """The curves of all pixels together."""
        return type(self)(np.tensordot(weights, self.values, axes=1)[np.newaxis])

    def closest(self, excess: Callable[[float], float]) -> float:
        """The root, or the better end of the range."""
        return root(excess, -LARGEST_LOG_TEMPERATURE, LARGEST_LOG_TEMPERATURE)

    def readable(self, predicted: int, parameter: float) -> float:
        """The temperature."""
        del predicted
        return float(np.exp(parameter))

    def at_limit(self, parameter: float) -> bool:
        """Whether the temperature is the smallest or the largest one."""
        return abs(parameter) >= LARGEST_LOG_TEMPERATURE


@dataclass(frozen=True, eq=False)
class ThresholdCurves:
    """Probabilities above a threshold count as 1, others as 0; the parameter is the index of a threshold.

    Among equally good thresholds, `closest` takes the largest one that has a share at or above the target.
    """

    survivors: Counts | Floats
    others: Counts | Floats
    """as in `CaseSums`"""
    temperatures: Floats
    """shape (C,) or longer, temperatures of the probabilities, by predicted class"""

    @classmethod
    def of(cls, sums: CaseSums) -> Self:
        """Curves of cases whose pixels were counted."""
        if sums.survivors is None or sums.others is None or sums.thresholds_at is None:
            raise TypeError("the sums lack thresholds")
        return cls(sums.survivors, sums.others, sums.thresholds_at)

    def sums(self, predicted: int, other: int, parameter: float) -> Floats:
        """Number of pixels above the threshold, shape (Z,)."""
        index = int(parameter)
        if predicted == other:
            return self.survivors[:, predicted, index].astype(np.float64)
        if index >= self.others.shape[3]:
            return np.zeros(len(self.others))
        return self.others[:, predicted, other, index].astype(np.float64)

    def pooled(self, weights: Floats) -> Self:
        """The curves of all pixels together."""
        return type(self)(
            np.tensordot(weights, self.survivors, axes=1)[np.newaxis],
            np.tensordot(weights, self.others, axes=1)[np.newaxis],
            self.temperatures,
        )

    def closest(self, excess: Callable[[float], float]) -> float:
        """The better of the last threshold with an excess >= 0 and the next one."""
        low, high = 0, self.survivors.shape[2] - 1
        if excess(low) < 0:
            return float(low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if excess(middle) >= 0 else (low, middle)
        return float(low if abs(excess(low)) <= abs(excess(high)) else high)

    def readable(self, predicted: int, parameter: float) -> float:
        """The threshold of the probability."""
        if parameter >= self.survivors.shape[2] - 1:
            return 1.0
        log_odds = threshold_log_odds(self.survivors.shape[1], float(self.temperatures[predicted]))
        return float(1 / (1 + np.exp(-log_odds[int(parameter)])))

    def at_limit(self, parameter: float) -> bool:
        """Whether all pixels, or none, are above the threshold."""
        return parameter in (0, self.survivors.shape[2] - 1)


@dataclass(frozen=True, eq=False)
class OffsetCurves:
    """Probabilities less an offset in the predicted class, which the other classes share (eqs. 3 and 4)."""

    probabilities: Floats
    """shape (Z, C, C)"""
    predicted: Floats
    """shape (Z, C)"""

    @classmethod
    def of(cls, sums: CaseSums) -> Self:
        """Curves of any sums."""
        return cls(sums.probabilities, sums.predicted)

    def sums(self, predicted: int, other: int, parameter: float) -> Floats:
        """Sum of the probabilities with the offset, shape (Z,)."""
        classes = self.predicted.shape[1]
        share = -parameter if predicted == other else parameter / (classes - 1)
        return self.probabilities[:, predicted, other] + share * self.predicted[:, predicted]

    def pooled(self, weights: Floats) -> Self:
        """The curves of all pixels together."""
        return type(self)(
            np.tensordot(weights, self.probabilities, axes=1)[np.newaxis],
            (weights @ self.predicted)[np.newaxis],
        )

    def closest(self, excess: Callable[[float], float]) -> float:
        """The root."""
        return root(excess, -1.0, 1.0)

    def readable(self, predicted: int, parameter: float) -> float:
        """The offset."""
        del predicted
        return parameter

    def at_limit(self, parameter: float) -> bool:
        """Whether the offset is an end of its range, which the mean confidence less the accuracy cannot be."""
        return abs(parameter) >= 1


def _node_weights(log_temperature: float) -> Floats:
    """Weights of the values at Chebyshev points in their polynomial at a place, shape (NODES,): barycentric formula."""
    gaps = log_temperature - node_logs()
    if not gaps.all():
        return (gaps == 0).astype(np.float64)
    angles = (np.arange(NODES) + 0.5) * np.pi / NODES
    weights = (-1.0) ** np.arange(NODES) * np.sin(angles) / gaps
    return weights / weights.sum()
