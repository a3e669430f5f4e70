"""`fingerprint_task`: from images to the fingerprints and facts of a task."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from lifelong_core.develop.features.backbone import Backbone, load_backbone
from lifelong_core.develop.features.collection import BUILDERS, Collection
from lifelong_core.develop.features.extraction import Extraction, Progress, steady_process
from lifelong_core.develop.features.fisher import embed_task
from lifelong_core.develop.features.result import FingerprintReport, TaskFingerprints
from lifelong_core.develop.features.sampling import Survey, sample_entries
from lifelong_core.develop.features.sources.entry import DICOM_SUFFIXES, ImageSource
from lifelong_core.develop.features.sources.limits import DEFAULT_LIMITS, Limits
from lifelong_core.develop.features.sources.opening import open_images
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.images import IMAGE_SUFFIXES
from lifelong_core.values.errors import InvalidInputError

DEFAULT_SAMPLES = 10_000
"""as in the thesis, section 5.1.1, figure 5.4"""

FISHER = "fisher"
KINDS = (*BUILDERS, FISHER)
"""of fingerprints that are made of images"""

Images: TypeAlias = str | Path | Sequence[str | Path] | ImageSource


def fingerprint_task(
    images: Images,
    extractor: ExtractorReference | Path,
    backbone: Backbone | Path | None = None,
    *,
    kinds: Sequence[str] = ("histogram",),
    bins: int = 100,
    samples: int = DEFAULT_SAMPLES,
    seed: int = 0,
    labelled: bool = True,
    batch_size: int = 32,
    device: str | None = None,
    threads: int | None = None,
    most_unreadable: float = 0.05,
    limits: Limits = DEFAULT_LIMITS,
    draws: int = 2000,
    progress: Progress | None = None,
) -> TaskFingerprints:
    """Return the fingerprints and the facts of a task.

    The memory does not depend on the number of images, except for the kind `features`, which holds those of the sample.

    Args:
        images: folder, CSV, tar or zip file, several of them, or a source.
        extractor: the shared reference, or its file.
        backbone: what computes the features, or the file of its weights; None: timm's weights from the hub.
        kinds: one or more of `KINDS`; `fisher` needs labels.
        bins: of histograms.
        samples: images that are drawn at random; all if there are fewer.
        seed: of the draw.
        labelled: whether folders, CSV column and webdataset's labels are classes; for paths only.
        batch_size: images that the backbone gets at once.
        device: of torch; None: a GPU if there is one.
        threads: of torch; None: one for each core of this process.
        most_unreadable: largest share of the drawn images that may be unreadable.
        limits: of images and archives.
        draws: Monte-Carlo draws of the kind `fisher`.
        progress: called with the stage, the images so far, and their final number if it is known.

    Raises:
        InvalidInputError: a wrong argument, no readable image, too many unreadable ones, or weights that are not those
            of the extractor.
        PayloadTooLargeError: an archive is a decompression bomb.
        ConfigurationError: the weights cannot be had from the hub.
    """
    started = time.perf_counter()
    reference = read_extractor(extractor)
    _check_kinds(kinds)
    model = _backbone(backbone, reference, device)
    source = open_source(images, labelled=labelled, limits=limits)
    survey = survey_images(source, samples=samples, seed=seed, progress=progress)
    has_fisher = FISHER in kinds
    if has_fisher and len(survey.classes) < 2:
        raise InvalidInputError(
            "a Fisher embedding needs images of at least two classes.",
            field="images",
            hint="Give one sub-folder for each class, or a CSV file with labels.",
        )
    extraction = Extraction(
        source,
        model,
        reference.document.preprocessing,
        batch_size=batch_size,
        most_unreadable=most_unreadable,
        limits=limits,
    )
    builders = {kind: BUILDERS[kind](reference, bins) for kind in kinds if kind != FISHER}
    collection = Collection(survey, builders, keep_labelled=has_fisher)
    with steady_process(threads):
        extraction.run(survey.chosen, collection.add, progress=progress)
        if not collection.read:
            raise InvalidInputError("no image could be read.", field="images")
        fingerprints = collection.fingerprints(seed)
        if has_fisher:
            fingerprints[FISHER] = embed_task(
                model,
                collection.labelled(),
                extraction.decode,
                reference,
                draws=draws,
                seed=seed,
                progress=None if progress is None else lambda done: progress(FISHER, done, draws),
            )
        facts = collection.facts()
    report = FingerprintReport(
        images=survey.images,
        passed_over=survey.passed_over,
        sampled=len(survey.chosen),
        read=collection.read,
        unreadable=extraction.unreadable,
        unreadable_examples=tuple(extraction.examples),
        seed=seed,
        extractor=reference.digest,
        architecture=model.architecture,
        device=str(model.device),
        seconds=time.perf_counter() - started,
    )
    return TaskFingerprints({kind: fingerprints[kind] for kind in kinds}, facts, report)


def read_extractor(extractor: ExtractorReference | Path) -> ExtractorReference:
    """The reference, or the one in a file.

    Raises:
        InvalidInputError: the file cannot be read, or holds no reference.
    """
    if isinstance(extractor, ExtractorReference):
        return extractor
    try:
        content = extractor.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"{extractor} cannot be read ({error.strerror}).",
            field="extractor",
            hint="Make one with lifelong fingerprint extractor make, or get the shared one.",
        ) from error
    return ExtractorReference.from_bytes(content)


def open_source(images: Images, *, labelled: bool = True, limits: Limits = DEFAULT_LIMITS) -> ImageSource:
    """The source of one path, of several, or the source that is given."""
    if isinstance(images, str | Path):
        return open_images(images, labelled=labelled, limits=limits)
    if isinstance(images, Sequence):
        return open_images(*images, labelled=labelled, limits=limits)
    return images


def survey_images(
    source: ImageSource, *, samples: int, seed: int = 0, progress: Progress | None = None
) -> Survey:
    """Count the images of a source and draw a sample.

    Raises:
        InvalidInputError: there is no image.
    """

    def report(images: int) -> None:
        if progress is not None:
            progress("list", images, None)

    survey = sample_entries(source.entries(), samples=samples, seed=seed, progress=report)
    if not survey.images:
        raise InvalidInputError(
            f"there is no image; {survey.passed_over} files are none.",
            field="images",
            hint=f"Images end in {', '.join(sorted(IMAGE_SUFFIXES | DICOM_SUFFIXES))}; DICOM files need no suffix.",
        )
    if progress is not None:
        progress("list", survey.images, survey.images)
    return survey


def _backbone(
    backbone: Backbone | Path | None, reference: ExtractorReference, device: str | None
) -> Backbone:
    if not isinstance(backbone, Backbone):
        document = reference.document
        backbone = load_backbone(
            document.architecture,
            backbone,
            pretrained=backbone is None,
            channels=document.preprocessing.channels,
            device=device,
        )
    backbone.check(reference)
    return backbone


def _check_kinds(kinds: Sequence[str]) -> None:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise InvalidInputError(
            f"expected kinds of {', '.join(KINDS)}, got {', '.join(unknown)[:100] or 'none'}.", field="kinds"
        )
