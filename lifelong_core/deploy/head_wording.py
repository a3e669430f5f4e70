"""A head, and the difference between two heads, in plain words."""

from collections.abc import Iterator

import numpy as np

from lifelong_core.decision_rules.decide import CutOff
from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy.head import PostProcessingHead

MOST_NAMED = 3
"""Classes whose shares are named: the largest, or those that differ most."""
_BINARY = 2
_MOST_COSTS = 400
"""Entries of a cost matrix that are compared one by one."""
_ROUNDING = 1e-9
_VISIBLE = 5e-4
"""Differences below it do not show in the words."""


def describe_head(head: PostProcessingHead) -> str:
    """What a head assumes and how it decides, as a phrase.

    Examples:
        >>> head = PostProcessingHead(1.0, [0, 0], [[0, 1], [5, 0]], [0.88, 0.12], ("benign", "malignant"))
        >>> describe_head(head)
        'assumes 12 % malignant and decides malignant from a probability of 0.167 on'
    """
    return f"assumes {_shares(head)} and decides {_decision(head)}"


def describe_difference(before: PostProcessingHead, after: PostProcessingHead) -> list[str]:
    """The differences between two heads of a model as sentences; none: they compute the same.

    Examples:
        >>> one = PostProcessingHead(1.0, [0, 0], [[0, 1], [5, 0]], [0.88, 0.12], ("benign", "malignant"))
        >>> describe_difference(one, PostProcessingHead(1.0, [0, 0], one.costs, [0.7, 0.3], one.class_names))
        ['It assumes 30 % malignant instead of 12 %.']
        >>> describe_difference(one, one)
        []
    """
    return [*_assumption(before, after), *_rule(before, after), *_scaling(before, after)]


def parameter_changes(
    before: PostProcessingHead, after: PostProcessingHead
) -> dict[str, tuple[float | None, float | None]]:
    """The numbers that differ between two heads of a model, before and after, by name; None: the head has no such."""
    one, other = dict(_parameters(before)), dict(_parameters(after))
    both = {name: (one.get(name), other.get(name)) for name in {**one, **other}}
    return {name: pair for name, pair in both.items() if _differ(*pair)}


def threshold(head: PostProcessingHead) -> tuple[str, float] | None:
    """The class that a binary head decides from a probability on, and that probability; None: it has none."""
    rule = head.executed_rule
    if isinstance(rule, CutOff):
        return head.class_names[rule.positive_class], rule.threshold
    if rule.relative.shape != (_BINARY, _BINARY):
        return None
    false_alarm, miss = rule.relative[0, 1] - rule.relative[0, 0], rule.relative[1, 0] - rule.relative[1, 1]
    if false_alarm < 0 or miss < 0 or false_alarm + miss == 0:
        return None
    return head.class_names[1], float(false_alarm / (false_alarm + miss))


def percent(share: float) -> str:
    """A share in percent with at most one digit behind the point.

    Examples:
        >>> percent(0.12), percent(0.0456), percent(0.0001)
        ('12 %', '4.6 %', '0.01 %')
    """
    return f"{100 * share:.3g} %" if share < 0.001 else f"{round(100 * share, 1):g} %"


def _differ(one: float | None, other: float | None) -> bool:
    return one != other if one is None or other is None else abs(one - other) > _ROUNDING


def _shares(head: PostProcessingHead) -> str:
    prevalence, names = head.assumed_prevalence.tolist(), head.class_names
    if head.classes == _BINARY:
        return f"{percent(prevalence[1])} {names[1]}"
    largest = sorted(range(head.classes), key=lambda index: -prevalence[index])[:MOST_NAMED]
    named = ", ".join(f"{percent(prevalence[index])} {names[index]}" for index in largest)
    rest = head.classes - len(largest)
    return named if rest == 0 else f"{named} and {rest} more {'class' if rest == 1 else 'classes'}"


def _decision(head: PostProcessingHead) -> str:
    found = threshold(head)
    if found is not None:
        return f"{found[0]} from a probability of {found[1]:.3g} on"
    return f"by {describe_rule(head.decision_rule, head.class_names)}"


def _assumption(before: PostProcessingHead, after: PostProcessingHead) -> Iterator[str]:
    moved = after.assumed_prevalence - before.assumed_prevalence
    indices = [1] if after.classes == _BINARY else np.argsort(-np.abs(moved)).tolist()[:MOST_NAMED]
    named = [
        f"{percent(after.assumed_prevalence[index])} {after.class_names[index]} instead of"
        f" {percent(before.assumed_prevalence[index])}"
        for index in indices
        if abs(moved[index]) > _VISIBLE
    ]
    if named:
        yield f"It assumes {', '.join(named)}."


def _rule(before: PostProcessingHead, after: PostProcessingHead) -> Iterator[str]:
    one, other = _decision(before), _decision(after)
    if one != other:
        yield f"It decides {other} instead of {one}."
    if not np.array_equal(before.costs, after.costs):
        yield "It weighs errors by other costs."


def _scaling(before: PostProcessingHead, after: PostProcessingHead) -> Iterator[str]:
    shift = (after.bias - after.bias.mean()) - (before.bias - before.bias.mean())
    if np.abs(shift).max() > _VISIBLE:
        more, less = after.class_names[int(shift.argmax())], after.class_names[int(shift.argmin())]
        yield f"For equal logits, {more} becomes more and {less} less probable."
    one, other = np.mean(before.temperature), np.mean(after.temperature)
    if abs(one - other) > _VISIBLE:
        change = "closer to each other" if other > one else "further apart"
        yield f"Its probabilities are {change} (temperature {other:.3g} instead of {one:.3g})."


def _parameters(head: PostProcessingHead) -> Iterator[tuple[str, float]]:
    names = head.class_names
    for name, share in zip(names, head.assumed_prevalence.tolist(), strict=True):
        yield f"assumed prevalence of {name}", share
    if (found := threshold(head)) is not None:
        yield f"probability from which {found[0]} is decided", found[1]
    for name, temperature in zip(
        names, np.broadcast_to(head.temperature, head.classes).tolist(), strict=True
    ):
        yield f"temperature of {name}", temperature
    # A constant in the bias changes no probability.
    for name, bias in zip(names, (head.bias - head.bias.mean()).tolist(), strict=True):
        yield f"bias of {name}", bias
    if head.costs.size > _MOST_COSTS:
        return
    for name, row in zip(names, head.costs.tolist(), strict=True):
        for decision, cost in zip(head.decision_names, row, strict=True):
            yield f"cost of deciding {decision} for {name}", cost
