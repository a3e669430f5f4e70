"""Whether both models look at the same places of the images that they decide on."""

from collections.abc import Mapping

from pydantic import Field

from lifelong_core.design.validation.values.metric_value import Number
from lifelong_core.documents import Frozen


class LocalizationScore(Frozen):
    """One stability score over the images."""

    name: str
    mean: Number = Field(description="Over the images in which it is defined; None: in none.")
    defined: int = Field(description="Images in which it is defined.")


class LocalizationExample(Frozen):
    """One image with the places that matter to each model."""

    name: str | None
    class_index: int = Field(description="Class whose score is looked at: the decision of the new model.")
    true_class: int
    current_overlay: str = Field(description="PNG in base64: the image with the places of the current model.")
    new_overlay: str = Field(description="The same, of the new model.")
    scores: Mapping[str, Number] = Field(description="Stability scores of this image.")


class LocalizationComparison(Frozen):
    """Agreement of the occlusion maps of both models: how much a class's score falls where a patch is hidden."""

    images: int
    grid: int = Field(description="The image is cut into grid x grid patches.")
    threshold: float = Field(description="Patches with at least this score count as positive.")
    scores: tuple[LocalizationScore, ...]
    examples: tuple[LocalizationExample, ...] = Field(description="Least stable first.")
