"""Choice of the method by simulation on the calibration set: windows with other prevalences, scaled or noisy logits."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from lifelong_core.deploy.head_fitting import fit_head
from lifelong_core.deploy.labeled import LabeledLogits, crossfitting_folds
from lifelong_core.deploy.performance.performance_estimate import MATCHED, POSTERIORS, RATES
from lifelong_core.deploy.performance.unlabelled_window import JudgedHead, UnlabelledWindow, combined
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.metrics.counting.cost import zero_one_costs
from lifelong_core.values.arrays import Floats, Integers, centre_rows
from lifelong_core.values.errors import UnidentifiableError

CANDIDATES = (MATCHED, POSTERIORS, RATES)
"""The first one is chosen unless another is clearly better."""
WINDOWS = 24
FEWEST_WINDOWS = 8
"""Simulated windows per half of the calibration set; fewer with more than ten classes, whose estimates take longer."""
SAMPLES = 500
"""Samples of a simulated window."""
MOST_CLASSES = 100
"""With more classes, a simulated window has fewer than five samples of each and cannot tell the methods apart: the
first candidate is chosen, and its error is unknown."""
_SEED = 20_221_001
_SCALES = (0.7, 1.4)
_NOISE = 0.3
"""Standard deviation of the noise, in units of the spread of the centred logits."""
_CLEARLY = 3.0
"""Standard errors by which another method must be better."""


@dataclass(frozen=True, eq=False)
class MethodChoice:
    """The chosen method, with each candidate's mean absolute error of the accuracy in the simulated windows."""

    method: str
    errors: Mapping[str, float]
    """empty where no window could be simulated: a class or group cannot be divided into two halves, or there are more
    than MOST_CLASSES classes"""

    @property
    def validated_error(self) -> float | None:
        """Error of the chosen method."""
        return self.errors.get(self.method)


def choose_method(quantifier: FittedQuantifier) -> MethodChoice:
    """Choose among CANDIDATES by their error of the accuracy; a deterministic function of the fitted quantifier.

    Each half of the calibration set serves once as calibration set, and the other half as population. Half of the
    windows have another prevalence only, a quarter also scaled logits, a quarter also noise. Errors are those with half
    of the calibration set, hence somewhat too large for the whole set.
    """
    data = quantifier.calibration
    halves = crossfitting_folds(data, 2) if data.classes <= MOST_CLASSES else np.zeros(1)
    found: list[Floats] = []
    for half in (0, 1) if halves.any() else ():
        try:
            fitted = type(quantifier)(data.select(halves == half), quantifier.settings)
        except UnidentifiableError:
            continue
        found.append(_errors(fitted, data.select(halves != half), np.random.default_rng(_SEED + half)))
    if not found:
        return MethodChoice(MATCHED, MappingProxyType({}))
    errors = np.vstack(found)
    gains = errors[:, :1] - errors
    doubts = gains.std(axis=0, ddof=1) / np.sqrt(len(errors))
    clearly = gains.mean(axis=0) > _CLEARLY * doubts
    best = int(np.argmax(np.where(clearly, gains.mean(axis=0), 0.0)))
    means = errors.mean(axis=0).tolist()
    return MethodChoice(CANDIDATES[best], MappingProxyType(dict(zip(CANDIDATES, means, strict=True))))


def _errors(fitted: FittedQuantifier, population: LabeledLogits, rng: np.random.Generator) -> Floats:
    """Absolute error of the accuracy by each candidate, shape (W, 3), in windows drawn from a population."""
    data = fitted.calibration
    head = fit_head(data, zero_one_costs(data.classes))
    spread = float(centre_rows(data.logits).std())
    windows = min(WINDOWS, max(FEWEST_WINDOWS, 10 * WINDOWS // data.classes))
    errors = np.empty((windows, len(CANDIDATES)))
    for number in range(windows):
        rows = _draw(population, rng)
        logits, labels = population.logits[rows].astype(np.float64), population.labels[rows]
        if number % 4 == 2:
            logits = logits * rng.choice(_SCALES)
        if number % 4 == 3:
            logits = logits + rng.normal(scale=_NOISE * spread, size=logits.shape)
        window = logits.astype(np.float32)
        judged = UnlabelledWindow(fitted, window, None, fitted.analyse(window)).judge(head)
        truth = float((judged.window.decisions == labels).mean())
        errors[number] = [abs(_accuracy(judged, method) - truth) for method in CANDIDATES]
    return errors


def _accuracy(judged: JudgedHead, method: str) -> float:
    return float(np.trace(combined(method, *judged.confusions(method))))


def _draw(population: LabeledLogits, rng: np.random.Generator) -> Integers:
    """Rows with a random prevalence, every one alike (Dirichlet with parameters 1)."""
    labels = rng.choice(population.classes, size=SAMPLES, p=rng.dirichlet(np.ones(population.classes)))
    rows = np.empty(SAMPLES, dtype=np.int64)
    for k in np.unique(labels).tolist():
        own = np.flatnonzero(population.labels == k)
        rows[labels == k] = rng.choice(own, size=int((labels == k).sum()))
    return rows
