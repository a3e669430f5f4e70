"""The differences between two models that a verdict follows from."""

from collections.abc import Sequence
from dataclasses import dataclass

from lifelong_core.design.validation.differences import (
    MetricDifference,
    ResampledDifference,
    SubgroupDifference,
    judge_together,
)
from lifelong_core.design.validation.paired import PairedValidation
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.promotion.decision_changes import McNemar
from lifelong_core.promotion.document import CostDifference
from lifelong_core.promotion.inputs import ComparedModel, Population
from lifelong_core.values.arrays import Floats


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The differences that a verdict follows from; what a family holds was judged together."""

    new: ValidationResult
    current: ValidationResult
    cost: MetricDifference
    """expected cost at the class shares of the cases; of the family of the summaries"""
    differences: tuple[MetricDifference, ...]
    """recommended metrics in their order: the summary of each, then its classes; two families"""
    subgroups: tuple[SubgroupDifference, ...]
    environments: tuple[CostDifference, ...]
    """expected cost by environment"""
    mcnemar: McNemar
    favours_current: bool = False
    """whether the current model was, or may have been, trained on some of the cases"""

    @property
    def summaries(self) -> list[MetricDifference]:
        """The expected cost, then what sums up each recommended metric."""
        first = {one.label: one for one in reversed(self.differences)}
        return [
            self.cost,
            *(one for one in self.differences if first[one.label] is one and one.label != self.cost.label),
        ]

    @property
    def classes(self) -> list[MetricDifference]:
        """Recommended metrics of single classes, where a summary comes before them."""
        first = {one.label: one for one in reversed(self.differences)}
        return [one for one in self.differences if first[one.label] is not one]

    @property
    def better(self) -> list[str]:
        """What is better beyond the chance of all summaries together."""
        return [one.label for one in self.summaries if one.direction_among_all == "better"]

    @property
    def is_better_in_part(self) -> bool:
        """Whether a class, a subgroup or an environment is better beyond the chance of all of them together."""
        parts = (*self.classes, *self.subgroups, *(one.difference for one in self.environments))
        return any(one.direction_among_all == "better" for one in parts)

    @property
    def worse(self) -> list[str]:
        """What is worse beyond the chance of all summaries, or of all environments, together."""
        there = [f"EC in {one.environment}" for one in self.environments if _is_surely_worse(one.difference)]
        return [*(one.label for one in self.summaries if _is_surely_worse(one)), *there]

    @property
    def doubtful(self) -> list[str]:
        """What may be worse: a summary or an environment by itself, a class or subgroup beyond the chance of all."""
        alone = [one.label for one in self.summaries if one.direction == "worse"]
        alone += [
            f"EC in {one.environment}" for one in self.environments if one.difference.direction == "worse"
        ]
        of_classes = [name_class(one, self.new) for one in self.classes if _is_surely_worse(one)]
        of_subgroups = [name_subgroup(one) for one in self.subgroups if _is_surely_worse(one)]
        sure = self.worse
        return [text for text in (*alone, *of_classes, *of_subgroups) if text not in sure]


def gather_evidence(
    paired: PairedValidation,
    new: ComparedModel,
    current: ComparedModel,
    *,
    costs: Floats,
    populations: Sequence[Population],
    mcnemar: McNemar,
) -> Evidence:
    """The differences of two models.

    Args:
        paired: both on the same samples.
        new: the model that may be promoted.
        current: the model that serves now.
        costs: shape (C, D), those of the task.
        populations: environments with their estimated prevalence.
        mcnemar: test of whether they err equally often.
    """
    cost, differences = _of_all_cases(paired, costs)
    return Evidence(
        new=paired.new.result,
        current=paired.current.result,
        cost=cost,
        differences=differences,
        subgroups=paired.subgroup_differences(),
        environments=_in_environments(paired, new, current, costs=costs, populations=populations),
        mcnemar=mcnemar,
        favours_current=current.seen is not None,
    )


def _is_surely_worse(one: MetricDifference) -> bool:
    """Whether it is worse beyond the chance of all that were judged together with it."""
    return one.direction_among_all == "worse"


def name_class(one: MetricDifference, result: ValidationResult) -> str:
    """A difference of one class in words."""
    return one.label if one.class_index is None else f"{one.label} of {result.class_names[one.class_index]}"


def name_subgroup(one: SubgroupDifference) -> str:
    """A difference of a subgroup in words."""
    return f"{one.label} of {one.attribute} {one.key}"


def _of_all_cases(
    paired: PairedValidation, costs: Floats
) -> tuple[MetricDifference, tuple[MetricDifference, ...]]:
    """The expected cost, and the recommended metrics in their order: summaries and classes, each judged together."""
    level = paired.setting.level
    cost, found = paired.expected_cost(costs, None), paired.differences()
    first = {one.document.label: one for one in reversed(found)}
    summaries = [one for one in found if first[one.document.label] is one]
    classes = [one for one in found if first[one.document.label] is not one]
    judged_cost, *judged = judge_together([cost, *summaries], level=level)
    judged += judge_together(classes, level=level)
    by_difference = dict(zip(map(id, [*summaries, *classes]), judged, strict=True))
    return judged_cost, tuple(by_difference[id(one)] for one in found)


def _in_environments(
    paired: PairedValidation,
    new: ComparedModel,
    current: ComparedModel,
    *,
    costs: Floats,
    populations: Sequence[Population],
) -> tuple[CostDifference, ...]:
    """Expected cost of each population with the heads that decide there."""
    found: list[ResampledDifference] = [
        paired.expected_cost(
            costs,
            one.prevalence,
            new=one.new_head.apply(new.logits).decisions,
            current=one.current_head.apply(current.logits).decisions,
        )
        for one in populations
    ]
    judged = judge_together(found, level=paired.setting.level)
    return tuple(
        CostDifference(
            environment=one.environment, prevalence=tuple(one.prevalence.tolist()), difference=difference
        )
        for one, difference in zip(populations, judged, strict=True)
    )
