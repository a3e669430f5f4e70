"""Measured transfers between tasks as arrays."""

from dataclasses import dataclass

from lifelong_core.develop.knowledge.entry import Scenario, TaskCard
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats


@dataclass(frozen=True, eq=False)
class TransferOutcomes(ArrayValue):
    """Performance of T tasks with and without transfer, and the distances between them.

    S scenarios, M measures, R repetitions (seeds), D distances. nan: not measured, or not a legal pair.
    """

    cards: tuple[TaskCard, ...]
    """T, in the order of the arrays"""
    scenarios: tuple[Scenario, ...]
    measures: tuple[str, ...]
    """positively oriented, in [0, 1]"""
    outcomes: Floats
    """(S, M, R, T, T): scenario, measure, repetition, source, target"""
    baseline: Floats
    """(M, R, T): without transfer"""
    methods: tuple[str, ...]
    """fingerprinting methods"""
    distances: Floats
    """(D, T, T): method, source, target; the lower, the closer"""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, in the order of the arrays."""
        return tuple(card.name for card in self.cards)
