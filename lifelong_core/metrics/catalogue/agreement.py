"""Descriptions of the metrics with special inputs: uncertainties, or two predictions without labels."""

from collections.abc import Callable
from math import inf
from typing import Any, Literal

from lifelong_core.metrics.catalogue.metric_info import MetricInfo
from lifelong_core.metrics.counting.stability import (
    adjusted_jaccard,
    adjusted_positive_jaccard,
    adjusted_positive_overlap,
    heuristically_adjusted_positive_jaccard,
    kendall_correlation,
    pearson_correlation,
    positive_jaccard,
    positive_overlap,
    spearman_correlation,
)
from lifelong_core.metrics.counting.uncertainty_aware import (
    uncertainty_aware_accuracy,
    uncertainty_aware_f1,
    uncertainty_aware_false_positive_rate,
    uncertainty_aware_precision,
    uncertainty_aware_recall,
)


def _uncertainty_aware(
    what: str, function: Callable[..., Any], meaning: str, formula: str, orientation: Literal["up", "down"]
) -> MetricInfo:
    return MetricInfo(
        acronym=f"UA-{what}",
        name=f"uncertainty-aware {what}",
        function=function,
        meaning=meaning + " Samples near the threshold and uncertain ones count less.",
        definition="Sperling et al., eq. 13-17",
        formula=f"{formula} on weights w_i=erf(|p-t|/(s sqrt2)) erf(|c-t|/(s sqrt2)) exp(-u d)",
        range="[0,1]",
        bounds=(0, 1),
        orientation=orientation,
        scope="binary",
        prevalence_dependent=True,
        undefined="every relevant weight is 0 (no such sample, p = t, c = t)",
        value_for_invalid_output="worst",
        family="uncertainty-aware",
    )


def _stability(
    what: str,
    function: Callable[..., Any],
    meaning: str,
    formula: str,
    undefined: str,
    *,
    shown: str = "[-1,1]",
    bounds: tuple[float, float] = (-1, 1),
) -> MetricInfo:
    return MetricInfo(
        acronym=f"S_{what}",
        name=f"stability S_{what}",
        function=function,
        meaning=meaning,
        definition="Romanova 2020, sec. II-III",
        formula=formula,
        range=shown,
        bounds=bounds,
        orientation="up",
        scope="pair of predictions, no labels",
        prevalence_dependent=None,
        undefined=undefined,
        value_for_invalid_output="n/a",
        family="stability",
    )


AGREEMENT: tuple[MetricInfo, ...] = (
    _uncertainty_aware(
        "accuracy",
        uncertainty_aware_accuracy,
        "How often the decision is right.",
        "(TP+TN)/(TP+TN+FP+FN)",
        "up",
    ),
    _uncertainty_aware(
        "precision",
        uncertainty_aware_precision,
        "How often a positive decision is right.",
        "TP/(TP+FP)",
        "up",
    ),
    _uncertainty_aware(
        "recall", uncertainty_aware_recall, "How often a positive is found.", "TP/(TP+FN)", "up"
    ),
    _uncertainty_aware(
        "FPR",
        uncertainty_aware_false_positive_rate,
        "How often a negative raises a false alarm.",
        "FP/(FP+TN)",
        "down",
    ),
    _uncertainty_aware(
        "F1",
        uncertainty_aware_f1,
        "Harmonic mean of precision and recall.",
        "2PR/(P+R), use 2TP/(2TP+FP+FN)",
        "up",
    ),
    _stability(
        "J",
        positive_jaccard,
        "Of the instances that any of two models calls positive, how many both do.",
        "n11/(n01+n10+n11)",
        "neither model calls any instance positive",
        shown="[0,1]",
        bounds=(0, 1),
    ),
    _stability(
        "PO",
        positive_overlap,
        "Of the positives of the model with fewer, how many the other shares.",
        "n11/(min(n10,n01)+n11)",
        "a model calls no instance positive",
        shown="[0,1]",
        bounds=(0, 1),
    ),
    _stability(
        "APO",
        adjusted_positive_overlap,
        "S_PO beyond what chance would give.",
        "(n11-E)/(min(n1*,n*1)-E)",
        "a model calls no instance positive, or all",
        shown="[1-N,1]",
        bounds=(-inf, 1),
    ),
    _stability(
        "HAPJ",
        heuristically_adjusted_positive_jaccard,
        "S_J of the rarer of both agreements.",
        "min(n11,n00)/(n10+n01+min(n11,n00))",
        "both models give all instances the same decision",
        shown="[0,1]",
        bounds=(0, 1),
    ),
    _stability(
        "APJ",
        adjusted_positive_jaccard,
        "S_J beyond what chance would give.",
        "(n11-E11)/(n10+n01+n11-E11)",
        "both models give all instances the same decision",
        shown="[-1/3,1]",
        bounds=(-1 / 3, 1),
    ),
    _stability(
        "AJ",
        adjusted_jaccard,
        "Agreement of two models beyond what chance would give.",
        "Cohen kappa",
        "both models give all instances the same decision",
    ),
    _stability(
        "Pearson",
        pearson_correlation,
        "Linear correlation of two models' scores.",
        "product moment",
        "a model gives all instances the same score",
    ),
    _stability(
        "Spearman",
        spearman_correlation,
        "Linear correlation of the ranks of two models' scores.",
        "Pearson on mid-ranks",
        "a model gives all instances the same score",
    ),
    _stability(
        "Kendall",
        kendall_correlation,
        "Pairs of instances that two models order alike, less those that they do not.",
        "tau-b",
        "a model gives all instances the same score",
    ),
)
