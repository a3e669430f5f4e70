"""The models that come first in a comparison, and the orders that put them there."""

from dataclasses import dataclass

from lifelong_core.design.report.words import percent
from lifelong_core.design.validation.comparison import MetricRanking, ModelComparison, OverallRanking, Scheme

SCHEMES: dict[Scheme, str] = {"rank_then_mean": "rank then mean", "mean_then_rank": "mean then rank"}
SCORES: dict[Scheme, str] = {"rank_then_mean": "Mean of ranks", "mean_then_rank": "Mean of values"}
"""The score that orders the models, in words"""
EXPLANATIONS: dict[Scheme, str] = {
    "rank_then_mean": "Each metric ranks the models; the mean of these ranks, over the metrics, puts them in order.",
    "mean_then_rank": "The values of each metric are brought to a scale from 0, its worst, to 1, its best; the mean of"
    " these values, over the metrics, puts the models in order.",
}


@dataclass(frozen=True)
class Leaders:
    """The models in the first place of the orders that answer the question."""

    names: tuple[str, ...]
    asked: MetricRanking | None
    """the ranking by the one metric that the interview asked for; None: all metrics together answer it"""
    chances: tuple[tuple[str, float], ...]
    """by the name of an order over all metrics, how often its first model stays first"""


def overall_rankings(comparison: ModelComparison) -> tuple[OverallRanking, OverallRanking]:
    """The orders by all metrics, the one that answers the question first."""
    return comparison.rank_then_mean, comparison.mean_then_rank


def leaders_of(comparison: ModelComparison) -> Leaders:
    """The models in first place."""
    asked, overall = _asked(comparison), overall_rankings(comparison)
    counted = overall if asked is None else (asked,)
    first = {one.model for ranking in counted for one in ranking.models if one.rank == ranking.models[0].rank}
    chances = ((SCHEMES[one.scheme], one.models[0].best) for one in overall if one.models)
    return Leaders(tuple(sorted(first)), asked, tuple(chances))


def leader_lines(comparison: ModelComparison) -> tuple[str, str]:
    """The models in first place, and the order that puts them there."""
    found = leaders_of(comparison)
    headline = comparison.headline
    why = f" {headline.why}"
    if headline.label is None:
        why += f" Read the order by {SCHEMES['rank_then_mean']} first."
    if not found.names:
        return "No order", f"No metric allows one.{why}"
    title = f"{found.names[0]} comes first" if len(found.names) == 1 else "No clear leader"
    share = f"{', '.join(found.names)} share the first place"
    if found.asked is not None:
        best = f"in {percent(found.asked.models[0].best)} of the resampled data sets"
        return title, f"By {found.asked.label}, {best if len(found.names) == 1 else share}.{why}"
    if len(found.names) > 1:
        return title, f"The ways of combining the metrics, or ties, put {', '.join(found.names)} first.{why}"
    ways = " and ".join(
        f"in {percent(chance)} of the resampled data sets by {way}" for way, chance in found.chances
    )
    return title, f"By all metrics together, it stays first {ways}.{why}"


def _asked(comparison: ModelComparison) -> MetricRanking | None:
    found = next((one for one in comparison.rankings if one.label == comparison.headline.label), None)
    return found if found is not None and found.models else None
