"""Logged decisions that another head makes otherwise, and their expected cost."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.decision_rules.rules import BayesRule
from lifelong_core.deploy.documents import take_fields
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Integers, as_labels, as_logits, read_only
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True)
class DecisionChange:
    """Number and cost of the decisions that a head changes from one given decision to another."""

    decision: int
    """the logged decision"""
    new_decision: int
    count: int
    expected_cost: float
    """sum over these decisions, in the unit of the costs"""


@dataclass(frozen=True)
class AffectedCounts:
    """Counts of the logged decisions that a head makes otherwise; counts of parts of the log add up.

    Examples:
        >>> one = AffectedCounts(10, (DecisionChange(0, 1, count=2, expected_cost=1.5),))
        >>> both = one + one
        >>> both.predictions, both.affected, both.share, both.expected_cost, both.mean_cost
        (20, 4, 0.2, 3.0, 0.75)
    """

    predictions: int = 0
    """decisions compared"""
    changes: tuple[DecisionChange, ...] = ()
    """each pair of decisions at most once, most costly first"""

    @property
    def affected(self) -> int:
        """Number of decisions that differ."""
        return sum(change.count for change in self.changes)

    @property
    def share(self) -> float:
        """Share of the decisions that differ, 0 to 1; 0 without decisions."""
        return self.affected / self.predictions if self.predictions else 0.0

    @property
    def expected_cost(self) -> float:
        """Sum of the expected costs of the decisions that differ."""
        return sum((change.expected_cost for change in self.changes), 0.0)

    @property
    def mean_cost(self) -> float:
        """Expected cost of a decision that differs; 0 where none does."""
        return self.expected_cost / self.affected if self.affected else 0.0

    def __add__(self, other: "AffectedCounts") -> "AffectedCounts":
        """Both parts together."""
        return AffectedCounts(self.predictions + other.predictions, _merged((*self.changes, *other.changes)))

    def to_document(self) -> dict[str, Any]:
        """The counts as JSON values."""
        return {
            "schema_version": 1,
            "predictions": self.predictions,
            "changes": [asdict(change) for change in self.changes],
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing or unknown.
        """
        found = take_fields(document, 1, required=("predictions", "changes"))
        try:
            changes = tuple(DecisionChange(**change) for change in found["changes"])
        except TypeError as error:
            raise InvalidInputError("expected a list of changed decisions.", field="changes") from error
        return cls(found["predictions"], changes)


@dataclass(frozen=True, eq=False)
class AffectedDecisions(ArrayValue):
    """Logged decisions that a head makes otherwise; entry k of every array describes one of them."""

    predictions: int
    """decisions compared"""
    rows: Integers
    """shape (K,), ascending row indices of the decisions that differ"""
    decisions: Integers
    """shape (K,), the logged decisions"""
    new_decisions: Integers
    """shape (K,), the decisions of the head"""
    expected_costs: Floats
    """shape (K,), expected cost of the logged decision less that of the head's; negative only where the head's decision
    rule is another one than the least expected cost"""

    @property
    def counts(self) -> AffectedCounts:
        """Counts by logged decision and new decision."""
        pairs, place = np.unique(np.stack((self.decisions, self.new_decisions)), axis=1, return_inverse=True)
        counts = np.bincount(place.ravel(), minlength=pairs.shape[1])
        costs = np.bincount(place.ravel(), self.expected_costs, minlength=pairs.shape[1])
        parts = zip(*pairs.tolist(), counts.tolist(), costs.tolist(), strict=True)
        return AffectedCounts(self.predictions, _merged(DecisionChange(*part) for part in parts))


def find_affected(logits: ArrayLike, decisions: ArrayLike, head: PostProcessingHead) -> AffectedDecisions:
    """Compare logged decisions with the decisions of a head on the same logits.

    The cost of a difference is the expected cost of the logged decision less that of the head's decision, under the
    head's probabilities. By the Bayes rule it is never negative, because the head's decision has the smallest expected
    cost; a cost within rounding error of 0 is a tie. By another rule, a target sensitivity for instance, the head's
    decision may be the dearer one.

    Args:
        logits: shape (N, C), the logged logits (float32).
        decisions: shape (N,), the logged decisions of any heads, 0..D-1.
        head: the head to compare with, with D decisions.

    Raises:
        InvalidInputError: logits are not finite or have another number of classes, or a decision is not one of D.

    Examples:
        >>> head = PostProcessingHead(1.0, [0, 0], [[0, 1], [4, 0]], [0.5, 0.5], ("benign", "malignant"))
        >>> found = find_affected([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]], [0, 0, 1], head)
        >>> found.rows.tolist(), found.new_decisions.tolist(), found.expected_costs.tolist()
        ([0], [1], [1.5])
    """
    rows = as_logits(logits, classes=head.classes)
    logged = as_labels(decisions, classes=head.costs.shape[1], field="decisions")
    if logged.shape != (rows.shape[0],):
        raise InvalidInputError(
            f"expected one decision per row of logits, ({rows.shape[0]},), got {logged.shape}.",
            field="decisions",
        )
    output = head.apply(rows)
    differing = np.flatnonzero(output.decisions != logged)
    old, new = logged[differing], output.decisions[differing]
    costs = np.zeros(differing.size)
    # The differences of the costs first: a constant in a row of the costs must not drown them. Class by class, so that
    # a row's cost is the same to the last bit whatever else is compared.
    for probability, cost in zip(output.probabilities[differing].T, head.costs, strict=True):
        costs += probability * (cost[old] - cost[new])
    if isinstance(head.decision_rule, BayesRule):
        costs = np.maximum(costs, 0.0)
    return AffectedDecisions(
        predictions=rows.shape[0],
        rows=read_only(differing.astype(np.int64)),
        decisions=read_only(old),
        new_decisions=read_only(new),
        expected_costs=read_only(costs),
    )


def _merged(changes: Iterable[DecisionChange]) -> tuple[DecisionChange, ...]:
    counts: defaultdict[tuple[int, int], int] = defaultdict(int)
    costs: defaultdict[tuple[int, int], float] = defaultdict(float)
    for change in changes:
        pair = change.decision, change.new_decision
        counts[pair] += change.count
        costs[pair] += change.expected_cost
    merged = (DecisionChange(*pair, count, costs[pair]) for pair, count in counts.items())
    return tuple(
        sorted(merged, key=lambda change: (-change.expected_cost, change.decision, change.new_decision))
    )
