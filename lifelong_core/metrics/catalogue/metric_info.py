"""Description of a metric, for readers and for code that selects metrics."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Family: TypeAlias = Literal[
    "counting", "multi-threshold", "calibration", "calibration-agreement", "uncertainty-aware", "stability"
]
"""`calibration-agreement`: best at 1, so that no order of models follows; functions only, as are the last two."""
RelationKind: TypeAlias = Literal["same information", "same if balanced", "special case", "ingredient"]
"""Kinds, in this order: each can be computed from the other; the same for balanced tasks, of two classes, with usual
parameters; one is the other for some parameters, or in the limit; or one is a part or the mirror image of the other."""


@dataclass(frozen=True)
class Relation:
    """Relation of two metrics (thesis Table 4.2): reporting both gives less information than it seems."""

    first: str
    second: str
    """acronyms"""
    kind: RelationKind
    statement: str
    source: str

    def other(self, acronym: str) -> str:
        """Acronym of the other metric."""
        return self.second if acronym == self.first else self.first


@dataclass(frozen=True, kw_only=True)
class MetricInfo:
    """Description of one metric."""

    acronym: str
    name: str
    function: Callable[..., Any]
    """computes the metric from its own inputs; per-class metrics give an array of shape (C,)"""
    meaning: str
    """one sentence for readers who do not know the metric"""
    definition: str
    """number in the thesis, or the publication"""
    formula: str
    range: str
    bounds: tuple[float, float]
    """the range as numbers"""
    orientation: Literal["up", "down", "one"]
    """which values are better; `one`: those near 1"""
    scope: str
    prevalence_dependent: bool | None
    """None: the metric has no classes"""
    undefined: str
    """the cases in which the value is nan"""
    value_for_invalid_output: str
    family: Family
    relations: tuple[Relation, ...] = ()

    @property
    def is_per_class(self) -> bool:
        """Whether there is one value per class, of the class against the rest."""
        return self.scope.startswith("per class")

    @property
    def is_in_pool(self) -> bool:
        """Whether `compute_metrics` computes it; other metrics need special inputs and are functions only."""
        return self.family in ("counting", "multi-threshold", "calibration")

    @property
    def worst(self) -> float:
        """Bound at the bad end; infinite where there is none, and where values near 1 are best."""
        if self.orientation == "one":
            return math.inf
        return self.bounds[0] if self.orientation == "up" else self.bounds[1]

    @property
    def is_bounded(self) -> bool:
        """Whether there is a worst value; otherwise an invalid output has the value of the naive classifier."""
        return math.isfinite(self.worst)
