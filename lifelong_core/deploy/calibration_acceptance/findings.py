"""Findings against a calibration set: refusals and warnings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lifelong_core.deploy.calibration_acceptance.class_mix_mean import ClassMixMean, Figure
from lifelong_core.deploy.calibration_acceptance.wrong_labels import ExchangedLabels, LabelNoise
from lifelong_core.values.arrays import Floats, Integers, Logits

MINIMUM_CASES = 5
"""A set with fewer cases of a class is refused: no figure is reliable with so few."""
ADVISED_CASES = 50
"""A set with fewer independent cases of a class gets a warning."""
USEFUL_SKILL = 0.05
"""A set is refused as uninformative where the interval of its skill begins at or below 0 and ends below this."""
MARGIN = 0.05
"""Tolerated loss against the previous set: in accuracy, and in cost as a share of the constant decision's cost."""
CERTAINTY = 0.99
"""A set is refused for a difference from the previous set, or from the constant decision, only if the interval of the
difference at this confidence excludes 0."""

_LARGE_PERCENTAGE = 50
"""No network gives logits of this size and none below 0."""
_MOST_NAMES = 5
_EXCHANGE = "Check the folders or labels of these classes, and the order of the model's outputs."

Severity: TypeAlias = Literal["refusal", "warning"]


@dataclass(frozen=True)
class Finding:
    """One finding against a calibration set."""

    code: str
    severity: Severity
    text: str
    hint: str | None = None


def few_cases(counts: Integers, independent: Integers, names: Sequence[str]) -> list[Finding]:
    """Findings for classes with too few cases, and with fewer than advised.

    Args:
        counts: cases of each class, shape (C,).
        independent: independent cases, shape (C,); cases of one group count once.
        names: class names.
    """
    findings: list[Finding] = []
    lacking = [
        f"{name} ({count})"
        for name, count in zip(names, counts.tolist(), strict=True)
        if count < MINIMUM_CASES
    ]
    if lacking:
        findings.append(
            Finding(
                "too_few_cases",
                "refusal",
                f"too few cases to judge a head: fewer than {MINIMUM_CASES} of {format_names(lacking)}.",
                f"Add labelled cases: at least {MINIMUM_CASES} of each class, better {ADVISED_CASES} or more.",
            )
        )
    few = [
        f"{name} ({count})"
        for name, cases, count in zip(names, counts.tolist(), independent.tolist(), strict=True)
        if count < ADVISED_CASES and cases >= MINIMUM_CASES
    ]
    if few:
        findings.append(
            Finding(
                "few_cases",
                "warning",
                f"fewer than {ADVISED_CASES} independent cases of {format_names(few)}: estimates will be uncertain.",
            )
        )
    return findings


def sigmoid_outputs(logits: Logits) -> list[Finding]:
    """Finding where every value lies between 0 and 1, or 0 and 100 with large ones, as outputs of a sigmoid do."""
    largest = logits.max()
    if logits.min() < 0 or not (largest <= 1 or _LARGE_PERCENTAGE <= largest <= 100):
        return []
    return [
        Finding(
            "sigmoid_outputs",
            "refusal",
            f"every value lies between 0 and {1 if largest <= 1 else 100}: these look like outputs of a sigmoid, not"
            " like logits.",
            "Send what goes into the sigmoid or softmax, e.g. log(p / (1 - p)); export the graph without its last "
            "activation.",
        )
    ]


def exchanged_classes(exchanges: Sequence[ExchangedLabels], names: Sequence[str]) -> list[Finding]:
    """Findings for labels that fit other classes better than their own."""
    return [
        Finding(
            "exchanged_labels", "refusal", _exchange_text(item, [names[k] for k in item.classes]), _EXCHANGE
        )
        for item in exchanges
    ]


def noisy_labels(noise: LabelNoise | None) -> list[Finding]:
    """Finding for labels that look wrong at random."""
    if noise is None:
        return []
    return [
        Finding(
            "noisy_labels",
            "warning",
            f"about {100 * noise.rate:.2g} % of the labels look wrong at random: they contradict the model where it is "
            "most certain. Wrong labels exaggerate every estimated shift.",
            "Read the most surprising labels again, or set label_error_rate so that intervals allow for errors.",
        )
    ]


def not_crossfitted(*, grouped: bool) -> Finding:
    """Finding that the head cannot be judged on held-out cases."""
    lacking = "a class has cases of too few groups" if grouped else "a class has one case"
    return Finding(
        "not_crossfitted",
        "warning",
        f"{lacking}: the head is judged on cases that it was fitted on, so its figures are too good.",
        "Add cases of other groups (patients)." if grouped else "Add labelled cases.",
    )


def uninformative(skill: Figure, accuracy: Figure, majority: float) -> list[Finding]:
    """Finding where the head may be no better than the prevalence alone.

    A head without skill is detected by its log loss. A good head with few cases is recognised by its accuracy, because
    a few confident errors dominate its log loss.

    Args:
        skill: 1 - log loss of the head / log loss of the prevalence alone.
        accuracy: accuracy of the head.
        majority: accuracy of always predicting the most frequent class.
    """
    if skill.low > 0:
        return []
    figures = (
        f"accuracy {_percent(accuracy)}; always predicting the most frequent class: {100 * majority:.1f} %"
    )
    is_certain = skill.high < USEFUL_SKILL
    if accuracy.low > majority:
        if skill.value > 0 and not is_certain:
            return []
        return [
            Finding(
                "negative_skill",
                "refusal" if is_certain else "warning",
                "the probabilities of the head are no better than the prevalence alone, by their log loss (skill"
                f" {skill.value:.2f}, 95 % interval {skill.low:.2f} to {skill.high:.2f}; {figures}).",
                "A few wrong labels with confident outputs can do this: check the cases with the largest loss. Else add"
                " labelled cases.",
            )
        ]
    if is_certain:
        return [
            Finding(
                "no_better_than_prevalence",
                "refusal",
                f"the head is no better than deciding by prevalence alone ({figures}).",
                "Check that labels and logits belong together, row by row, and that the logits are this model's.",
            )
        ]
    return [
        Finding(
            "unclear_benefit",
            "warning",
            f"too few cases to tell whether the head is better than deciding by prevalence alone ({figures}).",
            "Add labelled cases.",
        )
    ]


def dear_decisions(saving: ClassMixMean, decision: str) -> list[Finding]:
    """Finding where the head's decisions are not cheaper than the cheapest constant decision.

    Args:
        saving: cost of the constant decision less that of the head.
        decision: name of the constant decision.
    """
    if saving.value + saving.reach(CERTAINTY) < 0:
        return [
            Finding(
                "dearer_than_constant",
                "refusal",
                f"the head's decisions cost more than always deciding {decision}.",
                "Check the labels, and the costs of the task.",
            )
        ]
    if saving.value <= 0:
        return [
            Finding(
                "no_cheaper_than_constant",
                "warning",
                f"at these costs and this class mix, the head's decisions are not cheaper than always deciding "
                f"{decision}.",
            )
        ]
    return []


def worse_than_previous(
    accuracy: tuple[ClassMixMean, ClassMixMean], cost: tuple[ClassMixMean, ClassMixMean], unit: float
) -> list[Finding]:
    """Finding where the model is far worse on this set than on its previous one, under the same class mix.

    Args:
        accuracy: accuracy on the previous set, and on this one.
        cost: expected cost on the previous set, and on this one.
        unit: the cost of the cheapest constant decision, less the smallest possible one.
    """
    losses = _losses(accuracy, cost, (accuracy[0] - accuracy[1], cost[1] - cost[0]), unit)
    if not losses:
        return []
    return [
        Finding(
            "worse_than_previous",
            "refusal",
            f"the model does far worse on this set than on its previous one: {', '.join(losses)}, under the same "
            "class mix.",
            "Check preprocessing and labels: both sets must come from the same model.",
        )
    ]


def worse_than_promoted(
    accuracy: tuple[ClassMixMean, ClassMixMean],
    cost: tuple[ClassMixMean, ClassMixMean],
    difference: tuple[ClassMixMean, ClassMixMean],
    unit: float,
    names: tuple[str, str],
) -> list[Finding]:
    """Finding where a model is far worse on its set than the promoted model of its task on its own set.

    Args:
        accuracy: accuracy of the promoted model, and of this one.
        cost: expected cost of the promoted model, and of this one.
        difference: loss of accuracy and increase of the cost against the promoted model.
        unit: the cost of the cheapest constant decision, less the smallest possible one.
        names: names of this model and of the promoted one.
    """
    losses = _losses(accuracy, cost, difference, unit)
    if not losses:
        return []
    return [
        Finding(
            "worse_than_promoted",
            "warning",
            f"{names[0]} does worse than the promoted {names[1]} on its set: {', '.join(losses)}, under the same class "
            "mix.",
            "Check the preprocessing of this version, and the labels of its set.",
        )
    ]


def _losses(
    accuracy: tuple[ClassMixMean, ClassMixMean],
    cost: tuple[ClassMixMean, ClassMixMean],
    difference: tuple[ClassMixMean, ClassMixMean],
    unit: float,
) -> list[str]:
    """Texts for the figures that are significantly worse by the margin; the first of each pair is the reference."""
    losses: list[str] = []
    loss, rise = difference
    if loss.value >= MARGIN and loss.value > loss.reach(CERTAINTY):
        losses.append(f"accuracy {100 * accuracy[1].value:.1f} % instead of {100 * accuracy[0].value:.1f} %")
    if unit > 0 and rise.value >= MARGIN * unit and rise.value > rise.reach(CERTAINTY):
        losses.append(f"expected cost {cost[1].value:.4g} instead of {cost[0].value:.4g}")
    return losses


def format_names(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def constant_costs(costs: Floats, class_mix: Floats) -> Floats:
    """Expected cost of each constant decision, shape (D,)."""
    return class_mix @ costs


def _exchange_text(item: ExchangedLabels, names: Sequence[str]) -> str:
    own, other = 100 * item.accuracy, 100 * item.exchanged_accuracy
    if len(names) == 2:
        return (
            f"the labels of {names[0]} and {names[1]} look swapped: {other:.0f} % of these cases look like the other "
            f"class, {own:.0f} % like their own."
        )
    pairs = zip(names, [*names[1:], names[0]], strict=True)
    circle = format_names([f"cases labelled {name} look like {following}" for name, following in pairs])
    return (
        f"the labels of {len(names)} classes look exchanged: {circle} ({other:.0f} % of the cases; {own:.0f} % look "
        "like their own class)."
    )


def _percent(figure: Figure) -> str:
    return f"{100 * figure.value:.1f} % ({100 * figure.low:.1f} to {100 * figure.high:.1f} %)"
