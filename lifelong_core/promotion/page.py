"""The promotion report as a self-contained HTML page, in the style of the validation report."""

from collections.abc import Iterable, Sequence
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader

from lifelong_core.design.interview.class_names import decision_names
from lifelong_core.design.recommendation.wording import DIRECTIONS
from lifelong_core.design.report import figures, pages, words
from lifelong_core.design.report.forest import Entry, Forest, forest
from lifelong_core.design.report.plots import Panel
from lifelong_core.design.report.tables import MOST_CLASSES
from lifelong_core.design.report.words import of
from lifelong_core.design.validation.differences import MetricDifference
from lifelong_core.promotion.document import PromotionReport

MOST_CASES = 20
"""cases with a rising cost that the page shows; more can be unfolded"""


_ORIENTATIONS = ("up", "down")


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
