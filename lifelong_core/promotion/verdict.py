"""What speaks for and against the promotion of a model, from the figures of its report."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from lifelong_core.design.validation.paired import MetricDifference
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.documents import Frozen
from lifelong_core.promotion.decision_changes import McNemar

Advice: TypeAlias = Literal["promote", "decide", "reject"]
"""`decide`: the figures do not settle it, and a person has to."""


class Verdict(Frozen):
    """What the figures advise, with reasons; a person decides."""

    advice: Advice
    headline: str
    reasons: tuple[str, ...]


def verdict(
    new: ValidationResult,
    current: ValidationResult,
    differences: Sequence[MetricDifference],
    cost: MetricDifference,
    mcnemar: McNemar,
) -> Verdict:
    """Weigh a new model against the current one.

    Rejected is a model that misses an acceptance threshold, or whose expected cost or a recommended metric is worse,
    with an interval of the difference beyond 0, while none is better. Promoted is one that reaches its thresholds, if
    there are any, has a better expected cost or recommended metric, and none that is worse. Everything else is left to
    a person. Only what sums a metric up counts here: with many classes, some difference would lie beyond 0 by chance.

    Args:
        new: validation of the new model.
        current: validation of the current one.
        differences: of the recommended metrics, new less current.
        cost: difference of the expected costs at the class shares of the cases.
        mcnemar: test of whether they err equally often.
    """
    summed = [cost, *(one for one in _summaries(differences) if one.label != cost.label)]
    better = [one for one in summed if one.direction == "better"]
    worse = [one for one in summed if one.direction == "worse"]
    reasons = (*_acceptance(new, "the new model"), *_acceptance(current, "the current model"))
    reasons += tuple(_of_difference(one) for one in (*worse, *better))
    if not better and not worse:
        reasons += ("No recommended metric, and not the expected cost, differs beyond chance.",)
    reasons += (_of_test(mcnemar),)
    if new.accepted is False:
        return Verdict(advice="reject", headline="Do not promote: it misses its thresholds", reasons=reasons)
    if worse and not better:
        return Verdict(advice="reject", headline="Do not promote: it is worse", reasons=reasons)
    if better and not worse and (new.accepted or not new.acceptance):
        return Verdict(advice="promote", headline="Promote: it is better", reasons=reasons)
    why = "better in one respect, worse in another" if better and worse else "no difference beyond chance"
    if new.acceptance and not new.accepted:
        why = "its thresholds cannot be judged on these cases"
    return Verdict(advice="decide", headline=f"A person has to decide: {why}", reasons=reasons)


def _summaries(differences: Sequence[MetricDifference]) -> Iterator[MetricDifference]:
    """The first value of each metric."""
    seen: set[str] = set()
    for one in differences:
        if one.label not in seen:
            seen.add(one.label)
            yield one


def _acceptance(result: ValidationResult, who: str) -> Iterator[str]:
    total = len(result.acceptance)
    if not total:
        return
    reached = sum(outcome.passed is True for outcome in result.acceptance)
    yield f"{who[0].upper()}{who[1:]} reaches {reached} of {total} acceptance threshold{'s' if total != 1 else ''}."


def _of_difference(one: MetricDifference) -> str:
    numbers = (one.number("estimate"), one.number("low"), one.number("high"))
    change, low, high = (f"{number:+.3g}" for number in numbers)
    return f"{one.label} is {one.direction}: {change}, with an interval from {low} to {high}."


def _of_test(mcnemar: McNemar) -> str:
    kind = "McNemar's exact test" if mcnemar.groups is None else "The exact test over groups"
    return (
        f"{mcnemar.corrected} wrong decisions become right, {mcnemar.broken} right ones wrong. {kind} of equally many"
        f" errors: p = {mcnemar.exact:.2g} (mid-p {mcnemar.mid_p:.2g})."
    )
