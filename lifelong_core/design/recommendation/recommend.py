"""From a complete fingerprint to the recommended metrics and their reasons."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from lifelong_core.design.method.loader import load_method
from lifelong_core.design.method.schema import AdviceRule, Method
from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.design.recommendation.contradictions import contradictions_in
from lifelong_core.design.recommendation.document import Advice, Recommendation, UnusedAnswer
from lifelong_core.design.recommendation.explanation import step_of, warnings_among
from lifelong_core.design.recommendation.progress import used_answers
from lifelong_core.design.recommendation.walk import Choices, WalkResult, walk
from lifelong_core.values.errors import InvalidInputError

GivenChoices = Mapping[str, str | Sequence[str]]


def recommend(fingerprint: ProblemFingerprint, *, choices: GivenChoices | None = None) -> Recommendation:
    """The metrics for a problem with their reasons, and the rejected ones with theirs (thesis section 4.2).

    Args:
        fingerprint: a complete fingerprint, without open questions.
        choices: guide -> option that a person chose, or options where a guide allows several. Without a choice, the
            answers decide, or the default of a source; else the choice is open and its metrics are missing.

    Raises:
        InvalidInputError: an answer is missing, answers contradict each other, or a choice that its guide does not
            offer; the message names them and the resolution.

    Examples:
        >>> answers = {
        ...     "number_of_classes": 8, "class_scores_available": True, "decision_rule": "argmax",
        ...     "unequal_severity": False, "unequal_interest": False, "prevalences_representative": False,
        ...     "class_contribution": "equal", "calibration_assessment": False,
        ...     "dependent_cases": False, "invalid_outputs": False,
        ... }
        >>> found = recommend(ProblemFingerprint(**answers))
        >>> [metric.label for metric in found.metrics]
        ['BA', 'TPR', 'AUROC']
        >>> next(rejected.reason for rejected in found.step("S3").rejected if rejected.metric == "TNR")
        'With two classes it is the sensitivity of the other class; with more it is dominated by the rest.'
    """
    return recommend_by(load_method(), fingerprint, choices)


def recommend_by(
    method: Method, fingerprint: ProblemFingerprint, choices: GivenChoices | None
) -> Recommendation:
    """`recommend` by another recommendation document."""
    decided = check_choices(method, choices)
    going = walk(method, fingerprint, decided)
    _refuse_contradictions(method, fingerprint)
    if going.needed:
        raise InvalidInputError(
            f"these answers are missing: {', '.join(_named(method, going.needed))}.",
            field=going.needed[0],
            hint="Answer them; others may follow from the answers.",
        )
    _refuse_forced(going, decided)
    steps = tuple(step_of(method, found, fingerprint) for found in going.steps)
    return Recommendation(
        method_version=method.meta.version,
        fingerprint=fingerprint,
        choices=dict(decided),
        steps=steps,
        warnings=warnings_among(steps, method.relations),
        advice=tuple(_advice(rule, fingerprint) for rule in going.advice),
        displays=tuple(rule.display for rule in going.advice if rule.display is not None),
        unused=_unused(method, fingerprint, decided, going),
    )


def check_choices(method: Method, choices: GivenChoices | None) -> Choices:
    """Choices as tuples of options.

    Raises:
        InvalidInputError: no such guide or option, or several where only one is possible.
    """
    checked: dict[str, tuple[str, ...]] = {}
    known = {guide.id: guide for guide in method.guides}
    for name, given in (choices or {}).items():
        options = tuple(str(option) for option in (given if isinstance(given, list | tuple) else (given,)))
        if name not in known:
            raise InvalidInputError(
                f"there is no guide {name[:80]!r}.", field="choices", hint=f"Known: {', '.join(known)}."
            )
        offered = tuple(option.id for option in known[name].options)
        if not options or not set(options) <= set(offered) or (len(options) > 1 and not known[name].several):
            how_many = "one or more" if known[name].several else "one"
            raise InvalidInputError(
                f"{name} offers {how_many} of {', '.join(offered)}, got {', '.join(options)[:80]!r}.",
                field="choices",
            )
        checked[name] = options
    return MappingProxyType(checked)


def _refuse_contradictions(method: Method, fingerprint: ProblemFingerprint) -> None:
    if found := contradictions_in(method, fingerprint):
        first = found[0]
        fields = tuple(first.answers)
        raise InvalidInputError(
            f"{', '.join(_named(method, fields))} contradict each other: {first.explanation}",
            field=fields[0],
            hint=" Or: ".join(resolution.text for resolution in first.resolutions),
        )


class ForbiddenChoice(NamedTuple):
    """A person's choice for which the answers allow another option only."""

    guide: str
    option: str
    """the only allowed option"""
    source: str


def forbidden_choices(fingerprint: ProblemFingerprint, choices: Choices) -> tuple[ForbiddenChoice, ...]:
    """The choices that `recommend` would refuse for these answers."""
    return tuple(_forbidden(walk(load_method(), fingerprint, choices), choices))


def _forbidden(going: WalkResult, choices: Choices) -> Iterator[ForbiddenChoice]:
    for step in going.steps:
        row = step.rows[-1]
        guide, option = row.guide, row.forced_option
        if guide is not None and option is not None and choices.get(guide, (option,)) != (option,):
            yield ForbiddenChoice(guide, option, row.source)


def _refuse_forced(going: WalkResult, choices: Choices) -> None:
    for guide, option, source in _forbidden(going, choices):
        raise InvalidInputError(
            f"in {guide} only {option} is right for these answers ({source}).",
            field="choices",
            hint=f"Leave {guide} out of the choices.",
        )


def _named(method: Method, fields: Sequence[str]) -> list[str]:
    return [f"{method.question(field).id} ({field})" for field in fields]


def _advice(rule: AdviceRule, fingerprint: ProblemFingerprint) -> Advice:
    return Advice(
        id=rule.id,
        category=rule.category,
        pitfall=rule.pitfall,
        advice=rule.advice,
        values={name: getattr(fingerprint, name) for name in rule.values},
        caveat=rule.caveat,
        confidence=rule.confidence,
        source=rule.source,
    )


def _unused(
    method: Method, fingerprint: ProblemFingerprint, choices: Choices, going: WalkResult
) -> tuple[UnusedAnswer, ...]:
    """Unused answers and choices: an answer is used if it would be asked for, a choice if its guide was reached."""
    used = used_answers(method, fingerprint, choices)
    fields = [field for field in fingerprint.answered_fields() if field not in used]
    asked = {guide for step in going.steps for decision in step.decisions for guide in decision.guides()}
    return (
        *(UnusedAnswer(item=field, value=getattr(fingerprint, field)) for field in fields),
        *(UnusedAnswer(item=name, value=options) for name, options in choices.items() if name not in asked),
    )
