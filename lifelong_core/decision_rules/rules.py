"""Decision rules as values (thesis section 4.1.3, FP2.6), their targets and their JSON documents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import isnan
from typing import Any, ClassVar, Literal, TypeAlias, TypeGuard, cast, get_args

import numpy as np

from lifelong_core.values.arrays import Floats, Mask
from lifelong_core.values.errors import InvalidInputError

TargetMetric: TypeAlias = Literal["TPR", "TNR", "PPV", "NPV", "PPR"]
"""sensitivity, specificity, precision, negative predictive value, share of positive decisions"""
OptimisableMetric: TypeAlias = Literal["F_beta", "BA", "MCC", "AC", "EC"]
TARGET_METRICS: tuple[TargetMetric, ...] = get_args(TargetMetric)
OPTIMISABLE_METRICS: tuple[OptimisableMetric, ...] = get_args(OptimisableMetric)
_LARGEST_BETA = 1e3
_SMALLEST_SHARE = 1e-6
_LARGEST_SHOWN = 1e15


_ROUNDING = 1e-12
"""Rounding error of sums of weights"""

_REQUIRED: Mapping[str, Sequence[str]] = {
    "cut_offs": ("thresholds",),
    "target_value": ("metric", "value"),
    "optimised_metric": ("metric",),
}


@dataclass(frozen=True)
class BayesRule:
    """The decision of least expected cost, by the costs of the head (thesis Def. 6.9)."""

    kind: ClassVar = "bayes"


@dataclass(frozen=True)
class Argmax:
    """The most probable class, whatever the costs are (thesis Def. 2.9). It never abstains."""

    kind: ClassVar = "argmax"


@dataclass(frozen=True)
class CutOffs:
    """Fixed cut-offs of the calibrated probabilities: the class with the largest probability over cut-off.

    In a binary task one number t is enough: class 1 is decided where its probability is at least t, which is the Bayes
    rule for costs t of a false positive and 1 - t of a false negative (thesis Remark 2.58).

    Examples:
        >>> CutOffs(0.1).thresholds
        (0.1,)
        >>> CutOffs([0.5, 0.2, 0.5]).thresholds
        (0.5, 0.2, 0.5)
    """

    thresholds: tuple[float, ...]
    """one number in a binary task, or C; each from 1e-6 to 1 - 1e-6"""
    kind: ClassVar = "cut_offs"

    def __init__(self, thresholds: float | Sequence[float]) -> None:
        """Check the cut-offs.

        Raises:
            InvalidInputError: not shares.
        """
        given = cast("object", thresholds)
        numbers = list(cast("Iterable[object]", given)) if isinstance(given, Iterable) else [given]
        if not numbers:
            raise InvalidInputError("expected one number, or one per class.", field="thresholds")
        object.__setattr__(
            self, "thresholds", tuple(_as_share(number, field="thresholds") for number in numbers)
        )


@dataclass(frozen=True)
class Target:
    """A value that a metric has to reach: at most for the share of positive decisions (PPR), at least for the others.

    Examples:
        >>> str(Target("TPR", 0.9)), str(Target("PPR", 0.2))
        ('at least 0.9', 'at most 0.2')
        >>> Target("PPR", 0.2).reaches(np.array([0.1, 0.2, 0.3, np.nan])).tolist()
        [True, True, False, False]
        >>> Target("PPR", 0.2).is_missed(0.25, 0.3), Target("TPR", 0.9).is_missed(0.85, 0.95)
        (True, False)
    """

    metric: str
    """TPR, TNR, PPV, NPV or PPR"""
    value: float

    def __str__(self) -> str:
        """The target as words."""
        return f"{'at most' if self.sign < 0 else 'at least'} {self.value:g}"

    @property
    def sign(self) -> float:
        """-1 where less of the metric is better, else 1."""
        return -1.0 if self.metric == "PPR" else 1.0

    def reaches(self, values: float | Floats) -> Mask:
        """Whether values of the metric, (...), are on the right side, but for rounding; undefined ones are not."""
        return np.asarray(self.sign * np.asarray(values) >= self.sign * self.value - _ROUNDING)

    def is_kept(self, low: float, high: float) -> bool:
        """Whether a whole interval of the metric is on the right side; not where an end is undefined."""
        worst = high if self.sign < 0 else low
        return not (isnan(low) or isnan(high)) and self.sign * worst >= self.sign * self.value

    def is_missed(self, low: float, high: float) -> bool:
        """Whether a whole interval of the metric is on the wrong side; not where an end is undefined."""
        best = low if self.sign < 0 else high
        return not (isnan(low) or isnan(high)) and self.sign * best < self.sign * self.value

    def progress(self, value: float) -> float:
        """The metric, higher is better, as far as the target; an undefined one counts as the target."""
        end = self.sign * self.value
        return end if isnan(value) else min(self.sign * value, end)


@dataclass(frozen=True)
class TargetValue:
    """The cut-off of one class's probability at which a metric reaches a value; of those, the best one.

    At least the value for sensitivity, specificity and predictive values, at most for the share of positive decisions.
    Best is the highest specificity for a target of sensitivity or negative predictive value, else the highest
    sensitivity (thesis section 4.2.2, DG3.1). With more than two classes the metric is that of the class against the
    rest; below the cut-off the most probable other class is decided.

    Examples:
        >>> TargetValue("TPR", 0.9)
        TargetValue(metric='TPR', value=0.9, positive_class=1)
    """

    metric: TargetMetric
    value: float
    """from 1e-6 to 1 - 1e-6"""
    positive_class: int = 1
    kind: ClassVar = "target_value"

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidInputError: a value does not fit; the message names the field.
        """
        _check_choice(self.metric, TARGET_METRICS, field="metric")
        object.__setattr__(self, "value", _as_share(self.value, field="value"))
        object.__setattr__(self, "positive_class", _as_class(self.positive_class))

    @property
    def target(self) -> Target:
        """What the rule demands of its metric."""
        return Target(self.metric, self.value)

    @property
    def objective(self) -> TargetMetric:
        """The metric that is best among the cut-offs that reach the target."""
        return "TNR" if self.metric in ("TPR", "NPV") else "TPR"


@dataclass(frozen=True)
class OptimisedMetric:
    """The decisions that make a metric best in the population (thesis section 4.1.3, FP2.6).

    For accuracy, balanced accuracy and expected cost the best decisions follow from calibrated probabilities and the
    prevalence (thesis Def. 6.9; Ferrer 2022). For F-beta and MCC the cut-off of one class's probability is searched on
    the calibration set; MCC is that of the binary task.
    """

    metric: OptimisableMetric
    beta: float = 1.0
    """of F_beta, weight of sensitivity over precision; positive"""
    positive_class: int = 1
    """class of F_beta"""
    kind: ClassVar = "optimised_metric"

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidInputError: a value does not fit; the message names the field.
        """
        _check_choice(self.metric, OPTIMISABLE_METRICS, field="metric")
        if not _is_number(self.beta) or not 1 / _LARGEST_BETA <= self.beta <= _LARGEST_BETA:
            raise InvalidInputError(
                f"expected a number from {1 / _LARGEST_BETA:g} to {_LARGEST_BETA:g}.", field="beta"
            )
        object.__setattr__(self, "beta", float(self.beta))
        object.__setattr__(self, "positive_class", _as_class(self.positive_class))

    @property
    def is_searched(self) -> bool:
        """Whether the best cut-off has to be searched on the calibration set."""
        return self.metric in ("F_beta", "MCC")


DecisionRule: TypeAlias = BayesRule | Argmax | CutOffs | TargetValue | OptimisedMetric
MetricRule: TypeAlias = TargetValue | OptimisedMetric
"""rules that name a metric"""
_KINDS: Mapping[str, type[DecisionRule]] = {
    rule.kind: rule for rule in (BayesRule, Argmax, CutOffs, TargetValue, OptimisedMetric)
}


def needs_cut_off(rule: DecisionRule) -> TypeGuard[MetricRule]:
    """Whether the rule's cut-off is searched on the calibration set."""
    return isinstance(rule, TargetValue) or (isinstance(rule, OptimisedMetric) and rule.is_searched)


def has_own_metric(rule: DecisionRule) -> TypeGuard[MetricRule]:
    """Whether a rule is judged by a metric other than the expected cost."""
    return needs_cut_off(rule) or (isinstance(rule, OptimisedMetric) and rule.metric == "BA")


def check_rule(rule: DecisionRule, classes: int) -> None:
    """Check that a rule fits a task with this number of classes.

    Raises:
        InvalidInputError: it does not.
    """
    if isinstance(rule, CutOffs) and len(rule.thresholds) not in ({1, 2} if classes == 2 else {classes}):
        raise InvalidInputError(
            f"expected {classes} cut-offs, one per class, got {len(rule.thresholds)}.",
            field="decision_rule.thresholds",
        )
    if isinstance(rule, TargetValue | OptimisedMetric) and rule.positive_class >= classes:
        raise InvalidInputError(
            f"there is no class {rule.positive_class}, the task has {classes}.",
            field="decision_rule.positive_class",
            hint=f"Give a class from 0 to {classes - 1}.",
        )
    if isinstance(rule, OptimisedMetric) and rule.metric == "MCC" and classes > 2:
        raise InvalidInputError(
            "the best decisions for MCC are known for two classes only.",
            field="decision_rule.metric",
            hint="Optimise BA, or F_beta of one class against the rest.",
        )


def rule_document(rule: DecisionRule) -> dict[str, Any]:
    """The rule as JSON values.

    Examples:
        >>> rule_document(TargetValue("PPV", 0.8))
        {'kind': 'target_value', 'metric': 'PPV', 'value': 0.8, 'positive_class': 1}
        >>> rule_document(CutOffs(0.1))
        {'kind': 'cut_offs', 'thresholds': [0.1]}
    """
    values = {"thresholds": list(rule.thresholds)} if isinstance(rule, CutOffs) else asdict(rule)
    return {"kind": rule.kind, **values}


def rule_from_document(document: object) -> DecisionRule:
    """Read what `rule_document` wrote.

    Raises:
        InvalidInputError: an unknown kind, or a field is missing, unknown or has an illegal value.

    Examples:
        >>> rule_from_document({"kind": "target_value", "metric": "TPR", "value": 0.9})
        TargetValue(metric='TPR', value=0.9, positive_class=1)
    """
    kinds = ", ".join(_KINDS)
    if not isinstance(document, Mapping):
        raise InvalidInputError(f"expected an object with kind, one of {kinds}.", field="decision_rule")
    values = dict(cast("Mapping[str, Any]", document))
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidInputError(f"expected one of {kinds}.", field="decision_rule.kind")
    rule, needed = _KINDS[kind], _REQUIRED.get(kind, ())
    known = {item.name for item in fields(rule)}
    for name in needed:
        if name not in values:
            raise InvalidInputError("this field is missing.", field=f"decision_rule.{name}")
    for name in values:
        if name not in known:
            raise InvalidInputError(f"{kind} has no such field.", field=f"decision_rule.{str(name)[:80]}")
    try:
        return rule(**values)
    except InvalidInputError as error:
        raise InvalidInputError(
            error.message, field=f"decision_rule.{error.field}", hint=error.hint
        ) from error


def _as_share(value: object, *, field: str) -> float:
    """A share that is neither 0 nor 1.

    Raises:
        InvalidInputError: it is not.
    """
    # Compared before the conversion: an integer may be too large for a float.
    if _is_number(value) and _SMALLEST_SHARE <= value <= 1 - _SMALLEST_SHARE:
        return float(value)
    raise InvalidInputError(
        f"expected a number from {_SMALLEST_SHARE:g} to 1 - {_SMALLEST_SHARE:g}, got {_shown(value)}.",
        field=field,
        hint="Give a share such as 0.9, not per cent.",
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, float | int) and not isinstance(value, bool)


def _shown(value: object) -> str:
    """A value in an error; an integer of thousands of digits has no text."""
    if _is_number(value) and abs(value) > _LARGEST_SHOWN:
        return "a larger one"
    return repr(value)[:40]


def _check_choice(value: object, choices: Sequence[str], *, field: str) -> None:
    if value not in choices:
        raise InvalidInputError(f"expected one of {', '.join(choices)}.", field=field)


def _as_class(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInputError("expected the index of a class, 0 or more.", field="positive_class")
    return value
