"""Whether two registered models look at the same places of images."""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from PIL import Image

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.deploy.paired_set import LONGEST_NAME
from lifelong_core.develop.localization.occlusion import GRID
from lifelong_core.images import preprocess
from lifelong_core.promotion.compare_localization import (
    ImageModel,
    LabelledImage,
    compare_localization,
    sample_images,
)
from lifelong_core.promotion.document import LocalizationComparison
from lifelong_core.store import Model, Store
from lifelong_core.values.arrays import Integers, Logits
from lifelong_core.values.errors import LifelongError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_monitor.jobs.kinds.images import ImageSource, develop_module
from lifelong_monitor.jobs.kinds.model_facts import stored_classifier

MOST_IMAGES = 64
FEWEST_IMAGES = 8
"""however slow the models are"""
LONGEST_SECONDS = 600.0
"""that a comparison may take, about"""
_INPUTS = GRID * GRID + 1
"""that each model computes for each image"""


def compare_places(
    store: Store,
    new: Model,
    current: Model,
    images: ImageSource,
    *,
    names: Collection[str] | None = None,
    most: int = MOST_IMAGES,
    seed: int = 0,
    seconds: float = LONGEST_SECONDS,
) -> LocalizationComparison | None:
    """Compare where two models of a task look, for the decisions of the new one by its default head.

    Each model computes 65 inputs for each sampled image; where models are slow, fewer images are sampled. The document
    shows as many images as the setting `report_images` says, by default none.

    Args:
        store: of both models.
        new: the model that may be promoted; it has a head.
        current: the model that serves now.
        images: labelled by class.
        names: of the images that may be sampled, such as those of the test split; None: all.
        most: largest number of images, sampled by turns from the classes, one of each group.
        seed: of the sample.
        seconds: that it may take, about; at least `FEWEST_IMAGES` are compared.

    Returns:
        The comparison; None if one of the models runs elsewhere, or no labelled image can be read.

    Raises:
        InvalidInputError: a graph cannot be loaded, or the images do not fit a model.
    """
    registry = store.registry()
    if "external" in (new.kind, current.kind):
        return None
    class_names = registry.tasks[new.task_id].class_names
    listed = _Listed.of(images, class_names, names)
    trial = next(listed.sample(most, seed=seed), None)
    if trial is None:
        return None
    models = _image_model(store, new), _image_model(store, current)
    affordable = int(seconds / max(1e-9, _INPUTS * _seconds_of(models, trial.image)))
    sampled = listed.sample(min(most, max(FEWEST_IMAGES, affordable)), seed=seed)
    head = registry.head_for(new, None).head
    return compare_localization(
        *models,
        sampled,
        decide=lambda logits: _decisions(head, logits),
        most_examples=Settings.load().report_images,
    )


def _seconds_of(models: Sequence[ImageModel], image: Image.Image) -> float:
    """Seconds that all models take for one image, after a first run."""
    seconds = 0.0
    for model in models:
        pixels = preprocess(image, model.preprocessing)[np.newaxis]
        model.logits_of(pixels)
        started = time.perf_counter()
        model.logits_of(pixels)
        seconds += time.perf_counter() - started
    return seconds


def _image_model(store: Store, model: Model) -> ImageModel:
    return ImageModel(
        logits_of=stored_classifier(store, model).logits,
        preprocessing=model.preprocessing or Preprocessing(),
    )


def _decisions(head: PostProcessingHead, logits: Logits) -> Integers:
    return head.apply(logits).decisions


@dataclass(frozen=True, eq=False)
class _Listed:
    """Images of known classes, not yet read, in order of their names."""

    source: ImageSource
    entries: Sequence[Any]
    """each a `lifelong_core.develop.features.sources.entry.Entry`"""
    labels: Integers
    """shape (N,), their classes"""

    @classmethod
    def of(cls, source: ImageSource, class_names: Sequence[str], names: Collection[str] | None) -> Self:
        """The images of a source; with `names`, only the images of these names."""
        wanted = None if names is None else {name[-LONGEST_NAME:] for name in names}
        found = [
            one
            for one in source.entries()
            if one is not None
            and one.label in class_names
            and (wanted is None or _shown(one)[-LONGEST_NAME:] in wanted)
        ]
        found.sort(key=lambda one: one.name)
        return cls(source, found, np.array([class_names.index(one.label) for one in found], dtype=np.int64))

    def sample(self, most: int, *, seed: int) -> Iterator[LabelledImage]:
        """Some images, decoded in full; unreadable ones are left out."""
        open_image = develop_module("features.extraction").open_image
        limits = develop_module("features.sources.limits").DEFAULT_LIMITS
        groups = [one.group for one in self.entries]
        chosen = sample_images(self.labels, groups, most=most, seed=seed)
        classes = {self.entries[at]: int(self.labels[at]) for at in chosen}
        for opened in self.source.read(classes):
            try:
                image = open_image(opened, limits)
            except (LifelongError, OSError):
                continue
            yield LabelledImage(image=image, true_class=classes[opened[0]], name=_shown(opened[0]))


def _shown(entry: Any) -> str:
    """The name of an image as text."""
    return develop_module("features.sources.entry").printable(entry.name)
