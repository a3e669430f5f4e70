"""Images: from the bytes of a file to the input of a model.

Predictions and task fingerprints share it. All functions may run in several threads.
"""

from lifelong_core.images.decoding import FORMATS, FULL_PIXELS, IMAGE_SUFFIXES, decode, reduction
from lifelong_core.images.steps import input_pixels, model_input, most_pixels, preprocess, visible_box

__all__ = [
    "FORMATS",
    "FULL_PIXELS",
    "IMAGE_SUFFIXES",
    "decode",
    "input_pixels",
    "model_input",
    "most_pixels",
    "preprocess",
    "reduction",
    "visible_box",
]
