"""Draws of the metric of a decision rule: of the calibration set, of the rates at its cut-off, of the prevalence."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.criterion.sample import PSEUDO_SAMPLES, SMALLEST_SHARE, RuleSample
from lifelong_core.deploy.labeled import LabeledLogits, independent_cases
from lifelong_core.values.arrays import Floats, as_parameter
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True)
class Resampled:
    """What draws of the calibration set and of the prevalence show, in the link's scale."""

    differences: Floats
    """shape (B,): what the calibration set shows at the draw's cut-off, less what the draw shows there"""
    optimism: float
    """median of the differences, less their median where the cut-off is not chosen anew; negative: it looks better"""


def bootstrap(
    sample: RuleSample,
    calibration: LabeledLogits,
    drawn: Floats,
    prevalence: Floats,
    chosen_for: Floats | None,
    generator: np.random.Generator,
) -> Resampled:
    """Draw the calibration set; `chosen_for` is the prevalence for which each draw chooses its cut-off; None: it keeps
    the cut-off of the head.
    """
    anew, fixed = list[float](), list[float]()
    here = sample.linked(sample.rates(None, sample.at_cut_off), prevalence)
    for weights, shares in zip(_weights(sample, calibration, len(drawn), generator), drawn, strict=True):
        fixed.append(here - sample.linked(sample.rates(weights, sample.at_cut_off), shares))
        if chosen_for is None:
            continue
        end = sample.choose(weights, chosen_for).end
        shown = sample.linked(sample.rates(weights, end), shares)
        anew.append(sample.linked(sample.rates(None, end), prevalence) - shown)
    if not anew:
        return Resampled(np.array(fixed), 0.0)
    return Resampled(np.array(anew), float(np.median(anew) - np.median(fixed)))


def _weights(
    sample: RuleSample, calibration: LabeledLogits, draws: int, generator: np.random.Generator
) -> Iterator[Floats]:
    """How often each ordered sample is drawn, (M,), within its class, or with its group."""
    if calibration.groups is not None:
        _, member = np.unique(calibration.groups[sample.points.order], return_inverse=True)
        groups = int(member.max()) + 1
        for _ in range(draws):
            yield generator.multinomial(groups, np.full(groups, 1 / groups))[member].astype(np.float64)
        return
    rows = [np.flatnonzero(sample.labels == k) for k in range(sample.counts.size)]
    for _ in range(draws):
        weights: Floats = np.zeros(sample.labels.size)
        for own in filter(len, rows):
            weights[own] = np.bincount(generator.integers(own.size, size=own.size), minlength=own.size)
        yield weights


def posterior(
    sample: RuleSample, calibration: LabeledLogits, drawn: Floats, generator: np.random.Generator
) -> Floats:
    """Draws of the metric at the head's cut-off, (B,) in the link's scale, from Jeffreys posteriors of two rates: of
    the rule's class, and of the others together, which are worth as many cases as have the same variance.
    """
    k, cases = sample.rule.positive_class, independent_cases(calibration)
    above = np.bincount(sample.labels[: sample.at_cut_off], minlength=cases.size) / np.maximum(
        sample.counts, 1
    )
    others: Floats = np.delete(drawn, k, axis=1)
    others = others / others.sum(axis=1, keepdims=True)
    worth: Floats = 1 / (others**2 / np.maximum(np.delete(cases, k), 1)).sum(axis=1)
    rate: Floats = others @ np.delete(above, k)
    true = generator.beta(
        cases[k] * above[k] + PSEUDO_SAMPLES, cases[k] * (1 - above[k]) + PSEUDO_SAMPLES, len(drawn)
    )
    false: Floats = generator.beta(worth * rate + PSEUDO_SAMPLES, worth * (1 - rate) + PSEUDO_SAMPLES)
    share = drawn[:, k]
    return sample.link(share * true, (1 - share) * false, share)


def drawn_prevalences(
    prevalence: Floats, covariance: ArrayLike | None, draws: int, generator: np.random.Generator
) -> Floats:
    """Draws of the prevalence, shape (B, C), on the simplex."""
    if covariance is None:
        return np.tile(prevalence, (draws, 1))
    matrix = as_parameter(covariance, field="covariance")
    if matrix.shape != (prevalence.size, prevalence.size):
        raise InvalidInputError(
            f"expected shape {(prevalence.size, prevalence.size)}, got {matrix.shape}.", field="covariance"
        )
    drawn = generator.multivariate_normal(prevalence, matrix, size=draws, check_valid="ignore", method="eigh")
    # A prevalence estimated as 0 is positive in half of the draws; none becomes smaller than the smallest share.
    drawn = np.maximum(drawn, np.minimum(prevalence, SMALLEST_SHARE))
    return drawn / drawn.sum(axis=1, keepdims=True)
