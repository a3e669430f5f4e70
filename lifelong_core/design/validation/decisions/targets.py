"""What judged decisions reach of the target of their rule, and what the likeliest class would reach."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from lifelong_core.decision_rules.rules import TargetValue
from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.decisions.decide import ChosenCutOff, DecidedSamples, DecisionSource
from lifelong_core.design.validation.values.class_mix import ClassMix
from lifelong_core.design.validation.values.evaluation import Recipe
from lifelong_core.design.validation.values.intervals import Resamples, value_bounds
from lifelong_core.design.validation.values.metric_value import EstimatedValue, MetricValue, as_fields
from lifelong_core.design.validation.values.metric_values import evaluate_metric
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.values.arrays import Floats
from lifelong_core.values.documents import Frozen


class TargetOutcome(Frozen):
    """Whether the judged decisions reach the target of the rule."""

    metric: str = Field(description="TPR, TNR, PPV, NPV or PPR.")
    class_index: int
    target: float = Field(description="At most for PPR, else at least.")
    reached: EstimatedValue = Field(description="Value on the judged samples.")
    prevalence: tuple[float, ...] | None = Field(
        description="Stated class shares of use at which the value is computed; None: those of the samples."
    )
    verdict: Literal["reached", "missed", "open"] = Field(
        description="By the interval: all of it on the right side of the target, on the wrong side, or neither."
    )


class JudgedDecisions(Frozen):
    """Which decisions the metrics judge."""

    source: DecisionSource = Field(
        description="`given`: by the user; `rule`: of the rule that was answered; `likeliest`: the likeliest class."
    )
    rule: str | None = Field(description="The rule that was answered (FP2.6); None: none was.")
    reason: str | None = Field(default=None, description="Why decisions are not those of the rule.")
    samples: int = Field(description="Number of judged samples.")
    changed: int | None = Field(
        description="Judged samples for which the likeliest class is another decision; None: without probabilities."
    )
    cut_off: ChosenCutOff | None = Field(default=None, description="None: none was chosen.")
    target: TargetOutcome | None = Field(default=None, description="None: the rule has no target.")
    by_likeliest: tuple[MetricValue, ...] = Field(
        default=(),
        description="Values of the metrics that judge decisions, if the likeliest class were decided; empty where no"
        " decision differs.",
    )


def judged_decisions(
    decided: DecidedSamples,
    recipes: Sequence[Recipe],
    resamples: Resamples,
    mix: ClassMix | None,
    class_names: Sequence[str],
    *,
    level: float,
) -> JudgedDecisions:
    """The decisions, the target that they reach, and the metrics of the likeliest class beside them.

    Args:
        decided: the samples.
        recipes: the metrics.
        resamples: of all samples.
        mix: class mix of use; None: that of the data.
        class_names: C names.
        level: nominal coverage of the intervals.
    """
    rule, likeliest = decided.rule, decided.likeliest
    changed = None
    beside: tuple[MetricValue, ...] = ()
    if likeliest is not None:
        rows = decided.rows
        changed = int((likeliest.decisions[rows] != decided.samples.decisions[rows]).sum())
        if changed:
            beside = tuple(
                value
                for recipe in recipes
                if recipe.judges_decisions
                for value in evaluate_metric(
                    recipe, likeliest, resamples, level=level, subprocesses=()
                ).values
            )
    return JudgedDecisions(
        source=decided.source,
        rule=None if rule is None else describe_rule(rule, class_names),
        reason=decided.reason,
        samples=decided.rows.size,
        changed=changed,
        cut_off=decided.cut_off(),
        target=_target(decided, resamples, mix, level=level),
        by_likeliest=beside,
    )


def _target(
    decided: DecidedSamples, resamples: Resamples, mix: ClassMix | None, *, level: float
) -> TargetOutcome | None:
    rule = decided.rule
    if not isinstance(rule, TargetValue):
        return None
    if rule.metric == "PPR":
        reached = _share_of_positives(rule, decided, resamples, mix, level=level)
    else:
        metric = RecommendedMetric(metric=rule.metric, per_class=True, target_class=rule.positive_class)
        recipe = Recipe.of(
            rule.metric, metric, weights=None, split=None, seed=0, mix=mix, judged=decided.judged
        )
        found = evaluate_metric(recipe, decided.samples, resamples, level=level, subprocesses=()).values[0]
        reached = EstimatedValue.model_validate(
            {name: getattr(found, name) for name in EstimatedValue.model_fields}
        )
    in_use = None if mix is None or mix.in_use is None else tuple(mix.in_use.tolist())
    return TargetOutcome(
        metric=rule.metric,
        class_index=rule.positive_class,
        target=rule.value,
        reached=reached,
        prevalence=in_use,
        verdict=_verdict(rule, reached),
    )


def _verdict(rule: TargetValue, reached: EstimatedValue) -> Literal["reached", "missed", "open"]:
    low, high = reached.number("low"), reached.number("high")
    if rule.target.is_kept(low, high):
        return "reached"
    return "missed" if rule.target.is_missed(low, high) else "open"


def _share_of_positives(
    rule: TargetValue,
    decided: DecidedSamples,
    resamples: Resamples,
    mix: ClassMix | None,
    *,
    level: float,
) -> EstimatedValue:
    """Share of the judged samples that are decided as the class; a sample without a valid output is not."""
    own, draws = decided.samples.part(decided.rows), resamples.part(decided.rows)
    cells = 2 * own.labels + (own.decisions != rule.positive_class)
    values = draws.of_counts(
        lambda counts: _share(counts.reshape(-1, own.classes, 2), mix), cells, size=2 * own.classes
    )
    resampled = draws.split(values)
    bounds = value_bounds(resampled, level=level, limits=(0.0, 1.0), cases=_cases(own))
    estimate = float(resampled.estimate)
    return EstimatedValue.model_validate(
        {
            "label": "PPR",
            "class_index": rule.positive_class,
            "value_of": "one_class",
            **as_fields({"estimate": estimate, "low": bounds.low, "high": bounds.high}),
            "reason": "a class of use has no sample" if math.isnan(estimate) else None,
            "method": bounds.method,
            "replicates": bounds.replicates,
            "notes": bounds.notes,
        }
    )


def _share(counts: Floats, mix: ClassMix | None) -> Floats:
    """Share of the first column of confusions (B, C, 2), shape (B,)."""
    weighed = counts if mix is None else mix.weigh(counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return weighed[..., 0].sum(axis=1) / weighed.sum(axis=(1, 2))


def _cases(own: Samples) -> int:
    return int(np.unique(own.unit).size)
