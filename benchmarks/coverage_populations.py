"""Populations with known truths, for the coverage of intervals: two models, groups, and two scanners."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lifelong_core.design import ModelOutputs
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.values.evaluation import Recipe, estimate_metric
from lifelong_core.design.validation.values.parts import parts_of, select_part
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics.calibration.binned import DEFAULT_BINS, bin_edges
from lifelong_core.metrics.calibration.density import BANDWIDTHS, FLOOR, DirichletKernel, Smoothing
from lifelong_core.metrics.calibration.reference import draw_labels
from lifelong_core.values.arrays import Floats, Integers, softmax

MODELS = ("new", "current")
POPULATION = 200_000
KERNEL_POPULATION, KERNEL_ROWS = 12_000, 1_000
GROUP_SIZE = 10
SCANNERS = ("A", "B")
AGREEMENT = 0.3
"""probability that two labels of a group are drawn with one random number"""


@dataclass(frozen=True)
class Scenario:
    """How cases are drawn."""

    name: str
    classes: int
    units: int
    """independent cases: samples, or groups of ten"""
    grouped: bool
    sharpness: float
    """of the new model's logits relative to calibrated ones: above 1, it is over-confident"""

    @property
    def samples(self) -> int:
        """Samples of a data set."""
        return self.units * (GROUP_SIZE if self.grouped else 1)


@dataclass(frozen=True, eq=False)
class Cases:
    """Cases with their labels, and what both models say."""

    labels: Integers
    groups: Integers
    scanner: Integers
    probabilities: Mapping[str, Floats]
    true: Mapping[str, Floats]
    """shape (N, C) for each model: class probabilities given what the model says"""
    uncertainties: Floats


def draw(scenario: Scenario, rng: np.random.Generator, samples: int | None = None) -> Cases:
    """Cases of a scenario.

    The logits of the current model are calibrated, but for a bias; the new one sees more, and is too sure or not sure
    enough. Labels are drawn from what the new one sees.
    """
    size = samples or scenario.samples
    groups = np.arange(size) // (GROUP_SIZE if scenario.grouped else 1)
    count = int(groups[-1]) + 1
    scanner = rng.integers(2, size=count)[groups]
    common = rng.normal(size=(count, scenario.classes))[groups]
    own = rng.normal(size=(size, scenario.classes))
    seen = np.sqrt(0.5) * (common + own) if scenario.grouped else own
    prior = np.linspace(0.8, -0.8, scenario.classes)
    logits = 2.2 * seen + prior + 0.4 * scanner[:, np.newaxis] * np.eye(scenario.classes)[0]
    true = softmax(logits)
    labels = draw_labels(true, groups, AGREEMENT if scenario.grouped else 0.0, rng)
    tilt = np.linspace(-0.5, 0.5, scenario.classes)
    return Cases(
        labels=labels,
        groups=groups,
        scanner=scanner,
        probabilities={
            "new": softmax(scenario.sharpness * logits),
            "current": softmax(0.8 * logits + tilt),
        },
        true={"new": true, "current": true},
        uncertainties=rng.beta(2, 5, size=size) * 0.5,
    )


@cache
def population(scenario: Scenario) -> Cases:
    """Many cases of a scenario."""
    return draw(scenario, np.random.default_rng(10_000_019), POPULATION)


def of_part(cases: Cases, rows: Any) -> Cases:
    """Some of the cases."""
    return Cases(
        cases.labels[rows],
        cases.groups[rows],
        cases.scanner[rows],
        {model: values[rows] for model, values in cases.probabilities.items()},
        {model: values[rows] for model, values in cases.true.items()},
        cases.uncertainties[rows],
    )


@cache
def everyone(scenario: Scenario, scanner: int | None) -> Cases:
    """The population, or that of one scanner."""
    cases = population(scenario)
    return cases if scanner is None else of_part(cases, cases.scanner == scanner)


def recipe_of(label: str, metric: RecommendedMetric) -> Recipe:
    """The metric as validation computes it."""
    return Recipe.of(label, metric, weights=None, split=None, seed=0)


def true_value(
    scenario: Scenario,
    scanner: int | None,
    model: str,
    recipe: Recipe,
    class_index: int | None,
    *,
    threshold: float | None = None,
    bandwidth: float | None = None,
) -> float:
    """The value of a metric in the population."""
    key = (recipe.label, class_index, threshold, bandwidth)
    known = _KNOWN.setdefault((scenario, scanner, model), {})
    if key not in known:
        cases = everyone(scenario, scanner)
        known[key] = _value(cases, model, recipe, class_index, threshold, bandwidth)
    return known[key]


_KNOWN: dict[tuple[Scenario, int | None, str], dict[tuple[Any, ...], float]] = {}


def _value(
    cases: Cases,
    model: str,
    recipe: Recipe,
    class_index: int | None,
    threshold: float | None,
    bandwidth: float | None,
) -> float:
    predicted, true = cases.probabilities[model], cases.true[model]
    if recipe.acronym in CALIBRATION:
        by_class = CALIBRATION[recipe.acronym](predicted, true, bandwidth)
        return float(by_class if np.ndim(by_class) == 0 or class_index is None else by_class[class_index])
    if threshold is not None and class_index is not None:
        negatives = cases.labels != class_index
        return float((predicted[negatives, class_index] < threshold).mean())
    samples = Samples.of(cases.labels, ModelOutputs(probabilities=predicted), classes=predicted.shape[1])
    values = estimate_metric(recipe, samples).values
    part = next(one for one in parts_of(recipe, samples.classes) if one.class_index == class_index)
    return float(select_part(values, part, recipe))


def _binned(predicted: Floats, true: Floats) -> float:
    places = np.searchsorted(bin_edges(DEFAULT_BINS)[1:-1], predicted, side="right")
    return float(np.abs(np.bincount(places, weights=predicted - true)).sum()) / predicted.size


def _top(predicted: Floats, true: Floats) -> tuple[Floats, Floats]:
    rows, decided = np.arange(len(predicted)), predicted.argmax(axis=1)
    return predicted[rows, decided], true[rows, decided]


def _kernel_error(predicted: Floats, true: Floats, _: float | None) -> float:
    """Unbiased KCE with true class probabilities in place of labels; the bandwidth is that of the population."""
    points, gaps = predicted[:3_000], (true - predicted)[:3_000]
    apart = np.sqrt(np.square(points[:, np.newaxis] - points[np.newaxis]).sum(axis=2))
    width = np.median(apart[np.triu_indices(len(points), 1)])
    pairs = np.exp(-apart / width) * (gaps @ gaps.T)
    np.fill_diagonal(pairs, 0)
    return float(pairs.sum()) / (len(points) * (len(points) - 1))


def _density_error(predicted: Floats, true: Floats, bandwidth: float | None) -> float:
    """ECE_KDE with true class probabilities in place of labels, at the bandwidth that was chosen on the data."""
    points, gaps = predicted[:KERNEL_POPULATION], (true - predicted)[:KERNEL_POPULATION]
    width = bandwidth or BANDWIDTHS[0]
    smoothing = Smoothing(
        width, points, is_centred=True, kernel=DirichletKernel.of(points, width, floor=FLOOR)
    )
    weights = smoothing.weights_at(np.arange(KERNEL_ROWS))
    return float(np.abs(weights @ gaps / weights.sum(axis=1, keepdims=True)).sum(axis=1).mean())


CALIBRATION: Mapping[str, Any] = {
    "ECE": lambda p, q, _: _binned(*_top(p, q)),
    "CWCE": lambda p, q, _: np.mean([_binned(p[:, k], q[:, k]) for k in range(p.shape[1])]),
    "TCE": lambda p, q, _: np.abs(np.subtract(*_top(p, q))).mean(),
    "CE": lambda p, q, _: np.abs(p - q).sum(axis=1).mean(),
    "KCE": _kernel_error,
    "ECE_KDE": _density_error,
}
"""Errors with true class probabilities in place of labels, which chance does not make larger"""
