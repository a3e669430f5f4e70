"""Recommended metrics of resampled data."""

from dataclasses import replace

import numpy as np

from lifelong_core.arrays import Floats
from lifelong_core.design.validation.outputs import Samples
from lifelong_core.design.validation.values.evaluation import (
    CutOffs,
    Recipe,
    estimate_metric,
    mean_over_classes,
)
from lifelong_core.design.validation.values.resamples import Resamples
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.calibration.weighted_kernel import weighted_ece_kde, weighted_kernel_error
from lifelong_core.metrics.computation.inputs import CheckedInputs
from lifelong_core.metrics.computation.invalid_outputs import with_invalid
from lifelong_core.metrics.computation.workbench import SharedComputations
from lifelong_core.metrics.resampling.intervals import Bootstrap
from lifelong_core.metrics.scores.weighted_scores import (
    Counts,
    Weighted,
    weighted_brier_score,
    weighted_scores,
)

SLOW_REPLICATES = 200
"""Of metrics that have to be computed anew for each resampled data set, and of kernels in subgroups"""
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
    if recipe.cut_offs is not None:
        values = at_cut_offs(recipe, recipe.cut_offs, recipe.acronym, part, draws)
    elif _counts_decisions(recipe, part):
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
    return replace(draws.split(values), estimate=estimate)


def at_cut_offs(recipe: Recipe, cut_offs: CutOffs, acronym: str, part: Samples, draws: Resamples) -> Floats:
    """A counting metric at the cut-offs of a recipe, shape (1 + R + M, C)."""
    values = np.full((len(draws.times), part.classes), np.nan)
    metric = recipe.counting(acronym)
    for k in np.flatnonzero(~np.isnan(cut_offs.thresholds)):
        below = part.scores[:, k] < cut_offs.thresholds[k]
        column = np.where(part.is_valid, below, 2)
        cells = 3 * (part.labels != k) + column
        values[:, k] = draws.of_counts(
            lambda counts: metric(counts.reshape(-1, 2, 3)[..., :2])[..., 0], cells, size=6
        )
    if part.is_valid.all():
        return values
    return _with_invalid(recipe, acronym, values, _sizes(part, draws))


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
    return weighted_scores(recipe.acronym, valid.labels, valid.scores, chosen)


def _one_by_one(recipe: Recipe, part: Samples, draws: Resamples, estimate: Floats) -> Bootstrap:
    """Values from copies of the samples, for metrics without weights; undefined if no sample was drawn."""

    def value(times: Counts) -> Floats:
        rows = np.repeat(np.arange(part.size), times)
        return (
            estimate_metric(recipe, part.part(rows)).values if rows.size else np.full(estimate.shape, np.nan)
        )

    values = draws.values(lambda weights: np.array([value(times) for times in weights]))
    return replace(draws.split(values), estimate=estimate)


def _of_decisions(recipe: Recipe, part: Samples, draws: Resamples) -> Floats:
    """A counting metric from confusion matrices with a last column for invalid outputs."""
    costs_abstaining = recipe.costs is not None and np.shape(recipe.costs)[1] > part.classes
    columns = part.classes + 1 + (part.can_abstain or costs_abstaining)
    decided = np.where(part.is_valid, part.decisions, columns - 1)
    metric = recipe.counting(recipe.acronym)

    def of_counts(counts: Floats) -> Floats:
        confusions = counts.reshape(-1, part.classes, columns)
        return _with_invalid(recipe, recipe.acronym, metric(confusions[..., :-1]), confusions)

    return draws.of_counts(of_counts, part.labels * columns + decided, size=part.classes * columns)


def _sizes(part: Samples, draws: Resamples) -> Floats:
    """Numbers of samples of each class with valid and with invalid output, shape (1 + R + M, C, 2)."""
    shape = (-1, part.classes, 2)
    cells = 2 * part.labels + ~part.is_valid
    return draws.of_counts(lambda counts: counts.reshape(shape), cells, size=2 * part.classes)


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
        counts: shape (T, C, D + 1), samples by true class and decision, the last column without a valid output.
        brier_scores: shape (T,), of the samples with a valid output, for metrics that are made of them.
    """
    if not counts[..., -1].any():
        return values
    mixed = np.full(values.shape, np.nan)
    classes = np.arange(len(counts[0]))
    for index in np.flatnonzero(counts.sum(axis=(1, 2)) > 0):
        valid = counts[index, :, :-1]
        inputs = CheckedInputs(
            confusion=valid,
            is_confusion_given=False,
            labels=np.repeat(classes, valid.sum(axis=1).astype(np.int64)),
            probabilities=None,
            costs=None if recipe.costs is None else np.array(recipe.costs, dtype=np.float64),
            prevalence=None if recipe.prevalence is None else np.array(recipe.prevalence, dtype=np.float64),
            invalid=counts[index, :, -1].astype(np.int64),
        )
        work = SharedComputations(inputs, recipe.parameters, recipe.seed)
        if brier_scores is not None:
            work.brier_score = float(brier_scores[index])
        value = values[index]
        mixed[index] = with_invalid(acronym, value if value.ndim else float(value), work)
    return mixed
