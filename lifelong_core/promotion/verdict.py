"""What speaks for and against the promotion of a model, and what the figures of its report do not tell."""

from collections.abc import Iterator, Sequence

from lifelong_core.design.report.words import p_value
from lifelong_core.design.validation.differences import MetricDifference
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.promotion.decision_changes import McNemar
from lifelong_core.promotion.document import (
    Advice,
    ComparedModel,
    HeldOutCases,
    LocalizationComparison,
    Verdict,
)
from lifelong_core.promotion.evidence import Evidence, name_class, name_subgroup

ALWAYS = (
    "The intervals are those of these two models on cases like these: another training by the same recipe, or cases"
    " of other patients and devices, may give other figures."
)


def verdict(evidence: Evidence, unknown: Sequence[str]) -> Verdict:
    """Weigh a new model against the current one.

    Benefits have to be shown, harms only suspected:

    - Rejected is a model that misses an acceptance threshold, or that is worse in a summary or in an environment beyond
      the chance of all of them together, while no summary is better; a person decides where the current model may have
      been trained on the cases, which makes any other model look worse.
    - Promoted is a model that reaches its thresholds, if there are any, with a summary that is better beyond the chance
      of all of them together, and nothing that may be worse: no summary and no environment by its own interval, and no
      class or subgroup beyond the chance of all classes or subgroups together.
    - Everything else is left to a person.

    Args:
        evidence: the differences.
        unknown: open points of the figures, in sentences.
    """
    advice, headline = _advice(evidence)
    return Verdict(
        advice=advice, headline=headline, reasons=tuple(_reasons(evidence)), unknown=tuple(unknown)
    )


def unknowns(
    evidence: Evidence,
    cases: HeldOutCases,
    models: Sequence[ComparedModel],
    localization: LocalizationComparison | None,
) -> Iterator[str]:
    """Sentences on what the figures do not tell, the most general first."""
    cost = evidence.cost
    yield ALWAYS
    if cost.direction == "open" and cost.has_interval and cost.low != cost.high:
        low, high = (max(0.0, number) for number in (-cost.number("low"), cost.number("high")))
        yield (
            f"An expected cost that is up to {low:.3g} lower or {high:.3g} higher than that of the current model cannot"
            " be excluded: more cases would narrow this."
        )
    if not evidence.environments:
        yield "No environment has an estimated class prevalence, so the expected cost in use is not known."
    if not cases.metadata:
        yield "The cases name no subgroups: whether the model is worse for some devices or patients is not known."
    origins = [model.reference for model in models if model.trained_on is None]
    if origins:
        yield (
            f"The training data of {' and '.join(origins)} are not known, so nothing shows that no held-out case was"
            " among them."
        )
    if any(model.cost is None or model.cost.milliseconds is None for model in models):
        yield "The time for one image was not measured for both models."
    if localization is None:
        yield "There were no images, so whether both models look at the same places is not known."


def _advice(evidence: Evidence) -> tuple[Advice, str]:
    new, better, worse, doubtful = evidence.new, evidence.better, evidence.worse, evidence.doubtful
    if new.accepted is False:
        return "reject", "Do not promote: it misses its thresholds"
    if worse and not better and evidence.favours_current:
        return "decide", "A person has to decide: it is worse, on cases that favour the current model"
    if worse and not better:
        return "reject", "Do not promote: it is worse"
    if new.acceptance and not new.accepted:
        return "decide", "A person has to decide: its thresholds cannot be judged on these cases"
    if better and not worse and not doubtful:
        return "promote", "Promote: it is better"
    if better:
        return "decide", "A person has to decide: better in one respect, worse in another"
    if doubtful:
        return "decide", "A person has to decide: it may be worse, and nothing is better beyond chance"
    if evidence.is_better_in_part:
        return "decide", "A person has to decide: better for a part of the cases only"
    return "decide", "A person has to decide: no difference beyond chance"


def _reasons(evidence: Evidence) -> Iterator[str]:
    yield from _acceptance(evidence.new, "The new model")
    yield from _acceptance(evidence.current, "The current model")
    told = False
    for direction in ("worse", "better"):
        for difference in evidence.summaries:
            if difference.direction == direction:
                told = True
                yield _of_difference(difference.label, difference)
    for place in evidence.environments:
        if place.difference.direction != "open":
            yield _of_difference(f"{place.difference.label} in {place.environment}", place.difference)
    classes = [(name_class(difference, evidence.new), difference) for difference in evidence.classes]
    subgroups = [(name_subgroup(difference), difference) for difference in evidence.subgroups]
    for label, difference in (*classes, *subgroups):
        if difference.direction_among_all == "worse":
            yield _of_difference(label, difference)
    yield from _better_parts(evidence)
    if not told:
        yield "No recommended metric, and not the expected cost, differs beyond chance."
    yield _of_test(evidence.mcnemar)


def _better_parts(evidence: Evidence) -> Iterator[str]:
    """How many classes and subgroups are better; the tables of the report name them."""
    for what, family in (("single classes", evidence.classes), ("subgroups", evidence.subgroups)):
        better = sum(difference.direction_among_all == "better" for difference in family)
        if better:
            yield f"Of the {len(family)} differences of {what}, {better} {'is' if better == 1 else 'are'} better."


def _acceptance(result: ValidationResult, model: str) -> Iterator[str]:
    total = len(result.acceptance)
    if not total:
        return
    reached = sum(outcome.passed is True for outcome in result.acceptance)
    yield f"{model} reaches {reached} of {total} acceptance threshold{'s' if total != 1 else ''}."


def _of_difference(label: str, difference: MetricDifference) -> str:
    change, low, high = (
        f"{difference.number(bound):+.3g}".replace("inf", "∞") for bound in ("estimate", "low", "high")
    )
    is_sure = difference.direction_among_all == difference.direction
    doubt = "" if is_sure else " Of so many differences, this may be chance."
    return f"{label} is {difference.direction}: {change}, with an interval from {low} to {high}.{doubt}"


def _of_test(mcnemar: McNemar) -> str:
    kind = "McNemar's exact test" if mcnemar.groups is None else "The exact test over groups"
    return (
        f"{mcnemar.corrected} wrong decisions become right, {mcnemar.broken} right ones wrong. {kind} of equally many"
        f" errors: p {p_value(mcnemar.exact)} (mid-p {p_value(mcnemar.mid_p)})."
    )
