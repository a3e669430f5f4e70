"""Realised performance as plain values."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class RealisedMetric:
    """One value of a metric that the recommendation of the task names; nan where it is undefined."""

    label: str
    """with its parameters, F_beta (beta=2.0)"""
    class_index: int | None
    """None: of all classes"""
    estimate: float
    low: float
    """lower end of its interval"""
    high: float
    threshold: float | None = None
    """the strictest acceptance threshold; None: there is none"""
    accepted: bool | None = None
    """True: the estimate reaches the thresholds; False: not even the better end of its interval does; None: there is no
    threshold, or there are too few labels to tell"""
    reason: str | None = None
    """why the estimate is undefined"""


@dataclass(frozen=True)
class LeftOutMetric:
    """A recommended metric that is not computed here, or not defined, and why."""

    label: str
    reason: str


@dataclass(frozen=True)
class LeftOutPredictions:
    """Labelled predictions that do not count, or not in all metrics."""

    samples: int
    reason: str
    """why not, and in which; to be read after the number"""


@dataclass(frozen=True)
class RecommendedMetrics:
    """Recommended metrics of a task for one population."""

    values: tuple[RealisedMetric, ...] = ()
    left_out: tuple[LeftOutMetric, ...] = ()
    unscored: tuple[LeftOutPredictions, ...] = ()
    """predictions without known probabilities, which the metrics of probabilities leave out"""


@dataclass(frozen=True)
class RealisedPerformance:
    """Performance of the answers, as they were given, on predictions whose true class is known now."""

    samples: int
    accuracy: float
    """share of correct decisions in 0..1"""
    expected_cost: float
    """mean cost per decision, in the units of the task's cost matrix"""
    recommended: RecommendedMetrics = RecommendedMetrics()
    left_out: tuple[LeftOutPredictions, ...] = ()
    accuracy_interval: tuple[float, float] = (math.nan, math.nan)
    expected_cost_interval: tuple[float, float] = (math.nan, math.nan)
    """lower and upper bounds; nan: undefined"""
