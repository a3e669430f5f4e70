"""The recommended metrics that rank models, and the ranking that answers the question of the interview."""

from collections.abc import Mapping
from types import MappingProxyType

from lifelong_core.design.method.loader import load_method
from lifelong_core.design.recommendation.document import Recommendation, RecommendedMetric
from lifelong_core.design.recommendation.labels import label_metrics
from lifelong_core.design.recommendation.relations import same_information
from lifelong_core.design.validation.comparison import Headline

RANKING_STEPS = ("S2", "S3", "S4", "S5_step1")
"""Subprocesses whose metrics compare models; the second step of S5 describes one model (thesis section 4.2.1)."""

DESCRIBES_ONE_MODEL = "it was recommended to describe a given model (U4), not to compare models"

HEADLINES: Mapping[str, str] = MappingProxyType(
    {
        "U1": "Re-calibrations of one classifier are compared (U1).",
        "U2": "Classifiers are compared by their calibration (U2). Read the ranking by all metrics beside it: "
        "a model that discriminates poorly may be calibrated best.",
        "U3": "One joint score of discrimination and calibration was asked for (U3).",
    }
)
BY_ALL = "No comparison by calibration was asked for, so all metrics that compare models count."


def out_of_ranking(recommendation: Recommendation, unusable: Mapping[str, str]) -> dict[str, str]:
    """The labels of the metrics that do not count in an overall ranking, with the reason.

    Of related metrics the first usable one counts, in the order of the recommendation.

    Args:
        recommendation: the metrics.
        unusable: label -> why a metric cannot count: it is undefined, for instance.
    """
    ranking = [metric for step in RANKING_STEPS for metric in _metrics_of(recommendation, step)]
    found: dict[str, str] = {}
    counted: list[RecommendedMetric] = []
    for label, metric in label_metrics(recommendation):
        why = unusable.get(label)
        if metric not in ranking:
            why = DESCRIBES_ONE_MODEL
        elif why is None:
            why = same_information(metric, counted, load_method().relations)
        if why is None:
            counted.append(metric)
        else:
            found[label] = why
    return found


def headline_of(recommendation: Recommendation) -> Headline:
    """The ranking that the interview asked for (thesis section 4.1.3, FP2.7)."""
    wanted = recommendation.fingerprint.calibration_comparison
    own = _metrics_of(recommendation, "S5_step1")
    if wanted is not None and wanted in HEADLINES and own:
        label = next(label for label, metric in label_metrics(recommendation) if metric == own[0])
        return Headline(label=label, why=HEADLINES[wanted])
    return Headline(label=None, why=BY_ALL)


def _metrics_of(recommendation: Recommendation, subprocess: str) -> tuple[RecommendedMetric, ...]:
    steps = (step for step in recommendation.steps if step.subprocess == subprocess)
    return tuple(metric for step in steps for metric in step.metrics)
