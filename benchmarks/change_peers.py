"""Peers of the change points: exponential forgetting, ruptures, and the drift detectors of River."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import ruptures
from river import drift

from benchmarks.streams import WINDOW
from lifelong_core.deploy import FittedQuantifier
from lifelong_core.deploy.numerics.simplex import mixture_weights

FORGETTING = "forgetting"
RATES = (250, 500, 1000, 2000, 4000, 8000)
"""samples after which a weight has fallen to 1/e"""
KERNELS = {"ruptures, l2": "linear", "ruptures, rbf": "rbf"}
"""Method: kernel of ruptures."""
COUNTED = 50
"""samples of one vector of class counts"""
FALSE_ALARMS = 0.01
"""share of unchanged windows in which a tuned peer finds a change"""
_PENALTIES = (1e-4, 1e3)
_HALVINGS = 12


def forget(fitted: FittedQuantifier, logits: np.ndarray) -> dict[int, np.ndarray]:
    """The most likely prevalence with weights exp(-age / rate), for each of RATES."""
    densities, start = fitted.densities(logits), fitted.calibration.prevalence
    ages = np.arange(len(logits))[::-1]
    return {rate: mixture_weights(densities, np.exp(-ages / rate), start) for rate in RATES}


def class_shares(logits: np.ndarray) -> np.ndarray:
    """Share of each class among the decisions (largest logit) of COUNTED samples, shape (WINDOW / COUNTED, C)."""
    decided = np.eye(logits.shape[1])[logits.argmax(axis=1)]
    return decided.reshape(-1, COUNTED, logits.shape[1]).mean(axis=1)


@dataclass(frozen=True)
class Segmentation:
    """PELT of ruptures on class shares; kernel "linear" is its l2 cost."""

    kernel: str
    penalty: float

    @classmethod
    def tuned(cls, kernel: str, unchanged: Sequence[np.ndarray]) -> Self:
        """With the smallest penalty that raises FALSE_ALARMS in unchanged windows; by bisection."""
        low, high = _PENALTIES
        for _ in range(_HALVINGS):
            middle = (low * high) ** 0.5
            alarms = np.mean([bool(cls(kernel, middle).changes(shares)) for shares in unchanged])
            low, high = (middle, high) if alarms > FALSE_ALARMS else (low, middle)
        return cls(kernel, high)

    def changes(self, shares: np.ndarray) -> tuple[int, ...]:
        """Samples since each change, oldest first."""
        search = ruptures.KernelCPD(kernel=self.kernel, min_size=2).fit(shares)
        return tuple(WINDOW - COUNTED * int(end) for end in search.predict(pen=self.penalty)[:-1])


DETECTORS: dict[str, Callable[[], Any]] = {
    "ADWIN": drift.ADWIN,
    "Page-Hinkley": drift.PageHinkley,
    "KSWIN": lambda: drift.KSWIN(seed=0),
}
"""River's, with its defaults"""


def alarms(name: str, values: np.ndarray) -> list[int]:
    """Samples, from 1 on, after which a detector has raised an alarm; it starts anew after each."""
    detector, found = DETECTORS[name](), []
    for number, value in enumerate(values, start=1):
        detector.update(float(value))
        if detector.drift_detected:
            found.append(number)
    return found
