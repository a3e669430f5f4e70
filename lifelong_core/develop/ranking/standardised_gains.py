"""The training data of a ranker: gains that are comparable between targets, and the track record of each source."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.knowledge.entry import TaskCard, TransferOutcomes, dataset_of
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Mask

FEWEST_SOURCES = 4
"""A target with fewer measured sources says too little of their order."""
_LOWEST_RELIABILITY = 0.05
_PRIOR_TARGETS = 3.0
"""Targets of average outcome that every track record starts with: few targets say little."""


def _transfers(outcomes: TransferOutcomes, scenario: int) -> Floats:
    """Outcomes of one scenario without those from a task to itself, shape (M, R, T, T)."""
    itself = np.eye(len(outcomes.cards), dtype=np.bool_)
    return np.where(itself, np.nan, outcomes.outcomes[scenario])


def measured_pairs(outcomes: TransferOutcomes, scenario: int) -> Mask:
    """Pairs with an outcome in any measure, shape (T, T): source, target."""
    return np.asarray(~np.isnan(_transfers(outcomes, scenario)).all(axis=(0, 1)))


def mean_baselines(outcomes: TransferOutcomes) -> Floats:
    """Mean performance without transfer over the repetitions, shape (M, T); nan: not measured."""
    return _mean(outcomes.baseline, axis=1)


def gains(outcomes: TransferOutcomes, scenario: int) -> Floats:
    """Mean outcome over the repetitions minus mean baseline, shape (M, T, T): measure, source, target."""
    transferred = _mean(_transfers(outcomes, scenario), axis=1)
    return transferred - mean_baselines(outcomes)[:, np.newaxis, :]


def gain_variances(outcomes: TransferOutcomes, scenario: int) -> Floats:
    """Variance of each mean gain by its repetitions, shape (M, T, T): measure, source, target; nan: not known.

    Pairs are repeated too few times to have a variance of their own: that between repetitions is the mean over the
    sources of the target, or over all targets where none of this one was repeated. A baseline that was not repeated is
    taken to vary as the transfers do.
    """
    runs, baseline = _transfers(outcomes, scenario), outcomes.baseline
    by_target = _mean(_variance(runs, axis=1), axis=1)
    between_runs = np.where(np.isnan(by_target), _mean(by_target, axis=1)[:, np.newaxis], by_target)
    of_baseline = _variance(baseline, axis=1)
    of_baseline = np.where(np.isnan(of_baseline), between_runs, of_baseline)
    transferred = between_runs[:, np.newaxis] / _counts_or_nan(runs)
    return transferred + (of_baseline / _counts_or_nan(baseline))[:, np.newaxis]


def _counts_or_nan(runs: NDArray[np.float64]) -> Floats:
    """Number of the repetitions, which lie on axis 1; nan for none."""
    counts = (~np.isnan(runs)).sum(axis=1)
    return np.where(counts > 0, counts, np.nan)


@dataclass(frozen=True, eq=False)
class StandardisedGains(ArrayValue):
    """Outcomes of one scenario, centred and scaled for each target and averaged over the measures."""

    values: Floats
    """(T, T): source, target; nan: not measured"""
    reliability: Floats
    """(T,), in [0, 1]: share of the variance between sources that is not noise of the repetitions; 0: too few
    sources"""

    @classmethod
    def of(cls, outcomes: TransferOutcomes, scenario: int) -> Self:
        """Standardise within targets: only the order of sources matters to a target, not its level.

        A measure counts by its reliability, so that differences between sources which repetitions do not confirm
        teach little.
        """
        runs = _transfers(outcomes, scenario)
        means = _mean(runs, axis=1)
        known = ~np.isnan(means)
        counts = known.sum(axis=1)
        total = _variance(means, axis=1)
        usable = (counts >= FEWEST_SOURCES) & (total > 0)
        noise = _mean(_variance_of_mean(runs, axis=1), axis=1)
        reliability = np.where(
            usable,
            np.clip(1 - np.nan_to_num(noise) / np.where(usable, total, 1.0), _LOWEST_RELIABILITY, 1),
            0.0,
        )
        centred = (means - _mean(means, axis=1)[:, np.newaxis]) / np.sqrt(np.where(usable, total, 1.0))[
            :, np.newaxis
        ]
        weights = np.where(known & usable[:, np.newaxis], reliability[:, np.newaxis], 0.0)
        weight = weights.sum(axis=0)
        summed = (np.nan_to_num(centred) * weights).sum(axis=0)
        values = np.where(weight > 0, summed / np.where(weight > 0, weight, 1.0), np.nan)
        measures = np.maximum(usable.sum(axis=0), 1)
        return cls(values, reliability.sum(axis=0) / measures)


@dataclass(frozen=True, eq=False)
class TrackRecords(ArrayValue):
    """Standardised gains of each source, summed over the targets of each data set."""

    sources: tuple[str, ...]
    datasets: tuple[str, ...]
    sums: Floats
    """(K, G): source, data set of the targets"""
    counts: Floats
    """(K, G): number of targets"""

    @classmethod
    def of(cls, cards: tuple[TaskCard, ...], gains: StandardisedGains) -> Self:
        """Track records of all tasks as sources."""
        groups = np.array([dataset_of(card) for card in cards])
        datasets = tuple(dict.fromkeys(groups.tolist()))
        weighted = gains.values * gains.reliability
        sums = [np.nansum(weighted[:, groups == name], axis=1) for name in datasets]
        counts = [(~np.isnan(weighted[:, groups == name])).sum(axis=1) for name in datasets]
        return cls(
            tuple(card.name for card in cards),
            datasets,
            np.stack(sums, axis=1),
            np.stack(counts, axis=1) * 1.0,
        )

    def for_target(self, sources: tuple[str, ...], target: TaskCard) -> Floats:
        """Shrunken mean over the targets of other data sets, shape (K,); nan: never measured there."""
        other = np.array([name != dataset_of(target) for name in self.datasets])
        sums = dict(zip(self.sources, self.sums[:, other].sum(axis=1), strict=True))
        counts = dict(zip(self.sources, self.counts[:, other].sum(axis=1), strict=True))
        return np.array(
            [
                sums[name] / (counts[name] + _PRIOR_TARGETS) if counts.get(name, 0) > 0 else np.nan
                for name in sources
            ]
        )


def _mean(values: NDArray[np.float64], *, axis: int) -> Floats:
    """Mean of the known values; nan where there is none."""
    known = ~np.isnan(values)
    counts = known.sum(axis=axis)
    return np.where(counts > 0, np.nan_to_num(values).sum(axis=axis) / np.maximum(counts, 1), np.nan)


def _variance(values: NDArray[np.float64], *, axis: int) -> Floats:
    """Unbiased variance of the known values; nan for fewer than two."""
    known = ~np.isnan(values)
    counts = known.sum(axis=axis)
    deviations = np.where(known, values - np.expand_dims(_mean(values, axis=axis), axis), 0.0)
    return np.where(counts > 1, (deviations**2).sum(axis=axis) / np.maximum(counts - 1, 1), np.nan)


def _variance_of_mean(values: NDArray[np.float64], *, axis: int) -> Floats:
    """Estimated variance of the mean of the known values; nan for fewer than two."""
    return _variance(values, axis=axis) / np.maximum((~np.isnan(values)).sum(axis=axis), 1)
