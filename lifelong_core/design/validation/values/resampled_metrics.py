"""Recommended metrics of resampled data."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lifelong_core.design.validation.values.class_mix import ClassMix
from lifelong_core.design.validation.values.evaluation import (
    CutOffs,
    Recipe,
    estimate_metric,
    mean_over_classes,
)
from lifelong_core.design.validation.values.intervals import Resamples
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import METRICS, zero_one_costs
from lifelong_core.metrics.calibration.cost_loss import cost_gains
from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.metrics.evaluation import SharedComputations
from lifelong_core.metrics.inputs import CheckedInputs
from lifelong_core.metrics.invalid_outputs import with_invalid
from lifelong_core.metrics.resampling.intervals import Bootstrap
from lifelong_core.metrics.resampling.weighted import (
    Counts,
    Weighted,
    weighted_brier_score,
    weighted_ece_kde,
    weighted_kernel_error,
    weighted_scores,
)
from lifelong_core.metrics.scores.at_target import SHARE_OF_POSITIVES
from lifelong_core.values.arrays import Floats

SLOW_REPLICATES = 200
"""Replicates of metrics that are computed anew for each resampled data set, and of kernels in subgroups"""
KERNELS = ("KCE", "ECE_KDE")
"""Metrics of all pairs of samples"""


def resample_metric(recipe: Recipe, part: Samples, draws: Resamples, estimate: Floats) -> Bootstrap:
    """Point estimate, bootstrap replicates and jackknife values of one metric, each of shape () or (C,).

    Args:
        recipe: how to compute it.
        part: the samples, such as those of a subgroup.
        draws: of these samples.
        estimate: the metric of them, shape () or (C,).
    """
    if recipe.is_refused:
        return draws.split(np.full((len(draws.times), *estimate.shape), np.nan))
    if recipe.cut_offs is not None:
        return draws.split(at_cut_offs(recipe, recipe.cut_offs, recipe.acronym, part, draws))
    if recipe.converted is not None:
        return draws.split(values_in_use(recipe, recipe.converted, part, draws))
    if _counts_decisions(recipe, part):
        values = _of_decisions(recipe, part, draws)
    else:
        weighted = _weighted(recipe, part.part(part.is_valid))
        if weighted is None:
            return _one_by_one(recipe, part, draws.first(SLOW_REPLICATES), estimate)
        values = draws.part(part.is_valid).values(weighted)
        if recipe.acronym == "CWCE":
            values = mean_over_classes(values, recipe.weights)
        if not part.is_valid.all():
            values = _with_invalid(
                recipe, recipe.acronym, values, _sizes(part, draws), _brier_scores(recipe, part, draws)
            )
    resampled = draws.split(values)
    # `compute_metrics` is not told the groups, which ECCL keeps in one fold.
    return resampled if recipe.acronym == "ECCL" else replace(resampled, estimate=estimate)


def at_cut_offs(recipe: Recipe, cut_offs: CutOffs, acronym: str, part: Samples, draws: Resamples) -> Floats:
    """A counting metric at the cut-offs of a recipe, shape (1 + R + M, C); at the class mix of use if it is known."""
    values = np.full((len(draws.times), part.classes), np.nan)
    metric, mix = recipe.counting(acronym), recipe.converted
    for k in np.flatnonzero(~np.isnan(cut_offs.thresholds)):
        below = part.scores[:, k] < cut_offs.thresholds[k]
        column = np.where(part.is_valid, below, 2)
        values[:, k] = draws.of_counts(
            lambda counts, k=k: metric(_of_class(mix, counts, part.classes, int(k))[..., :2])[..., 0],
            3 * part.labels + column,
            size=3 * part.classes,
        )
    if part.is_valid.all() or acronym == SHARE_OF_POSITIVES:
        return values
    return _with_invalid(recipe, acronym, values, _sizes(part, draws, mix))


def _of_class(mix: ClassMix | None, counts: Floats, classes: int, k: int) -> Floats:
    """Confusions (B, 2, 3) of class k against the rest, from counts (B, 3 C) by class and column."""
    found = counts.reshape(-1, classes, 3)
    if mix is not None:
        # A class without a sample in a draw makes the metric undefined there.
        weighed = mix.weigh(found)
        is_missing: NDArray[np.bool_] = np.isnan(weighed)
        found = np.where(is_missing.any(axis=(1, 2), keepdims=True), 0.0, weighed)
    own = found[:, k]
    return np.stack([own, found.sum(axis=1) - own], axis=1).clip(min=0)


def values_in_use(recipe: Recipe, mix: ClassMix, part: Samples, draws: Resamples) -> Floats:
    """A metric that counts, at the class mix of use, shape (1 + R + M,) or (1 + R + M, C).

    nan where a class of use has no sample.
    """
    if recipe.acronym == "NB" and part.probabilities is not None:
        return _net_benefit_in_use(recipe, mix, part, draws)
    return _of_decisions(recipe, part, draws, mix)


def _net_benefit_in_use(recipe: Recipe, mix: ClassMix, part: Samples, draws: Resamples) -> Floats:
    """Net benefit of the corrected probabilities at their threshold (thesis Remark 2.58)."""
    scores, limit = mix.corrected(part.scores), recipe.parameters.threshold
    values = np.full((len(draws.times), part.classes), np.nan)
    if np.isnan(scores).any():
        return values
    for k in range(part.classes):
        column = np.where(part.is_valid, scores[:, k] < limit, 2)
        # Columns: decided for the class, against it, and without a valid output.
        values[:, k] = draws.of_counts(
            lambda counts, k=k: _benefit(recipe, mix, counts.reshape(-1, part.classes, 3), k),
            3 * part.labels + column,
            size=3 * part.classes,
        )
    if part.is_valid.all():
        return values
    return _with_invalid(recipe, recipe.acronym, values, _sizes(part, draws, mix))


def _benefit(recipe: Recipe, mix: ClassMix, counts: Floats, k: int) -> Floats:
    """Net benefit of class k among the valid outputs, shape (B,), from counts (B, C, 3)."""
    decided = mix.weigh(counts)[..., :2]
    limit = recipe.parameters.threshold
    rate = limit / (1 - limit) if limit < 1 else np.nan
    true, all_of_it = decided[:, k, 0], decided[..., 0].sum(axis=1)
    return ratio(true - (all_of_it - true) * rate, decided.sum(axis=(1, 2)))


def _counts_decisions(recipe: Recipe, part: Samples) -> bool:
    """Whether the metric counts decisions; NB thresholds probabilities if there are any."""
    is_counting = METRICS[recipe.acronym].family == "counting"
    return is_counting and (recipe.acronym != "NB" or part.probabilities is None)


def _weighted(recipe: Recipe, valid: Samples) -> Weighted | None:
    chosen = recipe.parameters
    given = (valid.labels, valid.scores, valid.unit, chosen)
    if recipe.acronym == "ECE_KDE":
        return weighted_ece_kde(*given, seed=recipe.seed)
    if recipe.acronym == "KCE" and chosen.estimator == "unbiased":
        return weighted_kernel_error(*given, seed=recipe.seed)
    if recipe.acronym == "ECCL":
        return _cost_gains(recipe, valid)
    return weighted_scores(recipe.acronym, valid.labels, valid.scores, chosen)


def _cost_gains(recipe: Recipe, valid: Samples) -> Weighted:
    """EC calibration loss as a function of the samples' weights, for the recalibrations of the samples as they are."""
    shares = None if recipe.prevalence is None else np.array(recipe.prevalence, dtype=np.float64)
    costs = (
        zero_one_costs(valid.classes) if recipe.costs is None else np.array(recipe.costs, dtype=np.float64)
    )
    gains = cost_gains(
        valid.labels,
        valid.scores,
        costs,
        np.unique(valid.unit, return_inverse=True)[1].astype(np.int64),
        prevalence=shares,
        rng=recipe.seed,
    )
    is_class = np.eye(valid.classes)[valid.labels]

    def evaluate(weights: Counts) -> Floats:
        sums = weights @ (is_class * gains[:, np.newaxis])
        counts = (weights @ is_class).astype(np.float64)
        if shares is None:
            return ratio(sums.sum(axis=1), counts.sum(axis=1))
        return np.where(shares > 0, shares * ratio(sums, counts), 0.0).sum(axis=1)

    return evaluate


def _one_by_one(recipe: Recipe, part: Samples, draws: Resamples, estimate: Floats) -> Bootstrap:
    """Values from copies of the samples, for metrics without weights; undefined if no sample was drawn."""

    def value(times: Counts) -> Floats:
        rows = np.repeat(np.arange(part.size), times)
        return (
            estimate_metric(recipe, part.part(rows)).values if rows.size else np.full(estimate.shape, np.nan)
        )

    values = draws.values(lambda weights: np.array([value(times) for times in weights]))
    resampled = draws.split(values)
    # ECCL recalibrates within groups, of which the metric alone knows nothing.
    return resampled if recipe.acronym == "ECCL" else replace(resampled, estimate=estimate)


def _of_decisions(recipe: Recipe, part: Samples, draws: Resamples, mix: ClassMix | None = None) -> Floats:
    """A counting metric from confusion matrices with a last column for invalid outputs; at the class mix of use."""
    costs_abstaining = recipe.costs is not None and np.shape(recipe.costs)[1] > part.classes
    columns = part.classes + 1 + (part.can_abstain or costs_abstaining)
    decided = np.where(part.is_valid, part.decisions, columns - 1)
    metric = recipe.counting(recipe.acronym)

    def of_counts(counts: Floats) -> Floats:
        confusions = counts.reshape(-1, part.classes, columns)
        if mix is None:
            return _with_invalid(recipe, recipe.acronym, metric(confusions[..., :-1]), confusions)
        weighed = mix.weigh(confusions)
        is_missing: NDArray[np.bool_] = np.isnan(weighed)
        confusions = np.where(is_missing, 0.0, weighed)
        values = _with_invalid(recipe, recipe.acronym, metric(confusions[..., :-1]), confusions)
        values[is_missing.any(axis=(1, 2))] = np.nan
        return values

    return draws.of_counts(of_counts, part.labels * columns + decided, size=part.classes * columns)


def _sizes(part: Samples, draws: Resamples, mix: ClassMix | None = None) -> Floats:
    """Numbers of samples of each class with valid and with invalid output, (1 + R + M, C, 2), or shares."""
    shape = (-1, part.classes, 2)
    cells = 2 * part.labels + ~part.is_valid
    return draws.of_counts(
        lambda counts: counts.reshape(shape) if mix is None else mix.weigh(counts.reshape(shape)),
        cells,
        size=2 * part.classes,
    )


def _brier_scores(recipe: Recipe, part: Samples, draws: Resamples) -> Floats | None:
    """Brier scores of valid outputs, shape (1 + R + M,), for the metrics that are computed from them."""
    if recipe.acronym not in ("RBS", "BSS"):
        return None
    valid = part.part(part.is_valid)
    return draws.part(part.is_valid).values(weighted_brier_score(valid.labels, valid.scores))


def _with_invalid(
    recipe: Recipe, acronym: str, values: Floats, counts: Floats, brier_scores: Floats | None = None
) -> Floats:
    """Values of the valid outputs, combined with the worst values of invalid ones.

    Args:
        recipe: costs, prevalence and parameters.
        acronym: of the metric.
        values: shape (T,) or (T, C).
        counts: shape (T, C, D + 1), samples by true class and decision, or their shares; the last column holds those
            without a valid output.
        brier_scores: shape (T,), of the samples with a valid output, for metrics that are made of them.
    """
    if not counts[..., -1].any():
        return values
    mixed = np.full(values.shape, np.nan)
    for index in np.flatnonzero(counts.sum(axis=(1, 2)) > 0):  # False for nan
        valid = counts[index, :, :-1]
        inputs = CheckedInputs(
            confusion=valid,
            is_confusion_given=False,
            labels=None,
            probabilities=None,
            costs=None if recipe.costs is None else np.array(recipe.costs, dtype=np.float64),
            prevalence=None if recipe.prevalence is None else np.array(recipe.prevalence, dtype=np.float64),
            invalid=counts[index, :, -1],
        )
        work = SharedComputations(inputs, recipe.parameters, recipe.seed)
        if brier_scores is not None:
            work.brier_score = float(brier_scores[index])
        value = values[index]
        mixed[index] = with_invalid(acronym, value if value.ndim else float(value), work)
    return mixed
