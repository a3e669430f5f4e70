"""The problem fingerprint: the answers about a classification problem."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeAlias, cast

import numpy as np
from pydantic import AliasChoices, Field, StrictBool, StrictInt, StringConstraints, field_validator

from lifelong_core.decision_rules.rules import TargetMetric
from lifelong_core.values.arrays import LARGEST_NUMBER, PREVALENCE_TOLERANCE
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.validation_errors import suggest

SCHEMA_VERSION = 1

Answer: TypeAlias = bool | str
Answers: TypeAlias = Mapping[str, Answer | None]
"""Answers that conditions read, by field; None, or no entry, for a question without an answer."""

MOST_CLASSES = 1000
"""Costs have a number for each pair of classes: for more classes they exceed pages, messages and cycles."""

YesNo: TypeAlias = StrictBool | None
Weight = Annotated[float, Field(ge=0, le=LARGEST_NUMBER, strict=True)]
Cost = Annotated[float, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER, strict=True)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]


def _item(name: str, *ids: str, **limits: Any) -> Any:
    return Field(default=None, validation_alias=AliasChoices(name, *ids), **limits)


class ProblemFingerprint(FrozenDocument):
    """The answers about a classification problem; None for questions without an answer.

    Every field is also read under its item of the source: `FP2.6` is `decision_rule`. `next_questions` gives the
    questions of the fields, `contradictions` the answers that contradict each other.

    Examples:
        >>> fingerprint = ProblemFingerprint(number_of_classes=2).with_answer("FP2.6", "argmax")
        >>> fingerprint.decision_rule
        'argmax'
        >>> fingerprint.with_answer("decision_rule", None).decision_rule is None
        True
        >>> ProblemFingerprint.from_json(fingerprint.to_json()) == fingerprint
        True
        >>> fingerprint.with_answer("decision_rule", "majority")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        lifelong_core.values.errors.InvalidInputError: decision_rule: expected ... or 'none', got 'majority'.
    """

    schema_version: Literal[1] = SCHEMA_VERSION

    number_of_classes: StrictInt | None = _item("number_of_classes", "N_CLASSES", ge=2, le=MOST_CLASSES)
    class_scores_available: YesNo = _item("class_scores_available", "FP5.1")
    decision_rule: Literal["target_value", "optimization", "argmax", "cost_benefit", "none"] | None = _item(
        "decision_rule", "FP2.6"
    )
    target_class: StrictInt | None = _item("target_class", "FP2.6.target_class", ge=0)
    target_metric: TargetMetric | None = _item("target_metric", "FP2.6.target_metric")
    target_value: Annotated[float, Field(gt=0, le=1, strict=True)] | None = _item(
        "target_value", "FP2.6.target_value"
    )
    optimised_metric: Literal["F_beta", "LR+", "BA", "MCC", "AC", "EC"] | None = _item(
        "optimised_metric", "FP2.6.optimised_metric"
    )
    unequal_severity: YesNo = _item("unequal_severity", "FP2.5.2")
    costs_available: YesNo = _item("costs_available", "FP2.5.4")
    threshold_perspective: Literal["risk_threshold", "explicit_costs"] | None = _item(
        "threshold_perspective", "DG3.2.perspective"
    )
    risk_threshold: Annotated[float, Field(gt=0, lt=1, strict=True)] | None = _item(
        "risk_threshold", "DG3.2.risk_threshold"
    )
    threshold_range: YesNo = _item("threshold_range", "DG3.2.threshold_range")
    costs: tuple[tuple[Cost, ...], ...] | None = _item("costs", "FP2.5.4.costs", min_length=2)
    unequal_interest: YesNo = _item("unequal_interest", "FP2.5.1")
    importance_mismatch: YesNo = _item("importance_mismatch", "FP2.5.3")
    class_weights: tuple[Weight, ...] | None = _item("class_weights", "FP2.5.1.class_weights", min_length=2)
    prevalences_representative: YesNo = _item("prevalences_representative", "FP4.2")
    class_contribution: Literal["equal", "target_prevalences"] | None = _item(
        "class_contribution", "DG2.2.class_contribution"
    )
    target_prevalences_known: YesNo = _item("target_prevalences_known", "FP4.2.target_prevalences_known")
    target_prevalences: tuple[Share, ...] | None = _item(
        "target_prevalences", "FP4.2.target_prevalences", min_length=2
    )
    assumed_prevalences: Literal["balanced", "test_data"] | None = _item(
        "assumed_prevalences", "FP4.2.assumed_prevalences"
    )
    class_imbalance: YesNo = _item("class_imbalance", "FP4.1")
    imbalance_compensation: YesNo = _item("imbalance_compensation", "FP2.5.5")
    predictive_values: Literal["important", "unimportant", "unclear"] | None = _item(
        "predictive_values", "FP2.5.5.predictive_values"
    )
    equal_class_contribution: YesNo = _item("equal_class_contribution", "DG2.3.equal_class_contribution")
    worse_error: Literal["missed_case", "false_alarm", "neither"] | None = _item(
        "worse_error", "DG3.5.worse_error"
    )
    calibration_assessment: YesNo = _item("calibration_assessment", "FP2.7.1")
    calibration_comparison: Literal["none", "U1", "U2", "U3"] | None = _item(
        "calibration_comparison", "FP2.7.2"
    )
    ranking_preserving: YesNo = _item("ranking_preserving", "DG5.2.ranking_preserving")
    discrimination_effects: YesNo = _item("discrimination_effects", "DG5.2.discrimination_effects")
    output_interpretation: Literal["none", "calibration_only", "joint"] | None = _item(
        "output_interpretation", "FP2.7.3"
    )
    rare_events: YesNo = _item("rare_events", "DG5.3.rare_events")
    top_label_only: YesNo = _item("top_label_only", "DG5.4.top_label_only")
    dependent_cases: YesNo = _item("dependent_cases", "FP4.3", "FP4.5")
    grouping_variable: Name | None = _item("grouping_variable", "FP4.3.grouping_variable")
    invalid_outputs: YesNo = _item("invalid_outputs", "FP5.3")

    @field_validator("costs")
    @classmethod
    def _rows_alike(cls, costs: tuple[tuple[float, ...], ...] | None) -> tuple[tuple[float, ...], ...] | None:
        if costs is not None and len({len(row) for row in costs}) != 1:
            raise ValueError("every row needs the same number of columns")
        return costs

    @field_validator("class_weights")
    @classmethod
    def _some_weight(cls, weights: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if weights is not None and max(weights) == 0:
            raise ValueError("at least one class must have a weight above 0")
        return weights

    @field_validator("target_prevalences")
    @classmethod
    def _whole_population(cls, shares: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if shares is not None and abs(sum(shares) - 1) > PREVALENCE_TOLERANCE:
            raise ValueError(f"the shares of all classes must sum to 1, these sum to {sum(shares):.7g}")
        return shares

    def with_answer(self, item: str, value: object) -> Self:
        """Return the fingerprint with an answer added, changed or withdrawn.

        Args:
            item: the field, or the item of the source, FP2.6 for instance.
            value: the answer; None withdraws it, and leaves all others as they are.

        Raises:
            InvalidInputError: no such item, or a value that it cannot have.
        """
        return self.with_answers({item: value})

    def with_answers(self, answers: Mapping[str, object]) -> Self:
        """Return the fingerprint with several answers changed at once; see `with_answer`.

        Raises:
            InvalidInputError: no such item, or a value that it cannot have.
        """
        changed = {field: _plain(value) for field, value in by_field(answers).items()}
        return self.from_document({**dict(self), **changed})

    def without(self, field: str) -> Self:
        """Return the fingerprint without an answer, as `with_answer(field, None)`, but without new checks."""
        return self.model_copy(update={field: None})

    def answers(self) -> Answers:
        """The answers as conditions read them: by field, the number of classes as `binary` or `multiclass`."""
        values = {field: getattr(self, field) for field in FIELDS}
        count = self.number_of_classes
        values["number_of_classes"] = None if count is None else "binary" if count == 2 else "multiclass"
        return MappingProxyType(values)

    def class_labels(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """The names of the classes, else their numbers; empty while their number is unknown."""
        return tuple(names or (f"class {index}" for index in range(self.number_of_classes or 0)))

    def answered_fields(self) -> tuple[str, ...]:
        """The fields that are answered, in the order of the interview."""
        return tuple(field for field in FIELDS if getattr(self, field) is not None)


def _plain(value: object) -> object:
    """Arrays as lists, everything else as it is."""
    array = cast("np.ndarray[Any, Any]", value)
    return array.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _names(field: str) -> tuple[str, ...]:
    alias = ProblemFingerprint.model_fields[field].validation_alias
    return tuple(str(name) for name in alias.choices) if isinstance(alias, AliasChoices) else (field,)


FIELDS: tuple[str, ...] = tuple(name for name in ProblemFingerprint.model_fields if name != "schema_version")
"""The fields that can be answered, in the order of the interview."""

ITEMS: Mapping[str, str] = MappingProxyType({name: field for field in FIELDS for name in _names(field)})
"""Every name of an item, the source's among them -> its field."""


def field_of(item: str) -> str:
    """The field of an item of the source; a field is returned as it is.

    Raises:
        InvalidInputError: no such item.

    Examples:
        >>> field_of("FP2.6"), field_of("decision_rule")
        ('decision_rule', 'decision_rule')
    """
    if item in ITEMS:
        return ITEMS[item]
    hint = suggest(item, list(ITEMS)) or "Items are named like FP2.6 or decision_rule."
    raise InvalidInputError(f"there is no item {item[:80]!r}.", field=item[:80] or "item", hint=hint)


def by_field(answers: Mapping[str, object]) -> dict[str, object]:
    """Answers by field, however their items are named.

    Raises:
        InvalidInputError: no such item, or two answers to one question.

    Examples:
        >>> by_field({"FP2.6": "argmax"})
        {'decision_rule': 'argmax'}
    """
    items: dict[str, str] = {}
    for item in answers:
        field = field_of(item)
        if field in items:
            raise InvalidInputError(
                f"{items[field]} and {item} are the same question.", field=item, hint="Answer it once."
            )
        items[field] = item
    return {field: answers[item] for field, item in items.items()}
