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
from lifelong_core.errors import InvalidInputError

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
        InvalidInputError: they differ by more than the tolerance.
    """
    reference = copy.deepcopy(module).eval().float().cpu()
    with torch.inference_mode():
        expected = reference(torch.from_numpy(inputs)).numpy()
    # Once together and once alone: an axis that was fixed at export shows in one of them.
    found = classifier.logits(inputs)
    alone = np.concatenate([classifier.logits(inputs[at : at + 1]) for at in range(min(4, len(inputs)))])
    served = [logits() for logits in through_service]
    parity = Parity(
        images=len(inputs),
        largest_difference=max(_difference(expected, found), _difference(expected[: len(alone)], alone)),
        largest_difference_through_service=_difference(expected[: len(served)], np.array(served))
        if served
        else 0.0,
        tolerance=RELATIVE_TOLERANCE * max(1.0, float(np.abs(expected).max())),
    )
    worst = max(parity.largest_difference, parity.largest_difference_through_service)
    if not worst <= parity.tolerance:
        raise InvalidInputError(
            f"the exported graph gives other logits than the trained model: they differ by {worst:.3g}, at most"
            f" {parity.tolerance:.3g} is allowed.",
            field="architecture",
            hint="The model was not registered. Choose another architecture, and report this one.",
        )
    return parity


def _difference(expected: NDArray[np.float32], found: NDArray[np.float32]) -> float:
    """Largest absolute difference; infinite where a value is not finite."""
    difference = np.abs(expected.astype(np.float64) - found)
    return float(difference.max()) if np.isfinite(difference).all() else float("inf")
