"""Declaration of a metric beside its function: its entry in the catalogue.

`metric` is the decorator; `declared_in` gives the entries of a module.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar

Family: TypeAlias = Literal[
    "counting", "multi-threshold", "calibration", "calibration-agreement", "uncertainty-aware", "stability"
]
"""`calibration-agreement`: best at 1, so that no order of models follows; functions only, as are the last two."""
RelationKind: TypeAlias = Literal["same information", "same if balanced", "special case", "ingredient"]
"""Kinds, in this order: each can be computed from the other; the same for balanced tasks, of two classes, with usual
parameters; one is the other for some parameters, or in the limit; or one is a part or the mirror image of the other."""
Orientation: TypeAlias = Literal["up", "down", "one"]
Function = TypeVar("Function", bound=Callable[..., Any])


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
    """Description of one metric, for readers and for code that selects metrics."""

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
    orientation: Orientation
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
        return worst_of(self.bounds, self.orientation)

    @property
    def is_bounded(self) -> bool:
        """Whether there is a worst value; otherwise an invalid output has the value of the naive classifier."""
        return math.isfinite(self.worst)


_DECLARED: list[MetricInfo] = []


def metric(
    acronym: str,
    name: str,
    meaning: str,
    *,
    definition: str,
    formula: str,
    undefined: str,
    bounds: tuple[float, float] = (0, 1),
    shown: str | None = None,
    orientation: Orientation = "up",
    scope: str = "multiclass",
    prevalence_dependent: bool | None = True,
    invalid: str | None = None,
    family: Family = "counting",
) -> Callable[[Function], Function]:
    """Declare the decorated function as a metric. The arguments are fields of `MetricInfo`.

    Args:
        acronym: key in METRICS.
        name: for readers.
        meaning: one sentence.
        definition: number in the thesis, or the publication.
        formula: in the notation of the thesis.
        undefined: the cases in which the value is nan.
        bounds: the range as numbers.
        shown: the range for readers; None: the bounds.
        orientation: which values are better.
        scope: "multiclass", or "per class" where there is one value per class.
        prevalence_dependent: whether the value depends on the class shares; None: the metric has no classes.
        invalid: `value_for_invalid_output`; None: the worst value.
        family: which inputs the metric needs.
    """

    def declare(function: Function) -> Function:
        card = MetricInfo(
            acronym=acronym,
            name=name,
            function=function,
            meaning=meaning,
            definition=definition,
            formula=formula,
            range=f"[{bounds[0]:g},{bounds[1]:g}]" if shown is None else shown,
            bounds=bounds,
            orientation=orientation,
            scope=scope,
            prevalence_dependent=prevalence_dependent,
            undefined=undefined,
            value_for_invalid_output=f"{worst_of(bounds, orientation):g}" if invalid is None else invalid,
            family=family,
        )
        _DECLARED.append(card)
        return function

    return declare


def declared_in(module: ModuleType) -> list[MetricInfo]:
    """Metrics of a module in the order of their functions, without relations.

    Examples:
        >>> from lifelong_core.metrics.counting import cost
        >>> [(card.acronym, card.function is cost.net_benefit) for card in declared_in(cost)]
        [('NB', True)]
    """
    return [card for card in _DECLARED if card.function.__module__ == module.__name__]


def worst_of(bounds: tuple[float, float], orientation: Orientation) -> float:
    """Bound at the bad end; infinite where there is none, and where values near 1 are best."""
    if orientation == "one":
        return math.inf
    return bounds[0] if orientation == "up" else bounds[1]
