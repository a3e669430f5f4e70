"""Reports as self-contained HTML pages."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from lifelong_core.design.interview.class_names import decision_names
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.report import basis, figures, tables, uncertainty, words
from lifelong_core.design.report import sections as decisions
from lifelong_core.design.report import sections as leaders
from lifelong_core.design.report import sections as subgroups
from lifelong_core.design.report.basis import rests_on
from lifelong_core.design.report.forest import Entry, Forest, entries_of, forest, forests, thresholds_of
from lifelong_core.design.validation.comparison import MetricRanking, ModelComparison, OverallRanking
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.values.metric_value import MetricValue
from lifelong_core.metrics import METRICS
from lifelong_core.values.documents import FrozenDocument

LARGEST_DOCUMENT = 1_000_000
"""most characters of a document that its page embeds"""
FILTERS = (
    words.threshold_text,
    words.better,
    words.format_count,
    words.decided_by,
    words.definition,
    words.agreement_in_words,
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
    found = leaders.leaders_of(comparison)
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
            (one, leaders.SCHEMES[one.scheme], leaders.SCORES[one.scheme], leaders.EXPLANATIONS[one.scheme])
            for one in leaders.overall_rankings(comparison)
        ],
        leaders=found.names,
        asked=found.asked,
        chances=found.chances,
        judged=any(result.acceptance for result in comparison.results.values()),
        details=[_detail(comparison, ranking) for ranking in comparison.rankings],
        chance=_chance,
    )


def _detail(comparison: ModelComparison, ranking: MetricRanking) -> tuple[MetricRanking, Forest, Any, str]:
    """A ranking with the plot of its values, the card of its metric and the part of the metric."""
    values = {
        name: result.value(ranking.label, ranking.class_index) for name, result in comparison.results.items()
    }
    order = [model.model for model in ranking.models] or list(values)
    any_result = comparison.results[order[0]]
    wanted = thresholds_of(any_result.acceptance)
    threshold = wanted.get((ranking.label, ranking.class_index), wanted.get((ranking.label, None)))
    shown = [(name, values[name]) for name in order]
    if ranking.basis == "excess":
        entries = [_excess_entry(name, value) for name, value in shown]
        plot = forest(entries, f"Excess of {ranking.label} of each model", reference=0.0)
    else:
        entries = [Entry(name, value, value.orientation, threshold, value.naive) for name, value in shown]
        plot = forest(entries, f"{ranking.label} of each model")
    shown_of = values[order[0]]
    if tables.is_said_once(any_result, ranking.label):
        shown_of = shown_of.model_copy(update={"value_of": "all_classes"})
    of = ", ".join(filter(None, (words.of(shown_of, any_result.class_names), rests_on(any_result, shown_of))))
    return ranking, plot, METRICS[ranking.metric], of


def _excess_entry(name: str, value: MetricValue) -> Entry:
    """A calibration error over that of calibrated predictions, by which models are ranked; it has no interval."""
    excess = None if value.calibrated is None else value.calibrated.excess
    fields: dict[str, Any] = {
        "estimate": excess,
        "low": None,
        "high": None,
        "infinite": {},
        "calibrated": None,
    }
    note = f"the error: {words.interval_in_words(value)}"
    return Entry(
        name, value.model_copy(update=fields), value.orientation, note=note, text=words.number(excess)
    )


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
        "basis": basis,
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
