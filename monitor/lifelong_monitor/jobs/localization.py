"""Whether two registered models look at the same places of images."""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

import numpy as np

from lifelong_core.arrays import Integers, Logits
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.errors import LifelongError
from lifelong_core.preprocessing import Preprocessing
from lifelong_core.promotion.compare_localization import (
    ImageModel,
    LabelledImage,
    compare_localization,
    sample_images,
)
from lifelong_core.promotion.localization import LocalizationComparison
from lifelong_core.settings import Settings
from lifelong_core.store import Model, Store
from lifelong_monitor.jobs.images import ImageSource, develop_module
from lifelong_monitor.jobs.stored_classifier import stored_classifier

MOST_IMAGES = 64


def compare_places(
    store: Store,
    new: Model,
    current: Model,
    images: ImageSource,
    *,
    names: Collection[str] | None = None,
    most: int = MOST_IMAGES,
    seed: int = 0,
) -> LocalizationComparison | None:
    """Compare where two models of a task look, for the decisions of the new one by its default head.

    Each model computes 65 images for each sampled one. The document shows as many images as the setting
    `report_images` says, by default none.

    Args:
        store: of both models.
        new: the model that may be promoted; it has a head.
        current: the model that serves now.
        images: labelled by class.
        names: of the images that may be sampled, such as those of the test split; None: all.
        most: largest number of images, sampled by turns from the classes, one of each group.
        seed: of the sample.

    Returns:
        The comparison; None if one of the models runs elsewhere, or no labelled image can be read.

    Raises:
        InvalidInputError: a graph cannot be loaded, or the images do not fit a model.
    """
    registry = store.registry()
    if registry is None:
        raise TypeError("without a known revision the store returns a registry")
    if "external" in (new.kind, current.kind):
        return None
    class_names = registry.tasks[new.task_id].class_names
    sampled = _sampled(images, class_names, names, most=most, seed=seed)
    first = next(sampled, None)
    if first is None:
        return None
    head = registry.head_for(new, None).head
    return compare_localization(
        _image_model(store, new),
        _image_model(store, current),
        chain([first], sampled),
        decide=lambda logits: _decisions(head, logits),
        most_examples=Settings.load().report_images,
    )


def _image_model(store: Store, model: Model) -> ImageModel:
    return ImageModel(
        logits_of=stored_classifier(store, model).logits,
        preprocessing=model.preprocessing or Preprocessing(),
    )


def _decisions(head: PostProcessingHead, logits: Logits) -> Integers:
    return head.apply(logits).decisions


def _sampled(
    images: ImageSource,
    class_names: Sequence[str],
    names: Collection[str] | None,
    *,
    most: int,
    seed: int,
) -> Iterator[LabelledImage]:
    """A sample of the images of known classes, decoded in full; unreadable ones are left out."""
    printable = develop_module("features.sources.entry").printable
    open_image = develop_module("features.decoding").open_image
    limits = develop_module("features.sources.limits").DEFAULT_LIMITS
    wanted = None if names is None else frozenset(names)
    entries = sorted(
        (
            one
            for one in images.entries()
            if one is not None
            and one.label in class_names
            and (wanted is None or printable(one.name) in wanted)
        ),
        key=lambda one: one.name,
    )
    labels = np.array([class_names.index(one.label) for one in entries], dtype=np.int64)
    chosen = sample_images(labels, [one.group for one in entries], most=most, seed=seed)
    for opened in images.read([entries[at] for at in chosen]):
        entry = opened[0]
        try:
            image = open_image(opened, limits)
        except (LifelongError, OSError):
            continue
        yield LabelledImage(
            image=image, true_class=class_names.index(entry.label), name=printable(entry.name)
        )
