"""The promotion report as a self-contained HTML page, in the style of the validation report."""

import math
from collections.abc import Iterable, Sequence
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader

from lifelong_core.charts.scales import pad_range
from lifelong_core.design.interview.class_names import decision_names
from lifelong_core.design.recommendation.wording import DIRECTIONS
from lifelong_core.design.report import figures, pages, words
from lifelong_core.design.report.forest import Entry, Forest, forest
from lifelong_core.design.report.plots import Frame, Panel
from lifelong_core.design.report.tables import MOST_CLASSES
from lifelong_core.design.report.words import of
from lifelong_core.design.validation.differences import MetricDifference
from lifelong_core.design.validation.values.metric_value import EstimatedValue
from lifelong_core.develop.localization.classifier_stability import ClassifierStability, ScoreOverImages
from lifelong_core.develop.localization.stability import SCORE_NAMES
from lifelong_core.promotion.document import PromotionReport

MOST_CASES = 20
"""cases with a rising cost that the page shows; more can be unfolded"""


_ORIENTATIONS = ("up", "down")

OF_PAIRS = ("adjusted_positive_jaccard", "adjusted_jaccard", "spearman")
"""Scores that are shown for each pair: the two of the publication, and kappa."""
MOST_PAIRS = 45
"""Pairs that are drawn, those that agree least first; ten classifiers have as many."""
MOST_IMAGES = 10
_SIZE = 380.0


def promotion_html(report: PromotionReport) -> str:
    """Return the report as one page without scripts and external files, fit for printing.

    What the figures advise comes first, then the differences, the changed decisions, the probabilities, costs,
    subgroups, the places that both models look at, and what they cost to serve. The page embeds the report as JSON,
    without the overlays, unless it is very large. Equal reports give equal pages.

    Args:
        report: of `promotion_report`.
    """
    bare = report
    if report.localization is not None:
        bare = report.model_copy(
            update={"localization": report.localization.model_copy(update={"examples": ()})}
        )
    text = bare.to_json()
    names = report.new_result.class_names
    return (
        environment()
        .get_template("promotion.html.jinja")
        .render(
            document=words.embed_json(text) if len(text) <= pages.LARGEST_DOCUMENT else None,
            report=report,
            result=report.new_result,
            advised=report.new_result.recommendation,
            names=names,
            decisions=decision_names(names, len(report.cost_matrix[0])),
            plots_of_differences=difference_forests(report.differences, names),
            most_cases=MOST_CASES,
            shown=shown_differences(report.differences),
            reliability=reliability_pairs(report),
        )
    )


@cache
def environment() -> Environment:
    """The templates of the validation report and of this package."""
    shared = pages.environment()
    own = PackageLoader("lifelong_core.promotion")
    return shared.overlay(loader=ChoiceLoader([own, PackageLoader("lifelong_core.design.report")]))


def difference_forests(differences: Sequence[MetricDifference], class_names: Sequence[str]) -> list[Forest]:
    """Plots of differences around 0: those up to 1 share an axis by direction, others have their own."""
    shown = shown_differences(differences)
    wide = {
        difference.label for difference in shown if any(abs(number) > 1 for number in _numbers(difference))
    }
    entries = {
        id(difference): Entry(_label(difference, class_names), difference, difference.orientation)
        for difference in shown
    }
    made: list[Forest] = []
    for orientation in _ORIENTATIONS:
        common = [
            entries[id(difference)]
            for difference in shown
            if difference.orientation == orientation and difference.label not in wide
        ]
        if common:
            made.append(forest(common, _title(orientation), reference=0.0))
    for label in dict.fromkeys(difference.label for difference in shown if difference.label in wide):
        own = [difference for difference in shown if difference.label == label]
        title = f"{label}: {_title(own[0].orientation).lower()}"
        made.append(forest([entries[id(difference)] for difference in own], title, reference=0.0))
    return made


def shown_differences(differences: Iterable[MetricDifference]) -> list[MetricDifference]:
    """The summary of each metric, and its classes with the largest losses."""
    by_label: dict[str, list[MetricDifference]] = {}
    for difference in differences:
        by_label.setdefault(difference.label, []).append(difference)
    shown: list[MetricDifference] = []
    for own in by_label.values():
        classes = sorted(own[1:], key=_gain)[:MOST_CLASSES]
        kept = {id(difference) for difference in (own[0], *classes)}
        shown += [difference for difference in own if id(difference) in kept]
    return shown


def reliability_pairs(report: PromotionReport) -> list[tuple[str, list[Panel]]]:
    """Reliability diagrams of the likeliest class, of both models."""
    made: list[tuple[str, list[Panel]]] = []
    for result in (report.new_result, report.current_result):
        overall = result.model_copy(update={"reliability": result.reliability[:1]})
        made.append((result.name, figures.reliability_panels(overall)))
    return [pair for pair in made if pair[1]]


def _gain(difference: MetricDifference) -> float:
    value = difference.number("estimate")
    if value != value:  # undefined first
        return float("-inf")
    return value if difference.orientation == "up" else -value


def _numbers(difference: MetricDifference) -> Iterable[float]:
    return (number for number in (difference.estimate, difference.low, difference.high) if number is not None)


def _label(difference: MetricDifference, class_names: Sequence[str]) -> str:
    return (
        difference.label
        if difference.value_of == "all_classes"
        else f"{difference.label} · {of(difference, class_names)}"
    )


def _title(orientation: str) -> str:
    side = "right" if orientation == "up" else "left"
    return f"{DIRECTIONS[orientation].capitalize()}: the new model is better on the {side}"


def stability_html(result: ClassifierStability) -> str:
    """Return the result as one page without scripts and external files, fit for printing.

    The mean of all pairs comes first, then each pair, then the images: how both scores without labels go together, and
    which images agree least. The page embeds the result as JSON, unless it is very large. Equal results give equal
    pages.
    """
    text = result.to_json()
    return (
        environment()
        .get_template("stability.html.jinja")
        .render(
            document=words.embed_json(text) if len(text) <= pages.LARGEST_DOCUMENT else None,
            found=result,
            names=SCORE_NAMES,
            overall=forest(
                [
                    _entry(SCORE_NAMES[score.score], score)
                    for score in result.scores
                    if score.mean is not None
                ],
                "All pairs",
            )
            if any(score.mean is not None for score in result.scores)
            else None,
            pair_plots=[(SCORE_NAMES[score], _pairs(result, score)) for score in OF_PAIRS],
            most_pairs=MOST_PAIRS,
            tables=[(SCORE_NAMES[score], _table(result, score)) for score in OF_PAIRS],
            panel=_panel(result),
            least=_least(result),
        )
    )


def _entry(label: str, score: ScoreOverImages) -> Entry:
    value = EstimatedValue(
        label=score.score,
        value_of="all_classes",
        estimate=score.mean,
        low=score.low,
        high=score.high,
        reason=None if score.mean is not None else "undefined in every image",
        method="basic",
        replicates=0,
    )
    return Entry(label, value, "up")


def _of(scores: Iterable[ScoreOverImages], score: str) -> ScoreOverImages:
    return next(one for one in scores if one.score == score)


def _pairs(stability: ClassifierStability, score: str) -> Forest | None:
    """One row for each pair, the least stable first; None where no pair has the score."""
    rows = [(f"{pair.first} · {pair.second}", _of(pair.scores, score)) for pair in stability.pairs]
    known = sorted((row for row in rows if row[1].mean is not None), key=lambda row: row[1].mean or 0.0)
    if not known:
        return None
    return forest([_entry(*row) for row in known[:MOST_PAIRS]], SCORE_NAMES[score])


def _table(stability: ClassifierStability, score: str) -> list[tuple[str, list[ScoreOverImages | None]]]:
    """Each classifier with its score against every other; None against itself."""
    rows: list[tuple[str, list[ScoreOverImages | None]]] = []
    for one in stability.classifiers:
        pairs = [stability.pair(one, other) if other != one else None for other in stability.classifiers]
        rows.append((one, [None if pair is None else _of(pair.scores, score) for pair in pairs]))
    return rows


def _panel(stability: ClassifierStability) -> Panel | None:
    """Images by Spearman's correlation and the adjusted positive Jaccard; None where no image has both."""
    points = [
        (one.name or f"image {one.image}", x, y)
        for one in stability.by_image
        for x, y in [(one.scores["spearman"], one.scores["adjusted_positive_jaccard"])]
        if x is not None and y is not None
    ]
    if not points:
        return None
    frame = Frame.of(
        pad_range([x for _, x, _ in points], within=(-1, 1)),
        pad_range([y for *_, y in points], within=(-1 / 3, 1)),
        width=_SIZE,
        height=_SIZE,
    )
    return frame.panel(
        "Two scores of each image",
        f"{len(points)} images by two scores, means over the pairs",
        x_name="Spearman correlation",
        y_name="adjusted positive Jaccard",
        dots=tuple(
            frame.dot(x, y, None, None, f"{name}: Spearman {x:.2f}, adjusted positive Jaccard {y:.2f}")
            for name, x, y in points
        ),
    )


def _least(stability: ClassifierStability) -> Sequence[tuple[str, list[float | None]]]:
    """The images that agree least, with the scores of `OF_PAIRS`."""
    by_kappa = sorted(stability.by_image, key=lambda one: _last_if_none(one.scores["adjusted_jaccard"]))
    return [
        (one.name or f"image {one.image}", [one.scores[score] for score in OF_PAIRS])
        for one in by_kappa[:MOST_IMAGES]
    ]


def _last_if_none(value: float | None) -> float:
    return math.inf if value is None else value
