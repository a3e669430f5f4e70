"""Reports as self-contained HTML pages."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from lifelong_core.design.interview.class_names import decision_names
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.report import decisions, figures, subgroups, tables, uncertainty, words
from lifelong_core.design.report.cost_words import rests_on
from lifelong_core.design.report.forest import Entry, Forest, entries_of, forest, forests, thresholds_of
from lifelong_core.design.validation.comparison import MetricRanking, ModelComparison, OverallRanking
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.documents import FrozenDocument
from lifelong_core.metrics import METRICS

LARGEST_DOCUMENT = 1_000_000
"""most characters of a document that its page embeds"""
FILTERS = (
    words.threshold_text,
    words.better,
    words.format_count,
    words.decided_by,
    words.definition,
    words.direction,
    words.exact,
    words.compared_text,
    words.name_classes,
    words.number,
    words.of,
    words.p_value,
    words.percent,
    words.range_of,
    words.shorten,
    words.side_by_side,
    words.confidence_text,
    words.whole,
)


def validation_html(result: ValidationResult) -> str:
    """Return the report of a validation: an HTML page without scripts and external files, fit for printing.

    The verdict of the acceptance thresholds comes first, then the recommended metrics with intervals and why they were
    recommended, the confusion matrix, curves, subgroups, advice, what was asked, and where the numbers come from. Of
    more than 12 classes, the worst 12 are drawn and the page says so. The page embeds the result as JSON,
    unless it is very large. Equal results give equal pages.

    Args:
        result: the result of `validate`.
    """
    shown = tables.to_look_at(result.values)
    return _render(
        "validation.html.jinja",
        result,
        result=result,
        advised=result.recommendation,
        names=result.class_names,
        forests=forests(
            entries_of(
                shown, result.class_names, result.acceptance, notes=lambda value: rests_on(result, value)
            )
        ),
        steps=tables.step_tables(result),
        show_confusion=result.recommendation.fingerprint.decision_rule != "none",
        roc=figures.roc_panels(result),
        precision_recall=figures.precision_recall_panels(result),
        reliability=figures.reliability_panels(result),
        decision=figures.decision_panels(result),
        subgroup_forests=subgroups.subgroup_forests(result),
    )


def comparison_html(comparison: ModelComparison) -> str:
    """Return the report of a comparison of models, as a page like that of `validation_html`.

    The best model comes first, then the rankings by all metrics together and by each metric, with the probability of
    being best and the shares of places in the resampled data. For more than 12 models, these shares are left out.

    Args:
        comparison: the result of `compare`.
    """
    first = next(iter(comparison.results.values()))
    overall = (comparison.rank_then_mean, comparison.mean_then_rank)
    asked = _asked(comparison)
    leaders = sorted(
        {
            model.model
            for one in ((asked,) if asked is not None else overall)
            for model in one.models
            if model.rank == one.models[0].rank
        }
    )
    return _render(
        "comparison.html.jinja",
        comparison,
        comparison=comparison,
        first=first,
        advised=first.recommendation,
        names=first.class_names,
        results=list(comparison.results.items()),
        rankings=list(comparison.rankings),
        overall=[
            (overall[0], "By the mean of places", "Mean of places"),
            (overall[1], "By the mean of values", "Mean of values"),
        ],
        leaders=leaders,
        asked=asked,
        chances=[
            (way, one.models[0].best)
            for way, one in zip(("the mean of places", "the mean of values"), overall, strict=True)
            if one.models
        ],
        judged=any(result.acceptance for result in comparison.results.values()),
        details=[_detail(comparison, ranking) for ranking in comparison.rankings],
        chance=_chance,
    )


def _asked(comparison: ModelComparison) -> MetricRanking | None:
    """The ranking by the one metric that the interview asked for; None: all metrics together answer it."""
    label = None if comparison.headline is None else comparison.headline.label
    found = next((one for one in comparison.rankings if one.label == label), None)
    return found if found is not None and found.models else None


def _detail(comparison: ModelComparison, ranking: MetricRanking) -> tuple[MetricRanking, Forest, Any, str]:
    """A ranking with the plot of its values, the card of its metric and the part of the metric."""
    values = {
        name: result.value(ranking.label, ranking.class_index) for name, result in comparison.results.items()
    }
    order = [model.model for model in ranking.models] or list(values)
    any_result = comparison.results[order[0]]
    wanted = thresholds_of(any_result.acceptance)
    threshold = wanted.get((ranking.label, ranking.class_index), wanted.get((ranking.label, None)))
    shown = ((name, values[name]) for name in order)
    entries = [Entry(name, value, value.orientation, threshold, value.naive) for name, value in shown]
    plot = forest(entries, f"{ranking.label} of each model")
    shown_of = values[order[0]]
    if tables.is_said_once(any_result, ranking.label):
        shown_of = shown_of.model_copy(update={"value_of": "all_classes"})
    of = ", ".join(filter(None, (words.of(shown_of, any_result.class_names), rests_on(any_result, shown_of))))
    return ranking, plot, METRICS[ranking.metric], of


def _chance(ranking: MetricRanking | OverallRanking, name: str) -> float | None:
    """The probability that a model is best; None without a ranking."""
    return next((model.best for model in ranking.models if model.model == name), None)


def _render(template: str, document: FrozenDocument, **values: Any) -> str:
    text = document.to_json()
    embedded = words.embed_json(text) if len(text) <= LARGEST_DOCUMENT else None
    meanings = load_method().meta.confidence
    return environment().get_template(template).render(document=embedded, confidence=meanings, **values)


@cache
def environment() -> Environment:
    """Templates and their filters; all values are escaped."""
    made = Environment(
        loader=PackageLoader("lifelong_core.design.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    own: Any = made
    own.filters |= {one.__name__: one for one in FILTERS}
    own.globals |= {
        "rests_on": rests_on,
        "tables": tables,
        "decision_names": decision_names,
        "decisions": decisions,
        "subgroups": subgroups,
        "uncertainty": uncertainty,
        "figures": figures,
        "answer_rows": tables.answer_rows,
        "advice_rows": tables.advice_rows,
    }
    return made
