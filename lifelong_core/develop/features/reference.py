"""Makes the extractor reference that institutions share."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.evaluation_transforms import timm_data_config
from lifelong_core.develop.features.backbone import Backbone
from lifelong_core.develop.features.extraction import Batch, Extraction, Progress, steady_process
from lifelong_core.develop.features.sources.limits import DEFAULT_LIMITS, Limits
from lifelong_core.develop.features.task import DEFAULT_SAMPLES, Images, open_source, survey_images
from lifelong_core.develop.fingerprints.extractor import ExtractorDocument, ExtractorReference, measure_edges
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing

IMAGE_EDGE = 256
"""Pixels, as in the thesis, section 5.1.3."""


def thesis_preprocessing(architecture: str, *, edge: int = IMAGE_EDGE) -> Preprocessing:
    """Scale to (edge, edge), which distorts; grey images become RGB; normalise as timm does for this model."""
    config = timm_data_config(architecture)
    return Preprocessing.model_validate(
        {
            "colour": "rgb",
            "resize": {"mode": "exact", "height": edge, "width": edge, "interpolation": config.interpolation},
            "mean": config.mean,
            "standard_deviation": config.std,
        }
    )


def make_extractor_reference(
    images: Images,
    backbone: Backbone,
    *,
    names: Sequence[str],
    preprocessing: Preprocessing | None = None,
    samples: int = DEFAULT_SAMPLES,
    seed: int = 0,
    batch_size: int = 32,
    threads: int | None = None,
    most_unreadable: float = 0.05,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
) -> ExtractorReference:
    """Compute the bin edges on reference images, and describe the extractor.

    All institutions that compare fingerprints need the same file: the edges of another set of images are others. The
    features of the sample are held in memory: 20 MB for 10,000 images of 512 features.

    Args:
        images: reference images, of many kinds; they need no labels.
        backbone: what computes the features.
        names: of the sets of reference images.
        preprocessing: of images; None: `thesis_preprocessing`.
        samples: images that are drawn at random; all if there are fewer.
        seed: of the draw.
        batch_size: images that the backbone gets at once.
        threads: of torch; None: one for each core of this process.
        most_unreadable: largest share of the drawn images that may be unreadable.
        limits: of images and archives.
        progress: called with the stage, the images so far, and their final number if it is known.

    Raises:
        InvalidInputError: a wrong argument, fewer than two readable images, or too many unreadable ones.
    """
    steps = preprocessing or thesis_preprocessing(backbone.architecture)
    source = open_source(images, labelled=False, limits=limits)
    survey = survey_images(source, samples=samples, seed=seed, progress=progress)
    extraction = Extraction(
        source, backbone, steps, batch_size=batch_size, most_unreadable=most_unreadable, limits=limits
    )
    batches: list[NDArray[np.float32]] = []

    def keep(batch: Batch) -> None:
        batches.append(batch.features)

    with steady_process(threads):
        extraction.run(survey.chosen, keep, progress=progress)
    if not batches:
        raise InvalidInputError("no image could be read.", field="images")
    features = np.concatenate(batches).astype(np.float64)
    document = ExtractorDocument.from_document(
        {
            "architecture": backbone.architecture,
            "weights": backbone.weights,
            "preprocessing": steps.model_dump(mode="json"),
            "reference_images": len(features),
            "reference_names": list(names),
        }
    )
    return ExtractorReference(document, measure_edges(features))
