"""The comparison of estimated and realised performance in words, and as JSON values for API and command line."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from lifelong_core.decision_rules.wording import METRIC_NAMES
from lifelong_core.deploy.performance.labelled.agreement import Agreement
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.entities.performance import (
    CLASS_MIXES,
    ComparedPeriod,
    MetricAtClassMix,
    PerformanceAnswer,
    PopulationPerformance,
    RealisedRuleMetric,
)
from lifelong_core.values.errors import NotFoundError

TITLES = {"AC": "accuracy", "EC": "expected cost"}
"""Names of the compared metrics, by acronym."""
WHEN = (
    "about a minute after the first label or the first estimate of a cycle, at the latest in its next round"
    " (LIFELONG_CYCLE_INTERVAL_SECONDS)"
)
"""When the performance of a population is computed."""


class NotComparedError(NotFoundError):
    """The performance of a known population was not compared yet."""

    def __init__(self, reference: str, environment: str) -> None:
        super().__init__(
            f"there is no comparison of the performance of {reference} in {environment} yet.",
            field="environment",
            hint=f"A running monitor computes it {WHEN}.",
        )


def describe_metric(metric: EstimatedMetric | None) -> str:
    """Return a value with its interval as text.

    Examples:
        >>> describe_metric(EstimatedMetric(0.8123, 0.75, 0.86))
        '0.812 (0.750 to 0.860)'
        >>> describe_metric(EstimatedMetric(0.5, float("nan"), float("nan")))
        '0.500'
        >>> describe_metric(None)
        ''
    """
    if metric is None or math.isnan(metric.value):
        return ""
    if math.isnan(metric.low) or math.isnan(metric.high):
        return f"{metric.value:.3f}"
    return f"{metric.value:.3f} ({metric.low:.3f} to {metric.high:.3f})"


def describe_comparison(performance: PopulationPerformance) -> list[str]:
    """Return sentences about the newest estimate, the labelled predictions beside it, and whether they agree."""
    newest, rule = performance.newest, performance.rule_metric
    kept = [] if rule is None else [_describe_rule_metric(rule)]
    if newest is None:
        return [
            "No cycle has estimated the performance yet, so there is nothing to compare labels with.",
            *kept,
        ]
    return [*_sentences(newest), *kept]


def describe_warnings(performance: PopulationPerformance) -> list[str]:
    """Return the warnings: disagreement, calibration drift, selection of labelled samples, limits of the estimate."""
    newest = performance.newest
    agreement = () if newest is None else newest.agreement.values()
    checks = (performance.calibration_drift, performance.selection)
    return [
        *(one.text for one in agreement if one.verdict == "disagree"),
        *(check.text for check in checks if check is not None and check.rejected),
        *warn_of_class_mixes(performance.class_mixes),
        *_warn_of_rule(performance.rule_metric),
        *(() if newest is None or newest.estimated is None else newest.estimated.warnings),
        *performance.left_out,
    ]


def describe_class_mixes(figures: Iterable[MetricAtClassMix]) -> list[str]:
    """Return a sentence for each metric with its values at all class mixes.

    Examples:
        >>> def figure(mix, share, value, accepted):
        ...     shares = {"healthy": 1 - share, "ill": share}
        ...     return MetricAtClassMix("EC", mix, shares, 400, EstimatedMetric(value, value, value), 0.2, accepted)
        >>> print(describe_class_mixes([figure("stated", 0.02, 0.093, True), figure("realised", 0.4, 1.76, False)])[0])
        Expected cost (EC) is 0.093 (0.093 to 0.093) at the stated prevalences (healthy 0.98, ill 0.02) and 1.760 (1.760 to 1.760) at the realised prevalences (healthy 0.60, ill 0.40), on 400 labelled predictions.
    """  # noqa: E501 - one printed line
    return [
        f"{label} is {_join(list(map(_describe, found)))}, on {found[0].samples} labelled predictions."
        for label, found in _by_label(figures)
    ]


def warn_of_class_mixes(figures: Iterable[MetricAtClassMix]) -> list[str]:
    """Return a warning for each metric that reaches its threshold at the stated prevalences only.

    Examples:
        >>> def figure(mix, accepted):
        ...     metric = EstimatedMetric(0.5, 0.4, 0.6)
        ...     return MetricAtClassMix("EC", mix, {"ill": 1.0}, 90, metric, 0.2, accepted)
        >>> warn_of_class_mixes([figure("stated", True), figure("realised", False)])
        ['Expected cost (EC) reaches its threshold 0.2 at the stated prevalences, but misses it at the realised ones.']
        >>> warn_of_class_mixes([figure("stated", True), figure("realised", None)])
        []
    """
    warnings: list[str] = []
    for label, values in _by_label(figures):
        accepted = {one.mix: one.accepted for one in values}
        missed = [mix for mix in CLASS_MIXES if accepted.get(mix) is False]
        if accepted.get("stated") and missed:
            warnings.append(
                f"{label} reaches its threshold {values[0].threshold:g} at the stated prevalences, but misses it at the"
                f" {' and the '.join(missed)} ones."
            )
    return warnings


def _describe_rule_metric(metric: RealisedRuleMetric) -> str:
    of_class = f" of {metric.class_name}" if metric.class_name else ""
    name = METRIC_NAMES.get(metric.metric, metric.metric)
    return (
        f"Head {metric.head_version}: {name}{of_class} is {describe_metric(metric.value)} on"
        f" {_labels(metric.samples)}. Its decision rule: {metric.rule}."
    )


def _warn_of_rule(metric: RealisedRuleMetric | None) -> list[str]:
    if metric is None or not metric.is_missed:
        return []
    return [
        f"By its labels, head {metric.head_version} misses the target of its decision rule: {metric.rule}."
    ]


def _sentences(newest: ComparedPeriod) -> Iterator[str]:
    estimated, realised = newest.estimated, newest.realised
    for name, title in TITLES.items():
        value = describe_metric(None if estimated is None else estimated.metrics.get(name))
        if not value:
            continue
        sentence = f"Head {newest.head_version}: {title} is {value} by the estimate without labels"
        counted = describe_metric(None if realised is None else realised.metrics.get(name))
        if not counted or realised is None:
            yield f"{sentence}; none of its predictions had a label then."
            continue
        yield f"{sentence}, and {counted} on {_labels(realised.samples)}{_verdict(newest.agreement.get(name))}"


def _labels(number: int) -> str:
    return "1 labelled prediction" if number == 1 else f"{number} labelled predictions"


def _verdict(agreement: Agreement | None) -> str:
    if agreement is None or agreement.verdict == "too_few_labels" or agreement.p_value is None:
        return "; that is too few labels to compare them."
    return f". They {agreement.verdict} (p = {agreement.p_value:.2g})."


def _by_label(figures: Iterable[MetricAtClassMix]) -> Iterator[tuple[str, list[MetricAtClassMix]]]:
    for label, found in groupby(figures, key=lambda one: one.label):
        yield label.replace("EC", "Expected cost (EC)", 1), list(found)


def _describe(value: MetricAtClassMix) -> str:
    shares = ", ".join(f"{name} {share:.2f}" for name, share in value.prevalences.items())
    return f"{describe_metric(value.metric) or 'undefined'} at the {value.mix} prevalences ({shares})"


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def performance_answer(
    performance: PopulationPerformance, *, model: str, environment: str
) -> PerformanceAnswer:
    """The comparison with its statements in words; `model` is name@version."""
    return PerformanceAnswer.of(
        performance,
        model=model,
        environment=environment,
        statements=[*describe_comparison(performance), *describe_class_mixes(performance.class_mixes)],
        warnings=describe_warnings(performance),
    )
