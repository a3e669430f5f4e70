"""The promoted model of a task on the test images of a new one: their promotion report."""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.deploy.paired_set import LONGEST_NAME, PairedSet
from lifelong_core.promotion import PromotionReport
from lifelong_core.promotion.document import LocalizationComparison, RuntimeCost
from lifelong_core.promotion.runtime_cost import measure_cost
from lifelong_core.store import Model, Store
from lifelong_core.values.errors import InvalidInputError
from lifelong_monitor.jobs import model_facts
from lifelong_monitor.jobs.compare import held_out_cases
from lifelong_monitor.jobs.images import ImageSource, develop_module
from lifelong_monitor.jobs.kept_test_set import seen_cases
from lifelong_monitor.jobs.promotion_reports import ModelCases, compare_registered
from lifelong_monitor.jobs.stored_classifier import OnnxClassifier, stored_classifier

_AT_ONCE = 64
"""Images in memory."""
_MOST_NAMED = 3


def compare_with_current(
    store: Store,
    new: Model,
    current: Model,
    images: ImageSource,
    *,
    test: LabeledLogits,
    names: Sequence[str],
    trained_on: str,
    localization: LocalizationComparison | None = None,
    replicates: int,
    level: float,
) -> tuple[PairedSet, PromotionReport]:
    """Compare a trained model with the promoted one on its test images.

    Args:
        store: of both models.
        new: the trained model.
        current: the promoted model, with its stored graph and preprocessing.
        images: the source of the images.
        test: logits of the new model on the N test images, and their classes.
        names: N names of the test images within the source.
        trained_on: digest of the new model's data.
        localization: whether both look at the same places.
        replicates: number of resampled data sets.
        level: nominal coverage of the intervals.

    Returns:
        The test set with the logits of both models, and the report.

    Raises:
        LifelongError: an image can no longer be read, or the stored graph cannot be run.
    """
    classifier, first = stored_classifier(store, current), names[:1]
    data = PairedSet(
        LabelledSet(test),
        _logits_of(classifier, images, names),
        np.array([name[-LONGEST_NAME:] for name in names]),
        (new.reference, current.reference),
    )
    report = compare_registered(
        store,
        ModelCases(
            model=new,
            logits=test.logits,
            cost=_cost(store, new, stored_classifier(store, new), images, first),
            trained_on=trained_on,
        ),
        ModelCases(
            model=current,
            logits=data.current_logits,
            cost=_cost(store, current, classifier, images, first),
            trained_on=model_facts.trained_on(store, current),
            seen=seen_cases(store, current, names, data=trained_on),
        ),
        held_out_cases(data, origin=f"test split of the training of {new.reference}"),
        localization=localization,
        replicates=replicates,
        level=level,
    )
    return data, report


def _logits_of(classifier: OnnxClassifier, images: ImageSource, names: Sequence[str]) -> NDArray[np.float32]:
    """Logits (N, C) of the images of these names."""
    found: dict[str, NDArray[np.float32]] = {}
    decoded = _decoded(classifier, images, names)
    while batch := list(islice(decoded, _AT_ONCE)):
        # Without a resize, images have sizes of their own.
        for _, group in groupby(sorted(batch, key=lambda one: one[1].shape), key=lambda one: one[1].shape):
            several = list(group)
            logits = classifier.logits(np.stack([pixels for _, pixels in several]))
            found.update(zip((name for name, _ in several), logits, strict=True))
    return np.stack([found[name] for name in names])


def _decoded(
    classifier: OnnxClassifier, images: ImageSource, names: Sequence[str]
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Name and preprocessed pixels of each of these images, in any order.

    Raises:
        InvalidInputError: one is not there any more, or cannot be read.
    """
    decode = develop_module("features.decoding").decode_entry
    limits = develop_module("features.sources.limits").DEFAULT_LIMITS
    printable = develop_module("features.sources.entry").printable
    wanted = set(names)
    entries = [one for one in images.entries() if one is not None and printable(one.name) in wanted]
    missing = sorted(wanted - {printable(one.name) for one in entries})
    if missing:
        raise InvalidInputError(
            f"{len(missing)} test images are not there any more: {', '.join(missing[:_MOST_NAMED])}.",
            field="images",
        )
    for opened in images.read(entries):
        image = decode(opened, classifier.preprocessing, limits)
        name = printable(image.entry.name)
        if image.pixels is None:
            raise InvalidInputError(f"{name} cannot be read: {image.problem}", field="images")
        yield name, image.pixels


def _cost(
    store: Store, model: Model, classifier: OnnxClassifier, images: ImageSource, first: Sequence[str]
) -> RuntimeCost:
    """Size and time of a model, measured on the first test image."""
    _, pixels = next(_decoded(classifier, images, first))
    return measure_cost(store.artifacts.get(model.artifact or ""), classifier.logits, pixels[np.newaxis])
