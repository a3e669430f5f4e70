"""What a promotion report does not tell, in sentences."""

from collections.abc import Iterator, Sequence

from lifelong_core.promotion.evidence import Evidence
from lifelong_core.promotion.inputs import ComparedModel, HeldOutCases
from lifelong_core.promotion.localization import LocalizationComparison

ALWAYS = (
    "The intervals are those of these two models on cases like these: another training by the same recipe, or cases"
    " of other patients and devices, may give other figures."
)


def unknowns(
    found: Evidence,
    cases: HeldOutCases,
    models: Sequence[ComparedModel],
    localization: LocalizationComparison | None,
) -> Iterator[str]:
    """The sentences, the most general first."""
    cost = found.cost
    yield ALWAYS
    if cost.direction == "open" and cost.has_interval and cost.low != cost.high:
        low, high = (max(0.0, number) for number in (-cost.number("low"), cost.number("high")))
        yield (
            f"An expected cost that is up to {low:.3g} lower or {high:.3g} higher than that of the current model cannot"
            " be excluded: more cases would narrow this."
        )
    if not found.environments:
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
