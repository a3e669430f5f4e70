"""An augmentation policy as a document; `augmentation.transform` applies it."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from lifelong_core.values.documents import Frozen, FrozenDocument

Operation: TypeAlias = Literal[
    "identity",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
    "rotate",
    "brightness",
    "contrast",
    "saturation",
    "sharpness",
    "posterize",
    "solarize",
    "autocontrast",
    "equalize",
    "gaussian_blur",
    "horizontal_flip",
    "vertical_flip",
]
"""Operations of torchvision's v2 transforms; none of them changes the class of most medical images, but flips and
rotations do where left and right, or up and down, matter."""


class Step(Frozen):
    """One operation of a sub-policy."""

    operation: Operation
    probability: float = Field(ge=0, le=1)
    magnitude: float = Field(default=0.0, ge=0, le=1)
    """0: no effect, 1: the largest effect; the direction is random where there are two. Unused by operations without
    a strength."""


SubPolicy: TypeAlias = Annotated[tuple[Step, ...], Field(max_length=20)]
"""Steps that are applied one after another."""


class AugmentationPolicy(FrozenDocument):
    """For each image one sub-policy is drawn at random, and its steps are applied in order."""

    sub_policies: Annotated[tuple[SubPolicy, ...], Field(max_length=100)] = ()
    """empty: images are not changed"""
    searched_on: str | None = None
    """task that the policy was searched for; None: it was written by hand"""


LIGHT = AugmentationPolicy(
    sub_policies=((Step(operation="horizontal_flip", probability=0.5),),),
)
"""The light augmentation of the thesis (section 6.1.4), beside the random crop that every training applies."""
