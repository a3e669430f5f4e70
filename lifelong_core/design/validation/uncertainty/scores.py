"""Uncertainty-aware scores over a grid of sigma and damping, with intervals from the resampled data sets."""

from collections.abc import Iterator, Mapping

import numpy as np

from lifelong_core.design.validation.uncertainty.document import (
    PredictedUncertainties,
    UncertaintyAwareChange,
    UncertaintyAwareCurve,
    UncertaintyAwareScores,
    UncertaintySettings,
)
from lifelong_core.design.validation.values.intervals import (
    Resamples,
    difference_bounds,
    map_values,
    value_bounds,
)
from lifelong_core.design.validation.values.metric_value import finite
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.counting.uncertainty_aware import UNCERTAINTY_AWARE, sureness
from lifelong_core.metrics.resampling.intervals import Bootstrap, LeftOut
from lifelong_core.values.arrays import Floats, Integers, Mask
from lifelong_core.values.scientific import weighted_counts

FEWEST_EFFECTIVE_CASES = 30
"""A warning names fewer equally weighted cases than this"""
CELLS = 4
"""TN, FP, FN and TP"""


def uncertainty_aware_scores(
    samples: Samples,
    given: PredictedUncertainties,
    draws: Resamples,
    *,
    settings: UncertaintySettings,
    positive: int,
    level: float,
) -> UncertaintyAwareScores:
    """The scores of all settings, with bootstrap intervals over samples or groups.

    A sample without a valid output counts as a decision that is certain and wrong.

    Args:
        samples: of two classes, with probabilities and the decisions that are judged.
        given: their uncertainties.
        draws: of these samples.
        settings: sigmas, dampings and threshold.
        positive: the positive class.
        level: nominal coverage of the intervals.

    Raises:
        InvalidInputError: the samples have no probabilities.
    """
    reference = (samples.labels == positive).astype(np.float64)
    predicted = np.where(samples.is_valid, samples.scores[:, positive], 1 - reference)
    cells = 2 * (reference > settings.threshold) + (predicted >= settings.threshold)
    certain = np.stack(
        [
            sureness(predicted, settings.threshold, sigma) * sureness(reference, settings.threshold, sigma)
            for sigma in settings.sigmas
        ],
        axis=1,
    )
    # A common factor of all weights changes no score: without it, large exponents do not underflow.
    excess = given.values - given.values.min()
    curves: dict[str, list[UncertaintyAwareCurve]] = {acronym: [] for acronym in UNCERTAINTY_AWARE}
    values: dict[str, list[Bootstrap]] = {acronym: [] for acronym in UNCERTAINTY_AWARE}
    for damping in settings.dampings:
        weights = certain * np.exp(-excess * damping)[:, np.newaxis]
        sums = draws.split(_resampled_sums(weights, cells, draws))
        for acronym in UNCERTAINTY_AWARE:
            counted = _counted(acronym, cells)
            cases = _effective_cases(weights[counted], samples.unit[counted])
            score = map_values(sums, lambda matrices, acronym=acronym: _score(acronym, matrices))
            curves[acronym].append(_curve(acronym, damping, score, cases, level))
            values[acronym].append(score)
    all_curves = tuple(curve for of_metric in curves.values() for curve in of_metric)
    uncertain = given.values[samples.is_valid]
    return UncertaintyAwareScores(
        positive_class=positive,
        threshold=settings.threshold,
        kind=given.kind,
        members=given.members,
        smallest=float(uncertain.min(initial=np.inf)) if uncertain.size else 0.0,
        median=float(np.median(uncertain)) if uncertain.size else 0.0,
        largest=float(uncertain.max(initial=0.0)),
        sigmas=settings.sigmas,
        dampings=settings.dampings,
        curves=all_curves,
        changes=tuple(_changes(curves, values, level)),
        warnings=tuple(_warnings(samples, predicted >= settings.threshold, all_curves, settings, positive)),
    )


def _resampled_sums(weights: Floats, cells: Integers, draws: Resamples) -> Floats:
    """Sums of weights by cell in the data, the draws and the jackknife samples, shape (1 + R + M, S, 2, 2).

    Args:
        weights: shape (N, S).
        cells: shape (N,), 0..3.
        draws: of the samples.
    """
    sums = np.zeros((len(draws.times), weights.shape[1], CELLS))
    for cell in range(CELLS):
        rows = np.flatnonzero(cells == cell)
        if rows.size:
            own = weights[rows]
            sums[..., cell] = draws.part(rows).values(lambda times, own=own: times.astype(np.float64) @ own)
    return sums.reshape(*sums.shape[:2], 2, 2)


def _counted(acronym: str, cells: Integers) -> Mask:
    """Mask of the samples over which a score is a mean."""
    match acronym:
        case "UA-precision":
            return cells % 2 == 1
        case "UA-recall" | "UA-F1":
            return cells >= 2
        case "UA-FPR":
            return cells < 2
        case _:
            return np.ones(cells.size, np.bool_)


def _effective_cases(weights: Floats, unit: Integers) -> list[float]:
    """Kish's effective number of units for each column of weights (n, S); 0 without weight."""
    if not unit.size:
        return [0.0] * weights.shape[1]
    _, own = np.unique(unit, return_inverse=True)
    size = int(own.max()) + 1
    found: list[float] = []
    for column in weights.T:
        sums = weighted_counts(own, column / max(float(column.max()), np.finfo(float).tiny), size=size)
        found.append(float(sums.sum() ** 2 / (sums @ sums)) if sums.any() else 0.0)
    return found


def _curve(
    acronym: str, damping: float, values: Bootstrap, cases: list[float], level: float
) -> UncertaintyAwareCurve:
    """One score by sigma, from its values (..., S)."""
    bounds = [
        value_bounds(
            map_values(values, lambda array, place=place: array[..., place]),
            level=level,
            limits=(0.0, 1.0),
            cases=int(number + 1e-9),
        )
        for place, number in enumerate(cases)
    ]
    notes = dict.fromkeys(note for one in bounds for note in one.notes)
    return UncertaintyAwareCurve.model_validate(
        {
            "metric": acronym,
            "orientation": METRICS[acronym].orientation,
            "damping": damping,
            "estimates": tuple(finite(value) for value in values.estimate.tolist()),
            "low": tuple(finite(one.low) for one in bounds),
            "high": tuple(finite(one.high) for one in bounds),
            "methods": tuple(one.method for one in bounds),
            "effective_cases": tuple(cases),
            "notes": tuple(notes),
        }
    )


def _changes(
    curves: Mapping[str, list[UncertaintyAwareCurve]], values: Mapping[str, list[Bootstrap]], level: float
) -> Iterator[UncertaintyAwareChange]:
    """The changes with damping and with sigma, in the same draws."""
    for acronym, found in values.items():
        first, last = found[0], found[-1]
        least, most = curves[acronym][0].effective_cases, curves[acronym][-1].effective_cases
        if len(found) > 1:
            yield _change(acronym, "damping", _difference(last, 0, first), min(least[0], most[0]), level)
        if first.estimate.size > 1:
            yield _change(acronym, "sigma", _difference(first, -1, first), min(least[0], least[-1]), level)


def _difference(later: Bootstrap, place: int, first: Bootstrap) -> Bootstrap:
    """One of the values (S,) less the first one of others, in the data, each draw and each jackknife sample."""
    parts = zip(later.left_out, first.left_out, strict=True)
    return Bootstrap(
        np.asarray(later.estimate[place] - first.estimate[0]),
        later.replicates[:, place] - first.replicates[:, 0],
        tuple(LeftOut(one.values[:, place] - two.values[:, 0], one.multiplicity) for one, two in parts),
    )


def _change(
    acronym: str, of: str, difference: Bootstrap, cases: float, level: float
) -> UncertaintyAwareChange:
    bounds = difference_bounds(difference, level=level, limits=(-1.0, 1.0), cases=int(cases + 1e-9))
    return UncertaintyAwareChange.model_validate(
        {
            "metric": acronym,
            "orientation": METRICS[acronym].orientation,
            "of": of,
            "estimate": finite(float(difference.estimate)),
            "low": finite(bounds.low),
            "high": finite(bounds.high),
            "method": bounds.method,
        }
    )


def _score(acronym: str, matrices: Floats) -> Floats:
    """The score of sums (..., 2, 2), shape (...)."""
    return UNCERTAINTY_AWARE[acronym](matrices.reshape(-1, 2, 2)).reshape(matrices.shape[:-2])


def _warnings(
    samples: Samples,
    is_positive: Mask,
    curves: tuple[UncertaintyAwareCurve, ...],
    settings: UncertaintySettings,
    positive: int,
) -> Iterator[str]:
    others = int((samples.is_valid & ((samples.decisions == positive) != is_positive)).sum())
    if others:
        yield (
            f"The uncertainty-aware scores decide by the threshold {settings.threshold:g}; the decisions of"
            f" {others} of {samples.size} samples differ from it."
        )
    invalid = int((~samples.is_valid).sum())
    if invalid:
        yield (
            f"In the uncertainty-aware scores, {invalid} samples without a valid output count as certain and wrong"
            " decisions."
        )
    empty = dict.fromkeys(curve.metric for curve in curves if 0 in curve.effective_cases)
    if empty:
        yield f"No sample that counts has a weight in {', '.join(empty)}, so that it is not defined."
    fewest = min(
        (
            (cases, curve.damping, curve.metric)
            for curve in curves
            for cases in curve.effective_cases
            if cases > 0
        ),
        default=None,
    )
    if fewest is not None and fewest[0] < FEWEST_EFFECTIVE_CASES:
        yield (
            f"{fewest[2]} rests on the weight of {fewest[0]:.3g} equally weighted cases where the damping factor is"
            f" {fewest[1]:g}: a few samples decide it."
        )
