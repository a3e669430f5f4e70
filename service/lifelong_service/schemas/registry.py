"""Answer of the logits of images."""

from typing_extensions import TypedDict


class ImageLogits(TypedDict):
    """Logits (N, C) of N images, and how they were preprocessed: a calibration set is sent back with this digest."""

    model: str
    logits: list[list[float]]
    preprocessing_digest: str
