"""Whether both models look at the same places of the images that they decide on."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from lifelong_core.design.validation.values.metric_value import Number
from lifelong_core.values.documents import Frozen


class LocalizationScore(Frozen):
    """One stability score over the images."""

    name: str
    mean: Number = Field(description="Over the images in which it is defined; None: in none.")
    low: Number = Field(description="Lower end of the interval of the mean; None: fewer than two images.")
    high: Number
    defined: int = Field(description="Images in which it is defined.")
    unrelated: Number = Field(
        description="Mean of the same score between maps of different images: what places give that do not depend on"
        " the image, such as its centre. None: in no pair defined."
    )


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
    grid: int = Field(description="What both models see of an image is cut into grid x grid patches.")
    fill: Literal["mean", "blurred"] = Field(description="What hides a patch.")
    threshold: float = Field(
        description="Patches count as positive whose fall is at least this share of the largest of their map."
    )
    level: float = Field(description="Nominal coverage of the intervals.")
    new_without_places: int = Field(
        description="Images in which no hidden patch lowers the score of the new model noticeably."
    )
    current_without_places: int
    scores: tuple[LocalizationScore, ...]
    examples: tuple[LocalizationExample, ...] = Field(description="Least stable first.")
