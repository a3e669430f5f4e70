"""Performance from posteriors of all samples, corrected by some labels; its mean with the label-free estimate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.numerics.newton import member_sums, one_hot
from lifelong_core.deploy.performance.derived_metrics import (
    MetricGradients,
    metric_gradients,
    metric_intervals,
)
from lifelong_core.deploy.performance.labelled.calibration_drift import recalibrate
from lifelong_core.deploy.performance.labelled.estimate import (
    LabelledEstimate,
    MetricSpread,
    Target,
    as_inclusion_probabilities,
    costs_of_decisions,
)
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.values.arrays import Floats, Integers, as_column, as_groups, as_labels, as_probabilities
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import normal_quantile

_PRIOR_LABELS = 20
"""Weight, in labels, of the variance that the posteriors predict beside the variance of the labelled samples: few
labels may by chance contain no error."""

NOT_COMBINED = (
    "The label-free estimate is left out, because more than the prevalence differs from the calibration set."
)
_DOUBT = 2.0
"""Factor of the label-free estimate's variance: where the assumption test does not reject, small deviations from the
assumption remain, and its intervals of 95 % cover less (docs/benchmarks.md, few labels)."""
_LEAST_SHARE = 0.1
"""Least variance of the label-free estimate beside the window's, as a share of its variance."""


def difference_estimate(
    posteriors: ArrayLike,
    decisions: ArrayLike,
    sample: ArrayLike,
    labels: ArrayLike,
    propensities: ArrayLike,
    *,
    costs: ArrayLike | None = None,
    metrics: Sequence[str] = ("AC", "EC"),
    groups: ArrayLike | None = None,
    confidence: float = 0.95,
    target: Target = "population",
) -> LabelledEstimate:
    """Performance of a window's decisions from posteriors of all samples and labels of some.

    The posteriors predict the class of every sample; the labelled samples, weighted by their inverse propensities,
    correct the prediction (difference estimator; Saerndal, Swensson and Wretman 1992, section 6.3). Wrong posteriors
    cost precision, never validity: the propensities are known, so the interval assumes nothing about the shift. The
    posteriors are recalibrated on the labelled samples first, cross-fitted, see `recalibrate`.

    Args:
        posteriors: shape (N, C), probability of each true class, of all samples of the window.
        decisions: shape (N,), 0..D-1.
        sample: shape (m,), indices of the labelled samples, m >= 2.
        labels: shape (m,), their true classes.
        propensities: shape (m,), in (0, 1]: probability with which each was chosen for labelling, e.g. of
            `labelling_probabilities`.
        costs: shape (C, D); None: 0-1 costs.
        metrics: acronyms of METRICS that count decisions.
        groups: shape (N,), samples of one group may depend on each other; None: all independent. They matter only for
            the target "population": given the window, the choice of the samples is the only random part.
        confidence: nominal coverage of each interval.
        target: what the intervals cover: "population", performance in the population from which the window comes, like
            the intervals of `estimate_performance`; "window", performance on these N predictions.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    window = _LabelledWindow.of(posteriors, decisions, sample, labels, propensities, costs, groups)
    if target not in ("population", "window"):
        raise InvalidInputError('expected "population" or "window".', field="target")
    level = as_level(confidence, "confidence")
    raw = window.predicted() + window.correction()
    confusion = _as_shares(raw)
    gradients = metric_gradients(confusion, metrics, window.costs)
    # Exact for AC and EC: what the clipping of negative shares changed is undone.
    values = gradients.values + np.einsum("kij,ij->k", gradients.gradients, raw - confusion)
    values = np.clip(values, gradients.bounds[:, 0], gradients.bounds[:, 1])
    gradients = MetricGradients(gradients.names, values, gradients.gradients, gradients.bounds)
    spreads = window.spreads(gradients, confusion, target)
    variances = np.array([one.labels + one.window for one in spreads])
    freedom = np.array([one.degrees_of_freedom for one in spreads])
    return LabelledEstimate(
        method="difference",
        estimates=metric_intervals(gradients, variances, degrees_of_freedom=freedom, confidence=level),
        spreads=dict(zip(gradients.names, spreads, strict=True)),
        bounds=gradients.bounds_by_name,
        confusion_matrix=confusion,
        confidence=level,
        target=target,
        samples=window.decisions.size,
        labelled=window.sample.size,
        effective_labelled=float(window.weights.sum() ** 2 / (window.weights**2).sum()),
    )


@dataclass(frozen=True, eq=False)
class _LabelledWindow:
    """Checked arguments, with recalibrated posteriors."""

    posteriors: Floats
    """(N, C)"""
    decisions: Integers
    sample: Integers
    labels: Integers
    propensities: Floats
    own: Floats
    """(m, C), posteriors of the labelled samples that do not know their labels"""
    costs: Floats
    member: NDArray[np.intp] | None
    """(N,), group of each sample"""

    @classmethod
    def of(
        cls,
        posteriors: ArrayLike,
        decisions: ArrayLike,
        sample: ArrayLike,
        labels: ArrayLike,
        propensities: ArrayLike,
        costs: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> "_LabelledWindow":
        shares = as_probabilities(posteriors, field="posteriors")
        samples, classes = shares.shape
        decided = as_labels(decisions, classes=classes + 1, field="decisions")
        as_column(decided, samples=samples, field="decisions", what="decision")
        matrix = costs_of_decisions(costs, decided, classes)
        chosen = as_labels(sample, classes=samples, field="sample")
        if chosen.size < 2 or np.unique(chosen).size < chosen.size:
            raise InvalidInputError("expected at least two different indices.", field="sample")
        true = as_labels(labels, classes=classes)
        as_column(true, samples=chosen.size, field="labels", what="label")
        chances = as_inclusion_probabilities(propensities, chosen.size)
        keys = as_groups(groups, samples=samples)
        found = recalibrate(shares, chosen, true, keys)
        member = None if keys is None else np.unique(keys, return_inverse=True)[1]
        return cls(found.all, decided, chosen, true, chances, found.labelled, matrix, member)

    @property
    def weights(self) -> Floats:
        return 1 / self.propensities

    def predicted(self) -> Floats:
        """Confusion matrix that the posteriors predict, shape (C, D)."""
        return self.posteriors.T @ one_hot(self.decisions, self.costs.shape[1]) / self.decisions.size

    def correction(self) -> Floats:
        """Weighted mean error of the prediction on the labelled samples, shape (C, D); each column sums to 0."""
        errors = (one_hot(self.labels, self.own.shape[1]) - self.own) * self.weights[:, np.newaxis]
        decided = one_hot(self.decisions[self.sample], self.costs.shape[1])
        return errors.T @ decided / self.weights.sum()

    def spreads(self, metrics: MetricGradients, confusion: Floats, target: Target) -> list[MetricSpread]:
        """Variance of each metric by the delta method."""
        return [self._spread(gradient, confusion, target) for gradient in metrics.gradients]

    def _spread(self, gradient: Floats, confusion: Floats, target: Target) -> MetricSpread:
        paid = gradient.T[self.decisions]
        means = (self.posteriors * paid).sum(axis=1)
        doubts = (self.posteriors * (paid - means[:, np.newaxis]) ** 2).sum(axis=1)
        errors = gradient[self.labels, self.decisions[self.sample]] - (self.own * paid[self.sample]).sum(
            axis=1
        )
        errors = (errors - np.average(errors, weights=self.weights)) * self.weights
        labelled = self.sample.size
        # The errors share the mean and the parameters of the recalibration, whose strength grows with the labels.
        freedom = labelled - 1.0 - min(self.own.shape[1], labelled // 10)
        drawn = 1 - self.propensities
        observed = (drawn @ errors**2) * labelled / freedom / self.weights.sum() ** 2
        expected = self._expected(doubts)
        share = _PRIOR_LABELS / (labelled + _PRIOR_LABELS)
        labels = max(observed, (1 - share) * observed + share * expected)
        if target == "window":
            return MetricSpread(float(labels), 0.0, freedom)
        samples = self.decisions.size
        window = ((confusion * gradient**2).sum() - (confusion * gradient).sum() ** 2) / samples
        if self.member is not None:
            moved = means - means.mean()
            moved[self.sample] += errors * samples / self.weights.sum()
            sums = member_sums(moved, self.member)
            sizes = np.bincount(self.member)
            freedom = min(freedom, max(1.0, float(samples**2 / (sizes**2).sum()) - 1))
            together = (sums**2).sum() / samples**2 * sums.size / max(1, sums.size - 1)
            window = max(window, together - observed)
        return MetricSpread(float(labels), float(window), freedom)

    def _expected(self, doubts: Floats) -> float:
        """Variance due to the labels where the posteriors are right, from the labelled samples' chances."""
        drawn = (1 - self.propensities) * self.weights**2
        return float(drawn @ doubts[self.sample]) / self.weights.sum() ** 2


def _as_shares(raw: Floats) -> Floats:
    """The nearest confusion matrix without negative shares and with the same share of each decision."""
    clipped = np.maximum(raw, 0.0)
    sums = clipped.sum(axis=0)
    return clipped * np.divide(raw.sum(axis=0), sums, out=np.zeros_like(sums), where=sums > 0)


def combined_with(
    difference: LabelledEstimate,
    label_free: Mapping[str, EstimatedMetric],
    *,
    assumption_rejected: bool,
    confidence: float = 0.95,
) -> LabelledEstimate:
    """Combine a difference estimate with the label-free estimate of the same window.

    The label-free estimate has the weight that its own interval deserves, less where the labels contradict it. It has
    none where the assumption test rejects: a label-free estimate that is trusted under a shift of another kind misses
    the truth without a sign of it.

    Args:
        difference: estimate with labels, of `difference_estimate`.
        label_free: `estimates` of the PerformanceEstimate of the same window and head.
        assumption_rejected: whether the test "only the prevalence changed" rejects on this window.
        confidence: nominal coverage of the intervals of `label_free`.

    Returns:
        The estimate with method "combined", or `difference` with a caution where the assumption is rejected.
    """
    if assumption_rejected:
        return replace(difference, cautions=(*difference.cautions, NOT_COMBINED))
    quantile = float(normal_quantile((1 + as_level(confidence, "confidence")) / 2))
    names = [name for name in difference.estimates if name in label_free]
    estimates, spreads = dict(difference.estimates), dict(difference.spreads)
    for name in names:
        value, low, high = label_free[name]
        ours, spread = difference.estimates[name], difference.spreads[name]
        if not np.isfinite([value, low, high, *ours, spread.labels]).all() or spread.labels <= 0:
            continue
        error = (high - low) / 2 / quantile
        combined, variance = _combine(ours.value, spread, value, error**2)
        spreads[name] = MetricSpread(variance, spread.window, spread.degrees_of_freedom)
        estimates[name] = _interval(combined, spreads[name], difference, name)
    return replace(difference, method="combined", estimates=estimates, spreads=spreads)


def _combine(ours: float, spread: MetricSpread, label_free: float, variance: float) -> tuple[float, float]:
    """Combined value, and its variance due to calibration set and labels.

    Both share the window's samples, so that the label-free estimate errs beside it by what its variance exceeds the
    window's. Where the two differ by more than their variances explain, the excess counts as its error (DerSimonian and
    Laird 1986).
    """
    own = _DOUBT * max(variance - spread.window, _LEAST_SHARE * variance)
    own = max(own, (ours - label_free) ** 2 - spread.labels)
    weight = own / (own + spread.labels)
    return label_free + weight * (ours - label_free), weight * spread.labels


def _interval(value: float, spread: MetricSpread, difference: LabelledEstimate, name: str) -> EstimatedMetric:
    bounds = np.array([difference.bounds[name]])
    single = MetricGradients((name,), np.array([value]), np.zeros((1, 1, 1)), bounds)
    variance = np.array([spread.labels + spread.window])
    found = metric_intervals(
        single, variance, degrees_of_freedom=spread.degrees_of_freedom, confidence=difference.confidence
    )
    return found[name]
