"""Numbers, intervals and thresholds as text."""

import math
import re
from collections.abc import Sequence

import numpy as np

from lifelong_core.design.method.schema import Confidence
from lifelong_core.design.recommendation.document import DecidedBy
from lifelong_core.design.recommendation.wording import (
    CONFIDENCE_WORDS,
    DECIDED_BY,
    DIRECTIONS,
    THRESHOLD_RELATIONS,
    format_distinct,
)
from lifelong_core.design.validation.acceptance import AcceptanceOutcome
from lifelong_core.design.validation.values.calibration import Agreement
from lifelong_core.design.validation.values.metric_value import (
    CustomValue,
    EstimatedValue,
    MetricValue,
    Number,
)

NOT_DEFINED = "not defined"
NUMBERED_CLASS = re.compile(r"\b(?:class \d{1,6}(?:, \d{1,6})*|classes \d{1,6}(?:, \d{1,6})* and \d{1,6})\b")
LONGEST_WORD = 20
RESOLUTION = 1e-9
"""Less than any set of samples can tell from 0: rounding errors"""


def number(value: Number) -> str:
    """A number with three decimals, or three digits if it is small; None is "not defined".

    Examples:
        >>> [number(value) for value in (0.91234, 0.00123456, 0.0000123456, 12345.6, math.inf, None)]
        ['0.912', '0.00123', '0.000012', '12,346', '∞', 'not defined']
        >>> [number(value) for value in (0.0, 2.36e-15, -1e-14)]
        ['0', '0', '0']
    """
    if value is None or math.isnan(value):
        return NOT_DEFINED
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    size = abs(value)
    if size < RESOLUTION:
        return "0"
    if size < 1e-4:
        return np.format_float_positional(value, precision=2, fractional=False, trim="-")
    return f"{value:.3g}" if size < 0.01 else f"{value:.3f}" if size < 1000 else f"{value:,.0f}"


def p_value(value: float) -> str:
    """A p-value with its relation.

    Examples:
        >>> [p_value(value) for value in (1.0, 0.0412, 0.00123, 1e-9)]
        ['= 1.000', '= 0.041', '= 0.00123', '< 0.0001']
    """
    return "< 0.0001" if value < 1e-4 else f"= {number(value)}"


def calibrated_in_words(value: EstimatedValue) -> str | None:
    """What perfectly calibrated predictions have, beside a calibration error; None for other metrics."""
    found = value.calibrated
    if found is None:
        return None
    excess = "0" if found.excess == 0 else f"{'+' if found.excess > 0 else '-'}{number(abs(found.excess))}"
    return f"{number(found.mean)} (95 % below {number(found.high)}), excess {excess}"


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


def without_rounding_error(value: float) -> float:
    """The number, or 0 where it is a rounding error.

    Examples:
        >>> without_rounding_error(-1e-14), without_rounding_error(-0.0), without_rounding_error(0.25)
        (0.0, 0.0, 0.25)
    """
    return 0.0 if abs(value) < RESOLUTION else value


def signed(value: float) -> str:
    """A difference with its sign and three decimals; a rounded 0 has no sign.

    Examples:
        >>> signed(0.0204), signed(-0.0196), signed(-0.0004)
        ('+0.020', '-0.020', '0.000')
    """
    text = f"{value:+.3f}"
    return text[1:] if float(text) == 0 else text


def exact(value: Number) -> str:
    """A number as machines read it, 0 for rounding errors; empty if it is not defined.

    Examples:
        >>> exact(0.1), exact(1.08e-14), exact(None)
        ('0.1', '0.0', '')
    """
    return "" if value is None or math.isnan(value) else repr(without_rounding_error(value))


def format_count(count: int, singular: str, plural: str | None = None) -> str:
    """A count with its noun.

    Examples:
        >>> format_count(1, "class", "classes"), format_count(2400, "sample")
        ('1 class', '2,400 samples')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def shorten(text: str, most: int = 30) -> str:
    """A text of at most `most` characters.

    Examples:
        >>> shorten("a very long name of a class", most=12)
        'a very long…'
    """
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def whole(text: str) -> str:
    """The CSS class of a table cell that keeps its words whole, if they are short enough."""
    return "whole" if max(map(len, text.split()), default=0) <= LONGEST_WORD else ""


def side_by_side(values: Sequence[Number]) -> list[str]:
    """Numbers of a column, with up to seven decimals to tell different ones apart.

    Examples:
        >>> side_by_side([0.99312, 0.99278, 0.5]), side_by_side([0.5, 0.5])
        (['0.9931', '0.9928', '0.5000'], ['0.500', '0.500'])
        >>> side_by_side([0.5, -1e-14, 0.0])
        ['0.500', '0', '0']
    """
    values = [None if value is None else without_rounding_error(value) for value in values]
    texts = [number(value) for value in values]
    for places in range(4, 8):
        if len(set(texts)) == len(set(values)):
            break
        texts = [number(value) if value is None else f"{value:.{places}f}" for value in values]
    return texts


def name_classes(text: str, class_names: Sequence[str]) -> str:
    """A sentence with the names of classes in place of their numbers.

    Examples:
        >>> name_classes("no reference sample of class 0, 2", ["healthy", "sick", "dead"])
        'no reference sample of class healthy, dead'
        >>> name_classes("mixes of classes 0 and 2 look alike", ["healthy", "sick", "dead"])
        'mixes of classes healthy and dead look alike'
        >>> name_classes("only 3 cases of class 1.", ["class 0", "class 1"])
        'only 3 cases of class 1.'
    """

    def names(found: re.Match[str]) -> str:
        numbers = [int(index) for index in re.findall(r"\d+", found[0])]
        if any(k >= len(class_names) or class_names[k] == f"class {k}" for k in numbers):
            return found[0]
        return re.sub(r"\d+", lambda index: class_names[int(index[0])], found[0])

    return NUMBERED_CLASS.sub(names, text)


def range_of(value: MetricValue | CustomValue) -> str:
    """The range of a metric, open at an infinite end."""
    low, high = value.range
    left = "(-∞" if low is None else f"[{low:.3g}"
    return f"{left}, " + ("∞)" if high is None else f"{high:.3g}]")


def better(orientation: str) -> str:
    """Which values of a metric are better, with an arrow."""
    return "↑ higher" if orientation == "up" else "↓ lower"


def direction(orientation: str) -> str:
    """Which values of a metric are better, as a sentence without its full stop."""
    return DIRECTIONS[orientation].capitalize()


def of(value: EstimatedValue, class_names: Sequence[str]) -> str:
    """The class that a value belongs to, or how it covers all classes."""
    if value.class_index is not None:
        return class_names[value.class_index]
    names = {"mean": "mean of the classes", "weighted_mean": "weighted mean of the classes"}
    return names.get(value.value_of, "all classes")


def interval_in_words(value: EstimatedValue) -> str:
    """Estimate and interval in one line."""
    if math.isnan(value.number("estimate")):
        return NOT_DEFINED
    if not value.has_interval:
        return f"{number(value.number('estimate'))} (no interval)"
    ends = f"{number(value.number('low'))} to {number(value.number('high'))}"
    return f"{number(value.number('estimate'))} ({ends})"


def agreement_in_words(value: Agreement) -> str:
    """Calibration slope or O:E with its interval in one line.

    Examples:
        >>> agreement_in_words(Agreement(estimate=0.8, low=0.7, high=0.9))
        '0.800 (0.700 to 0.900)'
        >>> agreement_in_words(Agreement(estimate=0.8, low=None, high=None))
        '0.800 (no interval)'
    """
    if value.estimate is None:
        return NOT_DEFINED
    if value.low is None or value.high is None:
        return f"{number(value.estimate)} (no interval)"
    return f"{number(value.estimate)} ({number(value.low)} to {number(value.high)})"


def missing_reason(value: EstimatedValue) -> str | None:
    """The reason for a missing value or interval, as the end of a sentence; None if nothing is missing.

    Examples:
        >>> single = EstimatedValue(
        ...     label="AC", value_of="all_classes", estimate=1.0, low=None, high=None, reason=None, method="bca",
        ...     replicates=9, notes=("No interval: one case.",),
        ... )
        >>> missing_reason(single)
        ': no interval: one case.'
    """
    if math.isnan(value.number("estimate")):
        return f" is not defined: {value.reason}."
    return None if value.has_interval else f": {value.notes[-1][0].lower()}{value.notes[-1][1:]}"


def threshold_text(outcome: AcceptanceOutcome, orientation: str) -> str:
    """The condition of an acceptance threshold."""
    by = "the estimate" if outcome.threshold.by == "estimate" else "the worse end of the interval"
    return f"{THRESHOLD_RELATIONS[orientation]} {_compared(outcome)[1]}, by {by}"


def compared_text(outcome: AcceptanceOutcome) -> str:
    """The value that was compared with a threshold, with enough digits to tell the two apart."""
    return _compared(outcome)[0]


def _compared(outcome: AcceptanceOutcome) -> tuple[str, str]:
    threshold = outcome.threshold.value
    if outcome.value is None:
        return NOT_DEFINED if outcome.passed is None else "infinite", f"{threshold:g}"
    return format_distinct(outcome.value, threshold)


def definition(number: str) -> str:
    """The source of a metric's definition."""
    return f"thesis Def. {number}" if number[0].isdigit() else number


def decided_by(guide_decided_by: DecidedBy) -> str:
    """Texts for the ways in which a guide is decided."""
    return DECIDED_BY[guide_decided_by]


def confidence_text(confidence: Confidence) -> str:
    """The confidence of a step."""
    return CONFIDENCE_WORDS[confidence]


def embed_json(document: str) -> str:
    """A JSON document for a script element, escaped so that it cannot end the element.

    Examples:
        >>> embed_json('{"name": "</script>"}')
        '{"name": "\\\\u003c/script\\\\u003e"}'
        >>> import json
        >>> json.loads(embed_json('{"name": "</script>"}'))
        {'name': '</script>'}
    """
    return document.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
