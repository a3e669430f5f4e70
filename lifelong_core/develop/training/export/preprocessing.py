"""The preprocessing of a recipe: timm's evaluation transform of its architecture, at its size and in its colours."""

from lifelong_core.develop.evaluation_transforms import describe_timm_transform, timm_data_config
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing


def training_preprocessing(recipe: Recipe) -> Preprocessing:
    """The preprocessing with which a model of this recipe is trained, evaluated and served.

    Raises:
        InvalidInputError: timm has no such architecture, or its transform has a step that preprocessing lacks.
    """
    try:
        config = timm_data_config(recipe.architecture, size=recipe.image_size)
    except InvalidInputError as error:
        error.field = error.field or "architecture"
        raise
    if recipe.colour == "grey":
        _, height, width = config.input_size
        config = config.model_copy(
            update={
                "input_size": (1, height, width),
                "mean": (_average(config.mean),),
                "std": (_average(config.std),),
            }
        )
    return Preprocessing.model_validate(describe_timm_transform(config))


def _average(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)
