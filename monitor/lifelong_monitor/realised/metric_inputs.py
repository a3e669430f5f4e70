"""The labelled predictions that recommended metrics are computed from, and their bootstrap resamples.

Metrics of probabilities and kernels take longer than counts of decisions, so they use fewer, newer predictions.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.values.intervals import Resamples
from lifelong_core.design.validation.values.metric_value import MetricValue
from lifelong_core.design.validation.values.resampled_metrics import KERNELS
from lifelong_core.design.validation.values.samples import ModelOutputs, Samples
from lifelong_core.metrics import METRICS
from lifelong_core.store import LabelledPredictions
from lifelong_core.values.arrays import Floats, Integers
from lifelong_monitor.realised.answered_predictions import HeadOf, compute_answers
from lifelong_monitor.realised.records import LeftOutPredictions

MOST_SAMPLES = 100_000
MOST_PROBABILITIES = 500_000
"""Samples times classes, for metrics of probabilities: the slowest takes a second of one core."""
MOST_KERNEL_SAMPLES = 1_000
"""Kernels compare all pairs."""
ENOUGH_SAMPLES = 30
"""Smallest number of samples, of a class and of the rest, or per class on average, with which a threshold is judged.
Samples of one group count once."""

REPLICATES = 1000
MOST_FOR_ALL_REPLICATES = 50_000
"""Samples times classes up to which metrics that count decisions get all replicates."""
FEWER_REPLICATES = 200
SEED = 0

SCORED = frozenset({*KERNELS, "NB", "AUROC", "AP", "BS", "RBS", "BSS", "NLL", "ECE", "CWCE"})
"""Metrics of probabilities that can be resampled fast."""


@dataclass(frozen=True, eq=False)
class ResampledPredictions:
    """Labelled predictions with their bootstrap resamples."""

    samples: Samples
    resamples: Resamples
    counts: Integers
    """independent samples of each true class, shape (C,)"""

    @classmethod
    def of(
        cls,
        labelled: LabelledPredictions,
        rows: Integers,
        *,
        classes: int,
        probabilities: Floats | None = None,
    ) -> Self:
        """Resample some rows; `probabilities` belong to the rows, shape (n, C)."""
        samples = Samples.of(
            labelled.labels[rows],
            ModelOutputs(probabilities=probabilities, decisions=labelled.decisions[rows]),
            classes=classes,
            groups=None if labelled.groups is None else labelled.groups[rows],
        )
        is_fast = probabilities is None and samples.size * classes <= MOST_FOR_ALL_REPLICATES
        replicates = REPLICATES if is_fast else FEWER_REPLICATES
        independent = np.unique(samples.unit * classes + samples.labels) % classes
        return cls(
            samples,
            Resamples.draw(samples.unit, replicates=replicates, seed=SEED),
            np.bincount(independent, minlength=classes),
        )

    def is_enough(self, value: MetricValue) -> bool:
        """Whether there are enough samples to compare a value with a threshold."""
        total = self.counts.sum()
        if not METRICS[value.metric].is_per_class:
            return bool(total >= ENOUGH_SAMPLES * self.counts.size)
        counts = self.counts if value.class_index is None else self.counts[[value.class_index]]
        return bool(np.minimum(counts, total - counts).min() >= ENOUGH_SAMPLES)


@dataclass(frozen=True, eq=False)
class MetricInputs:
    """Labelled predictions for each kind of metric."""

    counted: ResampledPredictions
    """with labels and decisions"""
    scored: ResampledPredictions | None
    """with probabilities; None: no metric needs them, or none are known"""
    paired: ResampledPredictions | None
    """for kernels; None as in `scored`"""
    unscored: tuple[LeftOutPredictions, ...] = ()

    @classmethod
    def load(
        cls, labelled: LabelledPredictions, head_of: HeadOf, *, classes: int, needs_probabilities: bool
    ) -> Self:
        """Select the predictions, and compute their probabilities if a metric needs them."""
        counted = ResampledPredictions.of(labelled, _newest_rows(labelled, MOST_SAMPLES), classes=classes)
        if not needs_probabilities:
            return cls(counted, None, None)
        newest = _newest_rows(labelled, min(MOST_SAMPLES, MOST_PROBABILITIES // classes))
        answers = compute_answers(
            labelled.logits[newest], labelled.head_versions[newest], head_of, classes=classes
        )
        rows = newest[answers.is_known]
        if rows.size == 0:
            return cls(counted, None, None, answers.unscored)
        scored, paired = (
            ResampledPredictions.of(
                labelled, rows[-most:], classes=classes, probabilities=answers.probabilities[-most:]
            )
            for most in (rows.size, MOST_KERNEL_SAMPLES)
        )
        return cls(counted, scored, paired, answers.unscored)

    def for_metric(self, metric: RecommendedMetric) -> ResampledPredictions | None:
        """The predictions that a metric is computed from; None: no probabilities are known."""
        if metric.metric in KERNELS:
            return self.paired
        return self.scored if metric.metric in SCORED else self.counted


def _newest_rows(labelled: LabelledPredictions, most: int) -> Integers:
    """Indices of the newest rows, at most so many, shape (n,)."""
    size = labelled.labels.size
    return np.arange(max(0, size - most), size)
