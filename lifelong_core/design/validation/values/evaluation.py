"""A recommended metric of labelled samples, with checked parameters and chosen cut-offs."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.values.class_mix import ClassMix, is_converted
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import METRICS, compute_metrics, counting_metric, marginal_calibration_error
from lifelong_core.metrics.counting.one_versus_rest import positive_share
from lifelong_core.metrics.inputs import Parameters
from lifelong_core.metrics.scores.at_target import SHARE_OF_POSITIVES, PerClassMetric, target_cut_off
from lifelong_core.metrics.scores.ranking import OperatingPoints, class_rankings
from lifelong_core.metrics.undefined_reasons import Reason
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Split:
    """The samples for metrics at a target, and those on which their cut-offs are chosen."""

    rows: Integers
    """shape (n,), of the data"""
    chosen_on: Samples
    is_half: bool
    """whether cut-offs were chosen on the other half of the data"""

    @property
    def labelled(self) -> tuple[Integers, Floats]:
        """Labels and probabilities of valid outputs, on which cut-offs are chosen."""
        valid = self.chosen_on.part(self.chosen_on.is_valid)
        return valid.labels, valid.scores

    @classmethod
    def halves(cls, samples: Samples, *, seed: int) -> Self:
        """A random split of the cases in halves, the same for every model.

        Raises:
            InvalidInputError: there is only one case.
        """
        units = int(samples.unit.max()) + 1
        if units < 2:
            raise InvalidInputError(
                "one case is too few to choose a cut-off on some and judge it on others.",
                field="cut_off_data",
                hint="Give other data to choose the cut-off on.",
            )
        is_first = np.random.default_rng([seed, 1]).permutation(units) < units // 2
        chooses = is_first[samples.unit]
        return cls(np.flatnonzero(~chooses), samples.part(chooses), is_half=True)

    @classmethod
    def other(cls, samples: Samples, chosen_on: Samples) -> Self:
        """All samples for the metrics, and other ones for the cut-offs."""
        return cls(np.arange(samples.size), chosen_on, is_half=False)


@dataclass(frozen=True, eq=False)
class CutOffs:
    """The cut-offs of a metric at a target."""

    split: Split
    target_metric: str
    target_value: float
    thresholds: Floats
    """shape (C,), of each class's probability; nan where none reaches the target"""


@dataclass(frozen=True, eq=False)
class Recipe:
    """The checked parameters of a recommended metric."""

    label: str
    metric: RecommendedMetric
    weights: Floats | None
    """shape (C,), how much each class matters in a mean over classes; None: all alike"""
    costs: Any
    prevalence: Any
    parameters: Parameters
    seed: int
    cut_offs: CutOffs | None = None
    """cut-offs of a metric at a target; None: another metric"""
    mix: ClassMix | None = None
    """class shares of use; None: the shares of the data"""
    judged: Integers | None = None
    """rows whose decisions are judged, of a metric that counts decisions; None: all"""
    by_group: bool = False
    """whether the metric is computed within each group, and then averaged over the groups"""

    @classmethod
    def of(
        cls,
        label: str,
        metric: RecommendedMetric,
        *,
        weights: tuple[float, ...] | None,
        split: Split | None,
        seed: int,
        mix: ClassMix | None = None,
        judged: Integers | None = None,
        by_group: bool = False,
    ) -> Self:
        """Check the parameters and choose the cut-offs.

        Raises:
            InvalidInputError: there is no such parameter, or a value does not fit.
        """
        given: dict[str, Any] = dict(metric.parameters)
        costs, prevalence = given.pop("costs", None), given.pop("prevalence", None)
        found = cls(
            label=label,
            metric=metric,
            weights=None if weights is None else np.array(weights),
            costs=costs,
            prevalence=prevalence,
            parameters=Parameters.of(given),
            seed=seed,
            mix=mix,
            judged=judged,
            by_group=by_group,
        )
        target = found.parameters.target
        if target is None or split is None:
            return found
        return replace(found, cut_offs=CutOffs(split, *target, found._thresholds(split, *target)))

    @property
    def acronym(self) -> str:
        """The acronym of the metric."""
        return self.metric.metric

    @property
    def converted(self) -> ClassMix | None:
        """The class mix of use, if the metric is computed at it."""
        is_so = is_converted(
            self.acronym,
            self.mix,
            has_prevalence=self.prevalence is not None,
            at_target=self.cut_offs is not None,
        )
        return self.mix if is_so else None

    @property
    def is_refused(self) -> bool:
        """Whether the metric says nothing without the class mix of use, which is not known."""
        return self.acronym == "NB" and self.mix is not None and self.mix.in_use is None

    @property
    def judges_decisions(self) -> bool:
        """Whether the metric counts the judged decisions, as all such metrics do."""
        return METRICS[self.acronym].family == "counting" and self.acronym != "NB" and self.cut_offs is None

    def rows(self, samples: Samples) -> Integers:
        """The rows of the samples for the metric."""
        if self.cut_offs is not None:
            return self.cut_offs.split.rows
        if self.judges_decisions and self.judged is not None:
            return self.judged
        return np.arange(samples.size)

    def counting(self, acronym: str) -> PerClassMetric:
        """A counting metric, or the share of positives, with the parameters of this one."""
        if acronym == SHARE_OF_POSITIVES:
            return positive_share
        return counting_metric(
            acronym,
            costs=self.costs,
            prevalence=self.prevalence,
            beta=self.parameters.beta,
            threshold=self.parameters.threshold,
        )

    def _thresholds(self, split: Split, target_metric: str, target_value: float) -> Floats:
        metric, wanted = self.counting(self.acronym), self.counting(target_metric)
        in_use = None if self.mix is None else self.mix.in_use
        labels, scores = split.labelled
        if in_use is None:
            points = [OperatingPoints.of(ranking) for ranking in class_rankings(labels, scores)]
        elif self.mix is not None and self.mix.missing_class(labels) is not None:
            return np.full(in_use.size, np.nan)
        else:
            points = [
                OperatingPoints.in_population(column, labels, k, in_use) for k, column in enumerate(scores.T)
            ]
        return np.array(
            [target_cut_off(one, metric=metric, target_metric=wanted, target=target_value) for one in points]
        )


@dataclass(frozen=True, eq=False)
class MetricEstimate:
    """A metric of some samples, with reasons for undefined values."""

    values: Floats
    """shape (), or (C,) for a metric per class"""
    reasons: Reason | None
    standard_error: float | None


def estimate_metric(recipe: Recipe, samples: Samples) -> MetricEstimate:
    """The metric of these samples; without values if it is one at cut-offs.

    Raises:
        InvalidInputError: the metric needs probabilities and there are none, or a parameter does not fit.
    """
    if recipe.cut_offs is not None:
        # `part_values` computes the values at the cut-offs with those of resampled data, and gives the reasons.
        return MetricEstimate(np.full(samples.classes, np.nan), None, None)
    given: dict[str, Any] = dict(recipe.metric.parameters)
    found = compute_metrics([recipe.acronym], **samples.inputs(), rng=recipe.seed, **given)
    values = np.asarray(found[recipe.acronym], dtype=np.float64)
    if recipe.acronym == "CWCE" and recipe.weights is not None:
        values = _weighted_error(recipe, samples)
    return MetricEstimate(
        values, found.reasons.get(recipe.acronym), found.standard_errors.get(recipe.acronym)
    )


def class_weights_of(metric: RecommendedMetric, fingerprint: ProblemFingerprint) -> tuple[float, ...] | None:
    """The weights of the metric's mean over classes, shape (C,); None: equal weights."""
    interest = fingerprint.class_weights if fingerprint.unequal_interest else None
    return metric.class_weights or (interest if metric.per_class else None)


def mean_over_classes(values: Floats, weights: Floats | None) -> Floats:
    """Mean of values (..., C) over the classes with positive weight, shape (...); nan if one of these is undefined.

    Examples:
        >>> float(mean_over_classes(np.array([0.5, 1.0, np.nan]), np.array([1.0, 3.0, 0.0])))
        0.875
    """
    if weights is None:
        return values.mean(axis=-1)
    matters = weights > 0
    return values[..., matters] @ weights[matters] / weights.sum()


def _weighted_error(recipe: Recipe, samples: Samples) -> Floats:
    """Weighted CWCE, in which a sample without a valid output counts as the worst value."""
    valid, chosen = samples.part(samples.is_valid), recipe.parameters
    errors = marginal_calibration_error(
        valid.labels,
        valid.scores,
        bins=chosen.bins_or_default,
        norm=chosen.norm,
        right_closed=chosen.right_closed,
    )
    share = valid.size / samples.size
    mean = mean_over_classes(errors, recipe.weights) if valid.size else 0.0
    return np.asarray(share * mean + (1 - share) * METRICS["CWCE"].worst)
