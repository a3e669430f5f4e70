"""Contradictions between answers, with an explanation and resolutions."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from pydantic import Field

from lifelong_core.design.method.loader import load_method
from lifelong_core.design.method.schema import Method, Resolution
from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.values.arrays import Floats
from lifelong_core.values.documents import Frozen

THRESHOLD_TOLERANCE = 0.005
"""Thresholds that differ by less count as equal, since costs are often rounded."""


class Contradiction(Frozen):
    """Answers that contradict each other, with ways to resolve it."""

    id: str
    answers: Mapping[str, Any] = Field(description="The answers that contradict each other, by field.")
    explanation: str
    resolutions: tuple[Resolution, ...] = Field(
        description="Ways to resolve the contradiction; None withdraws an answer."
    )


def contradictions(fingerprint: ProblemFingerprint) -> tuple[Contradiction, ...]:
    """All contradictions between answers, including answers that affect nothing.

    Examples:
        >>> found = contradictions(ProblemFingerprint(number_of_classes=5, decision_rule="target_value"))
        >>> found[0].explanation
        'A target value fixes one cut-off on one score. With three or more classes there is no such cut-off.'
        >>> found[0].resolutions[0].answers
        {'decision_rule': None}
    """
    return contradictions_in(load_method(), fingerprint)


def contradictions_in(method: Method, fingerprint: ProblemFingerprint) -> tuple[Contradiction, ...]:
    """`contradictions` by another recommendation document."""
    answers = fingerprint.answers()
    stated = (
        _contradiction(fingerprint, rule.id, tuple(rule.when.fields()), rule.explanation, *rule.resolutions)
        for rule in method.contradictions
        if rule.when.holds(answers)
    )
    return (
        *stated,
        *_sizes(method, fingerprint),
        *_costs(fingerprint),
        *_weights(fingerprint),
        *_threshold(fingerprint),
    )


def _contradiction(
    fingerprint: ProblemFingerprint,
    name: str,
    fields: tuple[str, ...],
    explanation: str,
    *resolutions: Resolution,
) -> Contradiction:
    answers = {field: getattr(fingerprint, field) for field in dict.fromkeys(fields)}
    return Contradiction(id=name, answers=answers, explanation=explanation, resolutions=resolutions)


def _withdraw(field: str, text: str) -> Resolution:
    return Resolution(text=text, answers={field: None})


def _sizes(method: Method, fingerprint: ProblemFingerprint) -> Iterator[Contradiction]:
    """Values for another number of classes."""
    classes = fingerprint.number_of_classes
    if classes is None:
        return
    costs, target = fingerprint.costs, fingerprint.target_class
    fits = {
        "costs": costs is None or (len(costs) == classes and len(costs[0]) in (classes, classes + 1)),
        "class_weights": fingerprint.class_weights is None or len(fingerprint.class_weights) == classes,
        "target_prevalences": (
            fingerprint.target_prevalences is None or len(fingerprint.target_prevalences) == classes
        ),
        "target_class": target is None or target < classes,
    }
    for field, fit in fits.items():
        if not fit:
            yield _contradiction(
                fingerprint,
                f"{field}_of_other_classes",
                ("number_of_classes", field),
                f"There are {classes} classes, numbered from 0 to {classes - 1}, and another answer does not fit them:"
                f" {method.question(field).name}.",
                _withdraw(field, "Give it again, for these classes."),
                _withdraw("number_of_classes", "Correct the number of classes."),
            )


def _error_costs(fingerprint: ProblemFingerprint) -> Floats:
    """The cost of each error above that of the correct decision; abstaining is no error."""
    costs = np.asarray(fingerprint.costs, dtype=float)
    classes = costs.shape[0]
    if costs.shape[1] not in (classes, classes + 1):
        return np.empty(0)  # reported by another contradiction
    over_correct = costs[:, :classes] - np.diag(costs)[:, np.newaxis]
    return over_correct[~np.eye(classes, dtype=bool)]


def _costs(fingerprint: ProblemFingerprint) -> Iterator[Contradiction]:
    """Costs that contradict the answers about severity and about costs."""
    if fingerprint.costs is None:
        return
    if fingerprint.costs_available is False:
        yield _contradiction(
            fingerprint,
            "costs_against_availability",
            ("costs_available", "costs"),
            "You said that the mix-ups have no agreed costs, but there are costs.",
            Resolution(text="Say that costs are available.", answers={"costs_available": True}),
            _withdraw("costs", "Withdraw the costs."),
        )
    if fingerprint.unequal_severity is None:
        return
    errors = _error_costs(fingerprint)
    equal = bool(np.isclose(errors[1:], errors[:-1]).all())
    if not errors.size or equal is not fingerprint.unequal_severity:
        return
    said = "some mix-ups are worse than others" if equal else "all mix-ups are equally bad"
    yield _contradiction(
        fingerprint,
        "costs_against_severity",
        ("unequal_severity", "costs"),
        f"You said that {said}, but the costs {'are the same for all' if equal else 'differ'}.",
        Resolution(text="Change the answer about severity.", answers={"unequal_severity": not equal}),
        _withdraw("costs", "Give other costs."),
    )


def _weights(fingerprint: ProblemFingerprint) -> Iterator[Contradiction]:
    """Class weights that contradict the answer about interest."""
    weights, unequal = fingerprint.class_weights, fingerprint.unequal_interest
    if weights is None or unequal is None or (len(set(weights)) > 1) is unequal:
        return
    said = "some classes matter more" if unequal else "all classes matter the same"
    yield _contradiction(
        fingerprint,
        "weights_against_interest",
        ("unequal_interest", "class_weights"),
        f"You said that {said}, but the weights {'are all the same' if unequal else 'differ'}.",
        Resolution(text="Change the answer about interest.", answers={"unequal_interest": not unequal}),
        _withdraw("class_weights", "Give other weights."),
    )


def _threshold(fingerprint: ProblemFingerprint) -> Iterator[Contradiction]:
    """A risk threshold that weighs the errors differently from the other answers."""
    risk = fingerprint.risk_threshold
    is_used = (
        fingerprint.decision_rule == "cost_benefit" and fingerprint.threshold_perspective != "explicit_costs"
    )
    if risk is None or not is_used:
        return
    if fingerprint.unequal_severity is False and abs(risk - 0.5) > THRESHOLD_TOLERANCE:
        yield _contradiction(
            fingerprint,
            "threshold_against_severity",
            ("unequal_severity", "risk_threshold"),
            f"To act above a risk of {risk:g} says that one missed case weighs as much as {(1 - risk) / risk:.3g}"
            " false alarms, but you said that all mix-ups are equally bad.",
            Resolution(text="Say that some mix-ups are worse.", answers={"unequal_severity": True}),
            Resolution(text="Act above a risk of one half.", answers={"risk_threshold": 0.5}),
        )
    implied = _implied_threshold(fingerprint)
    if implied is not None and abs(risk - implied) > THRESHOLD_TOLERANCE:
        yield _contradiction(
            fingerprint,
            "threshold_against_costs",
            ("costs", "risk_threshold", "target_class"),
            f"By these costs one should act above a risk of {implied:.3g}, but a threshold of {risk:g} was given.",
            Resolution(text="Take the threshold of the costs.", answers={"risk_threshold": implied}),
            _withdraw("costs", "Give other costs."),
        )


def _implied_threshold(fingerprint: ProblemFingerprint) -> float | None:
    """The risk of the target class above which the costs of two classes say to act (thesis Def. 6.9)."""
    positive = fingerprint.target_class
    if fingerprint.number_of_classes != 2 or fingerprint.costs is None or positive not in (0, 1):
        return None
    errors = _error_costs(fingerprint)
    if errors.size != 2 or errors.min() <= 0:
        return None
    missed, false_alarm = float(errors[positive]), float(errors[1 - positive])
    return false_alarm / (missed + false_alarm)
