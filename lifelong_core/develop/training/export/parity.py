"""Does the exported graph give the logits of the trained model?"""
# pyright: reportUnknownMemberType=false

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lifelong_core.develop.training.export.onnx_classifier import OnnxClassifier
from lifelong_core.develop.training.result import Parity
from lifelong_core.values.errors import InvalidInputError

RELATIVE_TOLERANCE = 1e-4
"""Of the largest logit, at least 1: float32 sums of some ten thousand terms in another order differ by about a tenth
of it; a wrong operator, or another normalisation, differs by far more."""
MOST_IMAGES = 64


def check_parity(
    module: nn.Module,
    classifier: OnnxClassifier,
    inputs: NDArray[np.float32],
    through_service: Sequence[Callable[[], NDArray[np.float32]]] = (),
) -> Parity:
    """Compare the logits of torch and of the exported graph.

    Args:
        module: the trained model.
        classifier: the exported graph.
        inputs: (n, C, h, w), preprocessed by training.
        through_service: for the first of these images, the logits of the graph by the service's own way from the file.

    Raises:
        InvalidInputError: they differ by more than the tolerance, or those of torch are not finite.
    """
    reference = copy.deepcopy(module).eval().float().cpu()
    with torch.inference_mode():
        expected = reference(torch.from_numpy(inputs)).numpy()
    if not np.isfinite(expected).all():
        raise InvalidInputError(
            "the trained model gives logits that are not finite.",
            field="learning_rate",
            hint="Give a lower learning rate in the recipe.",
        )
    # Once together and once alone: an axis that was fixed at export shows in one of them.
    found = classifier.logits(inputs)
    alone = np.concatenate([classifier.logits(inputs[at : at + 1]) for at in range(min(4, len(inputs)))])
    difference = max(_difference(expected, found), _difference(expected[: len(alone)], alone))
    served = [logits() for logits in through_service]
    difference_served = _difference(expected[: len(served)], np.array(served)) if served else 0.0
    worst, tolerance = max(difference, difference_served), _tolerance(expected)
    if worst > tolerance:
        raise InvalidInputError(
            f"the exported graph gives other logits than the trained model: they differ by {worst:.3g}, at most"
            f" {tolerance:.3g} is allowed.",
            field="architecture",
            hint="The model was not registered. Choose another architecture, and report this one.",
        )
    return Parity(
        images=len(inputs),
        largest_difference=difference,
        largest_difference_through_service=difference_served,
        tolerance=tolerance,
    )


def _tolerance(expected: NDArray[np.float32]) -> float:
    return RELATIVE_TOLERANCE * max(1.0, float(np.abs(expected).max()))


def _difference(expected: NDArray[np.float32], found: NDArray[np.float32]) -> float:
    """Largest absolute difference; infinite where a value is not finite."""
    difference = np.abs(expected.astype(np.float64) - found)
    return float(difference.max()) if np.isfinite(difference).all() else float("inf")
