"""What is known about a metric: for people who read about it, and for code that chooses among metrics."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Family: TypeAlias = Literal["counting", "multi-threshold", "calibration", "uncertainty-aware", "stability"]
RelationKind: TypeAlias = Literal["same information", "same if balanced", "special case", "ingredient"]
"""Either can be computed from the other; for balanced tasks, of two classes, with usual parameters it can; one is the
other for some parameters, or in the limit; or one goes into the other, or mirrors it."""


@dataclass(frozen=True)
class Relation:
    """How two metrics hang together (thesis Table 4.2): reporting both says less than it seems."""

    first: str
    second: str
    """acronyms"""
    kind: RelationKind
    statement: str
    source: str

    def other(self, acronym: str) -> str:
        """The acronym at the other end."""
        return self.second if acronym == self.first else self.first


@dataclass(frozen=True, kw_only=True)
class MetricInfo:
    """The card of one metric."""

    acronym: str
    name: str
    function: Callable[..., Any]
    """computes it, from its own inputs; per-class metrics give an array of shape (C,)"""
    meaning: str
    """one sentence for people who do not know the metric"""
    definition: str
    """number in the thesis, or the publication"""
    formula: str
    range: str
    bounds: tuple[float, float]
    """the range as numbers"""
    orientation: Literal["up", "down"]
    """which values are better"""
    scope: str
    prevalence_dependent: bool | None
    """None: there are no classes"""
    undefined: str
    """the cases in which it is nan"""
    value_for_invalid_output: str
    family: Family
    relations: tuple[Relation, ...] = ()

    @property
    def is_per_class(self) -> bool:
        """Whether there is one value per class, of this class against the rest."""
        return self.scope.startswith("per class")

    @property
    def is_in_pool(self) -> bool:
        """Whether `compute_metrics` knows it; the others need other inputs and are functions only."""
        return self.family in ("counting", "multi-threshold", "calibration")

    @property
    def worst(self) -> float:
        """The bound on the bad side; infinite where there is none."""
        return self.bounds[0] if self.orientation == "up" else self.bounds[1]

    @property
    def is_bounded(self) -> bool:
        """Whether there is a worst value; else an invalid output counts as one of the naive classifier."""
        return math.isfinite(self.worst)
