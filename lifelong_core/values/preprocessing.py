"""Preprocessing of images to the model's input, as one typed document stored with the model.

Only `lifelong_core.images` implements it.
"""

from typing import Literal, Self, cast

from pydantic import ConfigDict, Field, model_validator

from lifelong_core.values.documents import FailFastModel


class Resize(FailFastModel):
    """Scale the image before the crop.

    `exact` gives (height, width) and may distort. `shortest_edge` keeps the aspect ratio and brings the shorter edge to
    `height`, which equals `width`; the longer edge is rounded down. A crop follows.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["exact", "shortest_edge"] = "exact"
    height: int = Field(gt=0, le=8192)
    width: int = Field(gt=0, le=8192)
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] = "bilinear"

    @model_validator(mode="after")
    def _has_one_shortest_edge(self) -> Self:
        if self.mode == "shortest_edge" and self.height != self.width:
            raise ValueError(
                "height and width must be equal in mode shortest_edge: both are the shorter edge"
            )
        return self

    def can_leave(self, height: int, width: int) -> bool:
        """Whether some image is at least (height, width) pixels large after this step."""
        if self.mode == "shortest_edge":
            return min(height, width) <= self.height
        return height <= self.height and width <= self.width


class CentreCrop(FailFastModel):
    """Cut the central (height, width) out of the resized image."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    height: int = Field(gt=0, le=8192)
    width: int = Field(gt=0, le=8192)


class Preprocessing(FailFastModel):
    """Decode -> orient by EXIF -> convert to `colour` -> resize -> crop -> scale to 0..1 -> normalise -> `layout`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    colour: Literal["rgb", "grey"] = "rgb"
    resize: Resize | None = None
    centre_crop: CentreCrop | None = None
    mean: tuple[float, ...] = Field(
        default=(0.0, 0.0, 0.0), description="Per channel, on the 0..1 scale; 0 where it is left out."
    )
    standard_deviation: tuple[float, ...] = Field(
        default=(1.0, 1.0, 1.0), description="Per channel, on the 0..1 scale; 1 where it is left out."
    )
    layout: Literal["NCHW", "NHWC"] = "NCHW"

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, document: object) -> object:
        """Fill in missing mean and standard deviation, one value for each channel."""
        if not isinstance(document, dict):
            return document
        given = cast("dict[str, object]", document)
        return (
            {"mean": (0.0,), "standard_deviation": (1.0,), **given}
            if given.get("colour") == "grey"
            else given
        )

    @property
    def channels(self) -> int:
        """3 for rgb, 1 for grey."""
        return 3 if self.colour == "rgb" else 1

    @property
    def keeps_values(self) -> bool:
        """Whether the input keeps the scale 0..1, because mean and standard deviation do not change it."""
        return set(self.mean) == {0.0} and set(self.standard_deviation) == {1.0}

    @model_validator(mode="after")
    def _fits_channels(self) -> Self:
        for name in ("mean", "standard_deviation"):
            if len(getattr(self, name)) != self.channels:
                raise ValueError(f"{name} needs {self.channels} value(s), one per channel of {self.colour}")
        crop, resize = self.centre_crop, self.resize
        if crop and resize and not resize.can_leave(crop.height, crop.width):
            raise ValueError("centre_crop is larger than what resize leaves")
        if min(self.standard_deviation) <= 0:
            raise ValueError("standard_deviation must be positive")
        return self
