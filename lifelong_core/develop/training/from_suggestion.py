"""From a suggestion of the knowledge base, `SCENARIO:SOURCE`, to the recipe that follows it."""

from typing import Any

from lifelong_core.develop.knowledge.entry import SCENARIOS, KnowledgeEntry, Scenario
from lifelong_core.develop.knowledge.transferable import (
    best_architecture,
    searched_policy,
    transferable_without_images,
)
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import check_name
from lifelong_core.values.validation_errors import suggest

_FIELD = "suggestion"
_WITHOUT_IMAGES = "Architecture and augmentation policy are transferred without images."


def parse_suggestion(text: str) -> tuple[Scenario, str]:
    """Scenario and source task of `SCENARIO:SOURCE`.

    Raises:
        InvalidInputError: it is not of this form, or there is no such scenario.

    Examples:
        >>> parse_suggestion("augmentation:skin-lesions")
        ('augmentation', 'skin-lesions')
    """
    named, colon, source = text.partition(":")
    known: dict[str, Scenario] = {scenario: scenario for scenario in SCENARIOS}
    if not colon or named not in known:
        raise InvalidInputError(
            f"expected SCENARIO:SOURCE, got {text[:80]!r}.",
            field=_FIELD,
            hint=suggest(named, list(SCENARIOS)) or f"Scenarios: {', '.join(SCENARIOS)}.",
        )
    return known[named], check_name(source, field=_FIELD)


def recipe_from_suggestion(
    scenario: Scenario, source: KnowledgeEntry, base: Recipe | None = None, *, measure: str = "BA"
) -> Recipe:
    """The recipe that transfers one thing from a source task; everything else stays as in `base`.

    Args:
        scenario: what is transferred.
        source: the entry of the source task.
        base: a recipe without a scenario; None: the uninformed baseline.
        measure: acronym of the measure by which the source's best architecture is found.

    Raises:
        InvalidInputError: the base has a scenario, or the entry holds nothing to transfer.
    """
    base = Recipe() if base is None else base
    if base.scenario is not None:
        raise InvalidInputError(
            f"the recipe follows a suggestion already: {base.scenario}:{base.source}.",
            field="recipe",
            hint="Give a recipe without scenario and source, or no suggestion.",
        )
    name = source.card.name
    changes: dict[str, Any] = {"scenario": scenario, "source": name}
    if scenario == "architecture":
        best = best_architecture(source, measure)
        if best is None:
            raise InvalidInputError(
                f"the knowledge base names no architecture that {name} was trained with.",
                field=_FIELD,
                hint=_contact(source) or f"Train {name} here, or choose another scenario.",
            )
        changes |= {"architecture": best.name, "initial_weights": best.initial_weights}
    elif scenario == "augmentation":
        policy = searched_policy(source)
        if policy is None:
            raise InvalidInputError(
                f"no augmentation policy was searched for {name}.",
                field=_FIELD,
                hint=f"Search it where its images are: `lifelong search-augmentation {name} --data FOLDER`."
                f"{_contact(source)}",
            )
        changes["augmentation"] = policy.to_document()
    return Recipe.from_document(base.to_document() | changes)


def check_source_data(recipe: Recipe, source: KnowledgeEntry | None, *, is_given: bool) -> None:
    """Make sure that images of the source task are given where the recipe trains on them, and only there.

    Args:
        recipe: what is asked for.
        source: the entry of the source task; None: the knowledge base has none.
        is_given: whether images of the source are given.

    Raises:
        InvalidInputError: they are missing, or not needed.
    """
    if is_given == recipe.needs_source_data:
        return
    if is_given:
        raise InvalidInputError(
            "the recipe trains on images of no other task.",
            field="source_data",
            hint="Leave them out, or choose the scenario pretraining or co_training.",
        )
    raise InvalidInputError(
        f"the scenario {recipe.scenario} trains on images of {recipe.source}, which a knowledge base does not hold.",
        field="source_data",
        hint=f"Give their folder. {instead_of_images(source) or _WITHOUT_IMAGES}",
    )


def instead_of_images(source: KnowledgeEntry | None) -> str:
    """What to do where the images of a source are not here, in sentences."""
    if source is None:
        return ""
    return f"{transferable_without_images(source) or ''}{_contact(source)}".strip()


def _contact(source: KnowledgeEntry) -> str:
    return f" Contact: {source.contact}." if source.contact else ""
