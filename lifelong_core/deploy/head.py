"""The post-processing head: from logits to probabilities, decisions and expected costs."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.decision_rules.decide import CutOff, LeastCost, executed_rule, expected_costs
from lifelong_core.decision_rules.rules import (
    BayesRule,
    DecisionRule,
    check_rule,
    rule_document,
    rule_from_document,
)
from lifelong_core.deploy.checks import as_class_names, as_temperature
from lifelong_core.deploy.documents import canonical, parse_document, take_fields
from lifelong_core.deploy.numerics.newton import affine_scores
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import (
    Floats,
    Integers,
    as_costs,
    as_logits,
    as_number,
    as_parameter,
    as_prevalence,
    as_probabilities,
    read_only,
    softmax,
)
from lifelong_core.values.errors import InvalidInputError

SCHEMA_VERSION = 2
_BAYES_VERSION = 1
"""Heads of the Bayes rule keep the document, and so the digest, that they had before there were other rules."""

ABSTAIN = "abstain"
"""Name of the decision to abstain, which follows the classes where the costs have it."""


@dataclass(frozen=True, eq=False)
class HeadOutput(ArrayValue):
    """Output of a head for N logits. Each row depends on its own logits only, to the last bit."""

    probabilities: Floats
    """shape (N, C), calibrated for the prevalence that the head assumes"""
    decisions: Integers
    """shape (N,), 0..D-1"""
    expected_costs: Floats
    """shape (N, D), expected cost of each decision"""


@dataclass(frozen=True, eq=False)
class PostProcessingHead(ArrayValue):
    """Affine scaling, softmax and the decision rule, by default that of least expected cost (thesis Def. 6.8 and 6.9).

    Examples:
        >>> head = PostProcessingHead(2.0, [0.0, 0.0], [[0, 1], [5, 0]], [0.5, 0.5], ("benign", "malignant"))
        >>> output = head.apply([[2.0, 0.0]])
        >>> output.probabilities.round(3).tolist(), output.decisions.tolist()
        ([[0.731, 0.269]], [1])
        >>> PostProcessingHead.from_json(head.to_json()) == head
        True
    """

    temperature: float | Floats
    """positive; one number, or shape (C,)"""
    bias: Floats
    """shape (C,)"""
    costs: Floats
    """shape (C, D), D = C or C + 1 (abstain): cost of deciding k when j is true"""
    assumed_prevalence: Floats
    """shape (C,), the prevalence for which the probabilities are calibrated"""
    class_names: tuple[str, ...]
    """C different names"""
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """JSON values that describe the origin of the head; they affect neither its output nor its digest"""
    decision_rule: DecisionRule = field(default_factory=BayesRule)
    cut_off: float | None = None
    """in [0, 1], of the probability of the rule's class; None unless the rule's cut-off was searched on the calibration
    set"""

    def __post_init__(self) -> None:
        """Check and freeze all fields.

        Raises:
            InvalidInputError: a shape or a value does not fit; the message names the field.
        """
        names = as_class_names(self.class_names)
        classes = len(names)
        bias = as_parameter(self.bias, field="bias")
        if bias.shape != (classes,):
            raise InvalidInputError(
                f"expected shape ({classes},), one per class name, got {bias.shape}.", field="bias"
            )
        costs = as_costs(as_parameter(self.costs, field="costs"), classes=classes)
        # Only here a digest could depend on rounding: dividing by a sum that is 1 already must change
        # nothing.
        assumed = as_parameter(self.assumed_prevalence, field="assumed_prevalence")
        normalised = as_prevalence(assumed, classes=classes, field="assumed_prevalence")
        if abs(assumed.sum() - 1) <= classes * np.finfo(np.float64).eps:
            normalised = assumed
        object.__setattr__(self, "temperature", as_temperature(self.temperature, classes=classes))
        # Adding zero turns -0.0 into 0.0, which computes the same and so must have the same digest.
        object.__setattr__(self, "bias", read_only(bias + 0.0))
        object.__setattr__(self, "costs", read_only(costs + 0.0))
        object.__setattr__(self, "assumed_prevalence", read_only(normalised + 0.0))
        object.__setattr__(self, "class_names", names)
        object.__setattr__(self, "provenance", _provenance(self.provenance))
        check_rule(self.decision_rule, classes)
        object.__setattr__(self, "cut_off", _cut_off(self.cut_off))
        # Here and not at the first use, so that a cut-off that is missing fails at once.
        self.executed_rule  # noqa: B018

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return len(self.class_names)

    @property
    def decision_names(self) -> tuple[str, ...]:
        """Names of the D decisions: the classes, and `abstain` for an extra column of the costs."""
        return (*self.class_names, ABSTAIN)[: self.costs.shape[1]]

    @cached_property
    def executed_rule(self) -> LeastCost | CutOff:
        """The decision rule with its costs or its cut-off."""
        return executed_rule(self.decision_rule, self.costs, self.assumed_prevalence, self.cut_off)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over all fields but the provenance."""
        document = self.to_document()
        del document["provenance"]
        return hashlib.sha256(canonical(document).encode()).hexdigest()

    def apply(self, logits: ArrayLike) -> HeadOutput:
        """Probabilities, decisions and expected costs of N samples.

        Args:
            logits: shape (N, C); taken as float32, the precision in which they are logged.

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        rows = as_logits(logits, classes=self.classes)
        probabilities = softmax(affine_scores(rows, self.temperature, self.bias))
        return HeadOutput(
            probabilities=read_only(probabilities),
            decisions=read_only(self.executed_rule.decide(probabilities)),
            expected_costs=read_only(expected_costs(probabilities, self.costs)),
        )

    def to_document(self) -> dict[str, Any]:
        """The head as JSON values; every number survives the round trip exactly."""
        document = {
            "schema_version": _BAYES_VERSION,
            "temperature": np.asarray(self.temperature).tolist(),
            "bias": self.bias.tolist(),
            "costs": self.costs.tolist(),
            "assumed_prevalence": self.assumed_prevalence.tolist(),
            "class_names": list(self.class_names),
            "provenance": json.loads(json.dumps(dict(self.provenance))),
        }
        if isinstance(self.decision_rule, BayesRule):
            return document
        rule = {"decision_rule": rule_document(self.decision_rule), "cut_off": self.cut_off}
        return {**document, **rule, "schema_version": SCHEMA_VERSION}

    def to_json(self) -> str:
        """`to_document` as a string, equal for equal heads."""
        return canonical(self.to_document())

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing, unknown or has an illegal value; the message names it.
        """
        required = ("temperature", "bias", "costs", "assumed_prevalence", "class_names")
        version = document.get("schema_version") if isinstance(cast("object", document), Mapping) else None
        if version != SCHEMA_VERSION:
            return cls(**take_fields(document, _BAYES_VERSION, required=required, optional=("provenance",)))
        ruled = (*required, "decision_rule", "cut_off")
        found = take_fields(document, SCHEMA_VERSION, required=ruled, optional=("provenance",))
        found["decision_rule"] = rule_from_document(found["decision_rule"])
        return cls(**found)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Raises:
            InvalidInputError: not JSON, or a field is missing, unknown or has an illegal value.
        """
        return cls.from_document(parse_document(text, field="head"))


def _cut_off(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool):
        raise InvalidInputError("expected a number, not true or false.", field="cut_off")
    number = as_number(cast("ArrayLike", value), field="cut_off")
    if not 0 <= number <= 1:
        raise InvalidInputError("expected a probability from 0 to 1.", field="cut_off")
    return number


def _provenance(values: Any) -> Mapping[str, Any]:
    try:
        text = json.dumps(dict(values), allow_nan=False, ensure_ascii=False)
        # A lone surrogate is a str, but no text: it could never be sent again.
        copied = json.loads(text.encode())
    except (TypeError, ValueError) as error:
        raise InvalidInputError("expected an object of JSON values.", field="provenance") from error
    return MappingProxyType(copied)


def bayes_decisions(probabilities: ArrayLike, costs: ArrayLike) -> Integers:
    """The decision with the smallest expected cost, for each sample (thesis Def. 6.9).

    It is argmin_k sum_j costs[j, k] * probabilities[j], and the first one in a tie. Sums that differ by no more than
    their rounding error count as a tie. With 0-1 costs nothing is rounded: the rule equals argmax, bit by bit.

    Args:
        probabilities: shape (N, C), rows on the simplex.
        costs: shape (C, D), D = C or C + 1 (abstain): cost of deciding k when j is true.

    Returns:
        Decisions of shape (N,), 0..D-1.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> bayes_decisions([[0.8, 0.2], [0.5, 0.5]], [[0, 1], [1, 0]]).tolist()
        [0, 0]
        >>> bayes_decisions([[0.8, 0.2]], [[0, 1], [10, 0]]).tolist()  # missing class 1 is dear
        [1]
        >>> bayes_decisions([[0.6, 0.4]], [[0, 1, 0.3], [1, 0, 0.3]]).tolist()  # abstaining costs 0.3
        [2]
    """
    rows = as_probabilities(probabilities)
    return LeastCost.of(as_costs(costs, classes=rows.shape[1])).decide(rows)
