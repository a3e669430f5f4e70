"""The promotion report as a self-contained HTML page, in the style of the validation report."""

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader

from lifelong_core.design.interview.class_names import decision_names
from lifelong_core.design.report import pages, words
from lifelong_core.promotion import figures
from lifelong_core.promotion.document import PromotionReport

MOST_CASES = 20
"""cases with a rising cost that the page shows; more can be unfolded"""


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
            plots_of_differences=figures.difference_forests(report.differences, names),
            most_cases=MOST_CASES,
            shown=figures.shown_differences(report.differences),
            reliability=figures.reliability_pairs(report),
        )
    )


@cache
def environment() -> Environment:
    """The templates of the validation report, and those of this folder."""
    shared = pages.environment()
    own = PackageLoader("lifelong_core.promotion")
    return shared.overlay(loader=ChoiceLoader([own, PackageLoader("lifelong_core.design.report")]))
