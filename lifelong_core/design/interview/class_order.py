"""Answers about single classes after the classes change places."""

from collections.abc import Sequence
from typing import Any

from lifelong_core.design.problem_fingerprint import ProblemFingerprint


def reorder_class_answers(
    fingerprint: ProblemFingerprint, before: Sequence[str], after: Sequence[str]
) -> dict[str, Any]:
    """The answers to change so that each class keeps its own after a change of class names.

    Corrected names leave the classes in their places. If classes are added or removed, only the target class follows
    its name; it is withdrawn if its name is removed.

    Args:
        fingerprint: the answers, in the order of `before`.
        before: the names of the classes, each once.
        after: the new names.

    Examples:
        >>> answers = ProblemFingerprint(target_class=1, costs=((0, 1), (9, 0)))
        >>> reorder_class_answers(answers, ["benign", "malignant"], ["malignant", "benign"])
        {'costs': [[0.0, 9.0], [1.0, 0.0]], 'target_class': 0}
        >>> reorder_class_answers(answers, ["benign", "malignant"], ["benign", "unclear", "malignant"])
        {'target_class': 2}
    """
    target = fingerprint.target_class
    name = None if target is None or target >= len(before) else before[target]
    if set(before) == set(after):
        moved = _in_order(fingerprint, [before.index(name) for name in after])
    elif len(before) == len(after):
        return {}
    else:
        moved = {}
    if name is not None:
        moved["target_class"] = after.index(name) if name in after else None
    return moved


def _in_order(fingerprint: ProblemFingerprint, order: list[int]) -> dict[str, Any]:
    """Answers with one value per class, in another order; the column for abstaining stays last."""
    moved: dict[str, Any] = {}
    for field in ("class_weights", "target_prevalences"):
        values = getattr(fingerprint, field)
        if values is not None and len(values) == len(order):
            moved[field] = [values[k] for k in order]
    costs = fingerprint.costs
    if costs is not None and len(costs) == len(order) <= len(costs[0]):
        columns = [*order, *range(len(order), len(costs[0]))]
        moved["costs"] = [[costs[row][column] for column in columns] for row in order]
    return moved
