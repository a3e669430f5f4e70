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
from lifelong_core.promotion.document import ComparedModel, CostDifference, Population
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
        first = {difference.label: difference for difference in reversed(self.differences)}
        return [
            self.cost,
            *(
                difference
                for difference in self.differences
                if first[difference.label] is difference and difference.label != self.cost.label
            ),
        ]

    @property
    def classes(self) -> list[MetricDifference]:
        """Recommended metrics of single classes, where a summary comes before them."""
        first = {difference.label: difference for difference in reversed(self.differences)}
        return [difference for difference in self.differences if first[difference.label] is not difference]

    @property
    def better(self) -> list[str]:
        """Labels of summaries that are better beyond the chance of all summaries together."""
        return [
            difference.label for difference in self.summaries if difference.direction_among_all == "better"
        ]

    @property
    def is_better_in_part(self) -> bool:
        """Whether a class, a subgroup or an environment is better beyond the chance of all of them together."""
        parts = (*self.classes, *self.subgroups, *(cost.difference for cost in self.environments))
        return any(difference.direction_among_all == "better" for difference in parts)

    @property
    def worse(self) -> list[str]:
        """Labels of summaries and environments that are worse beyond the chance of their family."""
        there = [
            f"EC in {cost.environment}" for cost in self.environments if _is_surely_worse(cost.difference)
        ]
        return [*(difference.label for difference in self.summaries if _is_surely_worse(difference)), *there]

    @property
    def doubtful(self) -> list[str]:
        """Labels that may be worse: summaries and environments singly, classes and subgroups beyond their chance."""
        alone = [difference.label for difference in self.summaries if difference.direction == "worse"]
        alone += [
            f"EC in {cost.environment}" for cost in self.environments if cost.difference.direction == "worse"
        ]
        of_classes = [
            name_class(difference, self.new) for difference in self.classes if _is_surely_worse(difference)
        ]
        of_subgroups = [
            name_subgroup(difference) for difference in self.subgroups if _is_surely_worse(difference)
        ]
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


def _is_surely_worse(difference: MetricDifference) -> bool:
    """Whether it is worse beyond the chance of all that were judged together with it."""
    return difference.direction_among_all == "worse"


def name_class(difference: MetricDifference, result: ValidationResult) -> str:
    """A difference of one class in words."""
    return (
        difference.label
        if difference.class_index is None
        else f"{difference.label} of {result.class_names[difference.class_index]}"
    )


def name_subgroup(difference: SubgroupDifference) -> str:
    """A difference of a subgroup in words."""
    return f"{difference.label} of {difference.attribute} {difference.key}"


def _of_all_cases(
    paired: PairedValidation, costs: Floats
) -> tuple[MetricDifference, tuple[MetricDifference, ...]]:
    """The expected cost, and the recommended metrics in their order: summaries and classes, each judged together."""
    level = paired.setting.level
    cost, differences = paired.expected_cost(costs, None), paired.differences()
    first = {difference.document.label: difference for difference in reversed(differences)}
    summaries = [difference for difference in differences if first[difference.document.label] is difference]
    classes = [difference for difference in differences if first[difference.document.label] is not difference]
    judged_cost, *judged = judge_together([cost, *summaries], level=level)
    judged += judge_together(classes, level=level)
    by_difference = dict(zip(map(id, [*summaries, *classes]), judged, strict=True))
    return judged_cost, tuple(by_difference[id(difference)] for difference in differences)


def _in_environments(
    paired: PairedValidation,
    new: ComparedModel,
    current: ComparedModel,
    *,
    costs: Floats,
    populations: Sequence[Population],
) -> tuple[CostDifference, ...]:
    """Expected cost of each population with the heads that decide there."""
    differences: list[ResampledDifference] = [
        paired.expected_cost(
            costs,
            population.prevalence,
            new=population.new_head.apply(new.logits).decisions,
            current=population.current_head.apply(current.logits).decisions,
        )
        for population in populations
    ]
    judged = judge_together(differences, level=paired.setting.level)
    return tuple(
        CostDifference(
            environment=population.environment,
            prevalence=tuple(population.prevalence.tolist()),
            difference=difference,
        )
        for population, difference in zip(populations, judged, strict=True)
    )
