"""Rows of the tables of a report: answers, values, confusions and subgroups."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lifelong_core.design.interview.class_names import decision_names
from lifelong_core.design.interview.views import format_answer
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.recommendation.document import Advice, Recommendation, Step
from lifelong_core.design.report.basis import rests_on
from lifelong_core.design.report.words import (
    calibrated_in_words,
    compared_text,
    format_count,
    number,
    percent,
    threshold_text,
)
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.values.metric_value import MetricValue
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.declaration import MetricInfo

MOST_CLASSES = 12
"""classes whose values a table shows; of more, the worst are shown, and the rest can be unfolded"""
MOST_CONFUSED = 20
"""classes of a confusion matrix that is shown as a table"""
MOST_COPIED = 200
"""classes of a confusion matrix whose counts the page holds as text"""


@dataclass(frozen=True)
class AnswerRow:
    """An answer of the interview in words."""

    item: str
    """of the method, such as FP2.6, by which warnings and reasons name it"""
    question: str
    text: str
    columns: tuple[str, ...] = ()
    matrix: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """class and numbers of each row, if the answer is a matrix of few classes"""


@dataclass(frozen=True)
class ValueRow:
    """A value with remarks on it."""

    value: MetricValue
    rests_on: str
    """costs and class shares"""
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class StepTable:
    """The values of the metrics that a subprocess recommends."""

    step: Step
    rows: tuple[ValueRow, ...]
    """those to look at first"""
    every_row: tuple[ValueRow, ...]
    """all of them; empty where `rows` holds them already"""
    cards: tuple[MetricInfo, ...]


@dataclass(frozen=True)
class AdviceRow:
    """A piece of advice with the answers that it refers to."""

    advice: Advice
    values: str


@dataclass(frozen=True)
class ConfusedPair:
    """The number of samples of one class that are decided as another."""

    reference: str
    decision: str
    count: int
    share: float | None


def answer_rows(recommendation: Recommendation, class_names: Sequence[str]) -> list[AnswerRow]:
    """The answers that a recommendation depends on, in the order of the interview."""
    method, fingerprint = load_method(), recommendation.fingerprint
    unused = {answer.item for answer in recommendation.unused}
    rows: list[AnswerRow] = []
    for field in fingerprint.answered_fields():
        if field in unused:
            continue
        question, value = method.question(field), getattr(fingerprint, field)
        if question.kind != "matrix":
            rows.append(
                AnswerRow(
                    question.id, question.question, format_answer(question, value, class_names=class_names)
                )
            )
        elif len(value) > MOST_CLASSES:
            rows.append(
                AnswerRow(
                    question.id, question.question, f"a matrix of {len(value)} by {len(value[0])} numbers"
                )
            )
        else:
            columns = decision_names(class_names, len(value[0]))
            matrix = tuple(zip(class_names, value, strict=False))
            rows.append(AnswerRow(question.id, question.question, "", columns, matrix))
    return rows


def step_tables(result: ValidationResult) -> list[StepTable]:
    """A table for each subprocess that recommends metrics."""
    return [step_table(result, step) for step in result.recommendation.steps]


def step_table(result: ValidationResult, step: Step) -> StepTable:
    """The values of one subprocess."""
    values = [value for value in result.values if step.subprocess in value.subprocesses]
    shown = to_look_at(values)
    return StepTable(
        step=step,
        rows=tuple(_value_row(result, value) for value in shown),
        every_row=tuple(_value_row(result, value) for value in values)
        if len(shown) < len(said_once(values))
        else (),
        cards=tuple(METRICS[acronym] for acronym in dict.fromkeys(value.metric for value in values)),
    )


def said_once(values: Iterable[MetricValue]) -> list[MetricValue]:
    """The values, but one for all where both of two classes have the value of their mean, as AUROC does."""
    by_label: dict[str, list[MetricValue]] = {}
    for value in values:
        by_label.setdefault(value.label, []).append(value)
    found: list[MetricValue] = []
    for own in by_label.values():
        first = own[0]
        is_same = len(own) == 3 and first.class_index is None and all(_are_equal(first, one) for one in own)
        found += [first.model_copy(update={"value_of": "all_classes"})] if is_same else own
    return found


def is_said_once(result: ValidationResult, label: str) -> bool:
    """Whether a metric of classes has one value for both of two."""
    own = [value for value in result.values if value.label == label]
    return len(said_once(own)) < len(own)


def _are_equal(first: MetricValue, second: MetricValue) -> bool:
    """Whether values and intervals are the same up to rounding errors."""
    pairs = [(first.number(bound), second.number(bound)) for bound in ("estimate", "low", "high")]
    return all(one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) for one, other in pairs)


def to_look_at(values: Iterable[MetricValue]) -> list[MetricValue]:
    """The summaries of all metrics, and of each metric the worst classes, in their order; see `said_once`."""
    by_label: dict[str, list[MetricValue]] = {}
    for value in said_once(values):
        by_label.setdefault(value.label, []).append(value)
    shown: list[MetricValue] = []
    for own in by_label.values():
        of_classes = [value for value in own if value.class_index is not None]
        kept = {id(value) for value in sorted(of_classes, key=_badness)[:MOST_CLASSES]}
        shown += [value for value in own if value.class_index is None or id(value) in kept]
    return shown


def _badness(value: MetricValue) -> float:
    """Undefined values first, then from bad to good."""
    estimate = value.number("estimate")
    if math.isnan(estimate):
        return -math.inf
    return estimate if value.orientation == "up" else -estimate


def _value_row(result: ValidationResult, value: MetricValue) -> ValueRow:
    remarks = [] if value.reason is None else [value.reason]
    for outcome in result.acceptance:
        threshold = outcome.threshold
        of_own = threshold.metric == value.label and (
            threshold.class_index == value.class_index
            or (threshold.class_index is None and _is_first(result, value))
            or (value.value_of == "all_classes" and METRICS[value.metric].is_per_class)
        )
        if of_own:
            mark = {True: "✓", False: "✗", None: "?"}[outcome.passed]
            remarks.append(
                f"{mark} Threshold, {threshold_text(outcome, value.orientation)}: {compared_text(outcome)}"
            )
    if value.cut_off is not None and value.cut_off.threshold is not None:
        cut = value.cut_off
        remarks.append(
            f"cut-off {number(cut.threshold)} for {cut.target_metric} = {cut.target_value:g}; "
            f"on these {format_count(cut.samples, 'sample')} it reaches {number(cut.reached)}"
        )
    if (calibrated := calibrated_in_words(value)) is not None:
        remarks.append(f"perfectly calibrated predictions have by chance {calibrated}")
    if value.standard_error is not None:
        remarks.append(f"of a random part of the samples: standard error {number(value.standard_error)}")
    return ValueRow(value, rests_on(result, value), (*remarks, *value.notes))


def _is_first(result: ValidationResult, value: MetricValue) -> bool:
    """Whether a value is the one that sums its metric up, or the only one."""
    return value.class_index == result.value(value.label).class_index


def advice_rows(recommendation: Recommendation, class_names: Sequence[str]) -> list[AdviceRow]:
    """The advice, with the answers that it refers to as text."""
    method = load_method()
    rows: list[AdviceRow] = []
    for advice in recommendation.advice:
        words = [
            f"{method.question(field).name}: "
            + format_answer(method.question(field), value, class_names=class_names)
            for field, value in advice.values.items()
        ]
        rows.append(AdviceRow(advice, "; ".join(words)))
    return rows


def most_confused(result: ValidationResult, most: int = 30) -> list[ConfusedPair]:
    """The most frequent errors."""
    names = result.class_names
    decisions = decision_names(names, len(result.confusion.counts[0]))
    errors = [
        ConfusedPair(names[i], decisions[j], count, result.confusion.shares[i][j])
        for i, row in enumerate(result.confusion.counts)
        for j, count in enumerate(row)
        if i != j and count
    ]
    return sorted(errors, key=lambda error: -error.count)[:most]


def confusion_text(result: ValidationResult) -> str:
    """The counts as tab-separated text for spreadsheets."""
    names = [_one_line(name) for name in result.class_names]
    counts = result.confusion.counts
    lines = ["\t".join(["true \\ decided", *decision_names(names, len(counts[0]))])]
    lines += ["\t".join([name, *map(str, row)]) for name, row in zip(names, counts, strict=True)]
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def confusion_cells(result: ValidationResult, levels: int = 5) -> list[str]:
    """Squares of a heat map, one SVG path for each level of the row's share; empty cells are left out."""
    paths = [""] * levels
    for i, row in enumerate(result.confusion.shares):
        for j, share in enumerate(row):
            if share:
                paths[min(math.ceil(share * levels), levels) - 1] += f"M{j} {i}h1v1h-1z"
    return paths


def class_rows(result: ValidationResult) -> list[tuple[str, int, str, str | None]]:
    """Name, number of samples, share in the data and share in use of each class."""
    targets = result.target_prevalences
    return [
        (
            name,
            round(result.prevalence[k] * result.samples),
            percent(result.prevalence[k]),
            None if targets is None else percent(targets[k]),
        )
        for k, name in enumerate(result.class_names)
    ]
