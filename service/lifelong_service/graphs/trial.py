"""Trial runs of a graph when it is loaded: checks of its outputs, warm-up and capture of each batch size."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.arrays import Logits
from lifelong_core.values.errors import InvalidInputError, LifelongError
from lifelong_core.values.mistaken_probabilities import look_like_probabilities
from lifelong_service.graphs.captures import CaptureError
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.graphs.runs import BoundRun
from lifelong_service.graphs.runtime_errors import describe_failure, lacks_memory
from lifelong_service.graphs.trial_images import random_colours

MIXING_TOLERANCE = 1e-3
"""Tolerance of an image's logits between batches (rounding differs), relative to the largest one."""
COARSE_MIXING_TOLERANCE = 1e-2
"""The same where products are rounded to 10 bits: half precision, and TF32 of accelerators."""
_ROUNDING = 1e-6
"""Logits below this may be nothing but rounding."""
REPETITION_TOLERANCE = 1e-6
"""Tolerance of the logits of the same batch in two runs on the CPU, relative to the largest one."""
_COLOURED_IMAGES = 8
"""Images of random colours of which two must get different logits."""


def check_outputs(classifier: Classifier, images: Sequence[NDArray[np.float32]], *, is_coarse: bool) -> None:
    """Check the logits of trial images: alone, again, and together in two orders.

    A graph with a fixed batch gets as many images as it takes: then each place of the batch is tried.

    Args:
        classifier: the loaded graph.
        images: from `trial_images`.
        is_coarse: whether products are rounded to 10 bits.

    Raises:
        InvalidInputError: they are not finite, are probabilities, differ between runs, or depend on the other images of
            the batch.
    """
    alone = np.concatenate([classifier.logits([image]) for image in images])
    if not np.isfinite(alone).all():
        raise InvalidInputError(
            f"the model gives NaN or infinity for {_first_not_finite(alone)}.",
            field="onnx",
            hint="Check the export, and mean and standard_deviation of the preprocessing.",
        )
    tolerance = COARSE_MIXING_TOLERANCE if is_coarse else MIXING_TOLERANCE
    largest = float(np.abs(alone).max())
    repetition = (tolerance if is_coarse else REPETITION_TOLERANCE) * largest
    if not np.allclose(classifier.logits(images[:1]), alone[:1], rtol=0, atol=repetition):
        raise InvalidInputError(
            "the model answers the same image differently from run to run: it draws random numbers or keeps a state.",
            field="onnx",
            hint="Export it in evaluation mode: model.eval() before torch.onnx.export.",
        )
    size = classifier.batch_sizes[-1] if classifier.has_fixed_batch and classifier.batch_sizes else 1
    order = [place % len(images) for place in range(max(size, len(images)))]
    for places in (order, order[::-1]):
        together = classifier.logits([images[place] for place in places])
        if not np.allclose(together, alone[places], rtol=0, atol=tolerance * largest + _ROUNDING):
            raise InvalidInputError(
                "the model mixes the images of a batch: the same image got another answer beside another one.",
                field="onnx",
                hint="Export it in evaluation mode (batch normalisation with its learnt statistics).",
            )
    if look_like_probabilities(alone):
        raise InvalidInputError(
            "the model gives probabilities, expected logits.",
            field="onnx",
            hint="Export it without the softmax or sigmoid at its end. If they are logits all the same, subtract 100"
            " from all of them in the graph: decisions stay the same.",
        )


def check_answers_differ(classifier: Classifier) -> None:
    """Check that different images get different logits.

    Raises:
        InvalidInputError: every image of random colours gets the same ones, except for rounding.
    """
    images = random_colours(classifier.trial_shape, classifier.preprocessing, _COLOURED_IMAGES)
    for some in (images[:2], images):  # a large graph takes seconds for all of them
        logits = classifier.logits(some)
        if np.ptp(logits, axis=0).max() > np.finfo(np.float32).eps * np.abs(logits).max():
            return
    raise InvalidInputError(
        f"the model gives the same logits for {_COLOURED_IMAGES} different images.",
        field="onnx",
        hint="Check the export and the trained weights.",
    )


def _first_not_finite(logits: Logits) -> str:
    first = int(np.argmin(np.isfinite(logits).all(axis=1)))
    return ("a plain grey image", "a gradient from black to white", "an image of random colours")[first]


def warm_up(classifier: Classifier, image: NDArray[np.float32]) -> None:
    """Run each batch size once: a GPU chooses kernels and allocates memory at the first batch of a size.

    Raises:
        InvalidInputError: the largest batch takes more memory than there is.
    """
    # The largest first: its memory is enough for the others, while memory of small batches would not be used for it.
    for size in reversed(classifier.batch_sizes or ()):
        classifier.logits([image] * size)


def capture(classifier: Classifier, images: Sequence[NDArray[np.float32]]) -> None:
    """Capture the kernels of each batch size.

    Raises:
        CaptureError: they cannot be captured, or give other outputs when they are replayed.
        ConfigurationError: the host cannot lock memory for the batches.
        InvalidInputError: the largest batch takes more memory than there is.
    """
    runs = classifier.runs
    if not isinstance(runs, BoundRun):
        raise TypeError("only runs on a GPU are captured")
    for size in reversed(classifier.batch_sizes or ()):
        try:
            runs.capture(images, size)
        except (CaptureError, LifelongError):
            raise
        except Exception as error:  # ONNX Runtime has an exception class for each of its status codes
            reason = describe_failure(error)
            if not lacks_memory(error):
                raise CaptureError(reason) from error
            raise InvalidInputError(
                f"the model fails on a batch of {size} images: {reason}",
                field="onnx",
                hint="Raise LIFELONG_GPU_MEMORY_BYTES, or lower LIFELONG_MAXIMUM_BATCH_SIZE.",
            ) from error
