"""Numbers and answers as they are read."""

import math
from collections.abc import Sequence

from lifelong_core.design.validation.acceptance import AcceptanceOutcome
from lifelong_core.design.validation.displays import SubgroupMetric
from lifelong_core.design.validation.metric_value import MetricValue, Number

NOT_DEFINED = "not defined"


def number(value: Number) -> str:
    """A number with three decimals, or three digits where it is small; None is not defined.

    Examples:
        >>> [number(value) for value in (0.91234, 0.00123456, 0.0, 12345.6, math.inf, None)]
        ['0.912', '0.00123', '0', '12,346', '∞', 'not defined']
    """
    if value is None or math.isnan(value):
        return NOT_DEFINED
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    size = abs(value)
    return f"{value:.3g}" if size < 0.01 else f"{value:.3f}" if size < 1000 else f"{value:,.0f}"


def percent(share: Number) -> str:
    """A share as a percentage.

    Examples:
        >>> [percent(share) for share in (0.5, 0.0012, 0.0, 1.0, None)]
        ['50.0 %', '0.12 %', '0 %', '100 %', 'not defined']
    """
    if share is None or math.isnan(share):
        return NOT_DEFINED
    per_cent = 100 * share
    if per_cent in (0, 100):
        return f"{per_cent:.0f} %"
    return f"{per_cent:.1f} %" if per_cent >= 1 else f"{per_cent:.2g} %"


def exact(value: Number) -> str:
    """A number as a machine reads it; nothing where it is not defined."""
    return "" if value is None or math.isnan(value) else repr(value)


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """A count with its noun.

    Examples:
        >>> counted(1, "class", "classes"), counted(2400, "sample")
        ('1 class', '2,400 samples')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def shortened(text: str, most: int = 30) -> str:
    """A text of at most so many characters, for the narrow places of a plot.

    Examples:
        >>> shortened("a very long name of a class", most=12)
        'a very long…'
    """
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def range_of(value: MetricValue) -> str:
    """The range of a metric, open where it has no end."""
    low, high = value.range
    left = "(-∞" if low is None else f"[{low:.3g}"
    return f"{left}, " + ("∞)" if high is None else f"{high:.3g}]")


def better(orientation: str) -> str:
    """Which values of a metric are better."""
    return "↑ higher" if orientation == "up" else "↓ lower"


def of(value: MetricValue | SubgroupMetric, class_names: Sequence[str]) -> str:
    """What a value is of: a class, or all of them."""
    if value.class_index is not None:
        return class_names[value.class_index]
    names = {"mean": "mean of the classes", "weighted_mean": "weighted mean of the classes"}
    return names.get(value.value_of, "all classes")


def interval_in_words(value: MetricValue) -> str:
    """Estimate and interval in one line."""
    if math.isnan(value.number("estimate")):
        return NOT_DEFINED
    ends = f"{number(value.number('low'))} to {number(value.number('high'))}"
    return f"{number(value.number('estimate'))} ({ends})"


def asked(outcome: AcceptanceOutcome, orientation: str) -> str:
    """What an acceptance threshold asks for."""
    threshold = outcome.threshold
    by = "the estimate" if threshold.by == "estimate" else "the worse end of the interval"
    relation = "at least" if orientation == "up" else "at most"
    return f"{relation} {threshold.value:g}, by {by}"


def definition(number: str) -> str:
    """Where a metric is defined."""
    return f"thesis Def. {number}" if number[0].isdigit() else number


def decided_by(guide_decided_by: str) -> str:
    """Who decided a guide."""
    return {
        "person": "a person decided",
        "answers": "the answers decide",
        "default": "default of a source",
        "nobody": "open",
    }[guide_decided_by]


def embedded(document: str) -> str:
    """A JSON document for a script element: nothing in it can end the element.

    Examples:
        >>> embedded('{"name": "</script>"}')
        '{"name": "\\\\u003c/script\\\\u003e"}'
        >>> import json
        >>> json.loads(embedded('{"name": "</script>"}'))
        {'name': '</script>'}
    """
    return document.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
