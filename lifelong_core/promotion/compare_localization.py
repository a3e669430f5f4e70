"""From two models and images to `LocalizationComparison`: occlusion maps and their stability scores."""

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from PIL import Image

from lifelong_core.design.validation.values.metric_value import Number
from lifelong_core.develop.localization.occlusion import (
    GRID,
    Box,
    Fill,
    LogitsOf,
    occlusion_map,
    relative_map,
)
from lifelong_core.develop.localization.overlay import overlay_png
from lifelong_core.develop.localization.stability import (
    SCORE_NAMES,
    SCORES,
    THRESHOLD,
    Stability,
    mean_score,
    stability,
)
from lifelong_core.images import preprocess, visible_box
from lifelong_core.promotion.document import (
    LocalizationComparison,
    LocalizationExample,
    LocalizationScore,
)
from lifelong_core.values.arrays import Floats, Integers, Logits
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing

MOST_EXAMPLES = 8

_SHIFTS = 8
"""Pairs of different images for each image."""

_OF_EXAMPLES = {"positive_jaccard": "positive Jaccard", "adjusted_jaccard": "kappa", "spearman": "Spearman"}
"""Scores that are told of single images: one as it is, one adjusted for chance, one without a threshold."""

Decide: TypeAlias = Callable[[Logits], Integers]
"""Decisions (n,) from logits (n, C); C where the model abstains."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageModel:
    """A model of images: the function that computes its logits, and the preprocessing of its inputs."""

    logits_of: LogitsOf
    preprocessing: Preprocessing


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledImage:
    """A decoded image with its true class."""

    image: Image.Image
    true_class: int
    name: str | None = None


@dataclass(frozen=True, eq=False)
class _Compared:
    """The result of one image."""

    new: Floats
    """relative map, shape (grid, grid)"""
    current: Floats
    found: Stability
    example: LocalizationExample | None
    """None: no examples are asked for"""


def sample_images(
    labels: Integers, groups: Sequence[str | None] | None, *, most: int, seed: int
) -> list[int]:
    """Positions of images for a comparison, ascending: classes by turns, one image of each group.

    So rare classes count as much as frequent ones, and the images are independent.

    Args:
        labels: shape (N,), classes.
        groups: N keys; None: the image is its own group, or all are.
        most: largest number of images.
        seed: of the order in which images are taken.
    """
    order: list[int] = np.random.default_rng(seed).permutation(len(labels)).tolist()
    waiting = [[at for at in order if labels[at] == k][::-1] for k in np.unique(labels)]
    chosen: list[int] = []
    taken: set[str] = set()
    while len(chosen) < most and any(waiting):
        for queue in waiting:
            while queue:
                at = queue.pop()
                group = None if groups is None else groups[at]
                if group not in taken:
                    chosen.append(at)
                    taken.update(() if group is None else (group,))
                    break
    return sorted(chosen[:most])


def compare_localization(
    new: ImageModel,
    current: ImageModel,
    images: Iterable[LabelledImage],
    *,
    decide: Decide | None = None,
    grid: int = GRID,
    fill: Fill = "mean",
    threshold: float = THRESHOLD,
    level: float = 0.95,
    most_examples: int = MOST_EXAMPLES,
) -> LocalizationComparison:
    """Compare where two models look in images, for the class that the new model decides for.

    The part of each image that both models see is cut into patches, whatever their sizes of input and crops; each patch
    is hidden in the input of each model. A patch is positive whose fall of the log-odds is at least `threshold` times
    the largest fall of its map: falls themselves have the scale of a model's logits. The same arguments give the same
    document.

    Args:
        new: the model that may be promoted.
        current: the model that serves now.
        images: read one after the other; independent of each other, for the intervals (see `sample_images`).
        decide: decisions of the new model; None: its largest logit. Where it abstains, its largest logit counts.
        grid: edge of the grid of patches. Each model computes grid * grid + 1 images for each image.
        fill: what hides a patch.
        threshold: as a share of the largest fall.
        level: nominal coverage of the intervals.
        most_examples: largest number of examples, the least stable by the adjusted Jaccard first.

    Raises:
        InvalidInputError: there is no image, an image does not fit a model, or an input has fewer pixels than patches.
    """
    is_shown = most_examples > 0
    compared = [
        _compared(new, current, image, decide, grid=grid, fill=fill, threshold=threshold, is_shown=is_shown)
        for image in images
    ]
    if not compared:
        raise InvalidInputError("expected at least one image to compare the models on.", field="images")
    worst_first = sorted(compared, key=lambda image: _last_if_undefined(image.found.adjusted_jaccard))
    return LocalizationComparison(
        images=len(compared),
        grid=grid,
        fill=fill,
        threshold=threshold,
        level=level,
        new_without_places=sum(not (image.new >= threshold).any() for image in compared),
        current_without_places=sum(not (image.current >= threshold).any() for image in compared),
        scores=_scores(compared, threshold=threshold, level=level),
        examples=tuple(image.example for image in worst_first[:most_examples] if image.example is not None),
    )


def _compared(
    new: ImageModel,
    current: ImageModel,
    given: LabelledImage,
    decide: Decide | None,
    *,
    grid: int,
    fill: Fill,
    threshold: float,
    is_shown: bool,
) -> _Compared:
    width, height = given.image.size
    seen = [visible_box(one.preprocessing, width, height) for one in (new, current)]
    common = _common(*seen)
    inputs = [preprocess(given.image, one.preprocessing) for one in (new, current)]
    class_index = _decision(new.logits_of(inputs[0][np.newaxis]), decide)
    maps = [
        relative_map(
            occlusion_map(
                pixels,
                class_index,
                model.logits_of,
                grid=grid,
                box=_within(common, box),
                fill=fill,
                layout=model.preprocessing.layout,
            )
        )
        for model, pixels, box in zip((new, current), inputs, seen, strict=True)
    ]
    found = stability(*maps, threshold=threshold)
    example = None
    if is_shown:
        shown = given.image.crop(_pixels(common, width, height))
        example = _example(given, shown, maps, found, class_index=class_index, threshold=threshold)
    return _Compared(maps[0], maps[1], found, example)


def _example(
    given: LabelledImage,
    shown: Image.Image,
    maps: Sequence[Floats],
    stability_of: Stability,
    *,
    class_index: int,
    threshold: float,
) -> LocalizationExample:
    """The image with the maps of the new and the current model."""
    new, current = (b64encode(overlay_png(shown, one, threshold=threshold)).decode() for one in maps)
    return LocalizationExample(
        name=given.name,
        class_index=class_index,
        true_class=given.true_class,
        new_overlay=new,
        current_overlay=current,
        scores={shown: _number(getattr(stability_of, name)) for name, shown in _OF_EXAMPLES.items()},
    )


def _decision(logits: np.ndarray[tuple[int, ...], np.dtype[np.floating]], decide: Decide | None) -> int:
    """The class that the model decides for; its likeliest, if it abstains."""
    row = np.asarray(logits, dtype=np.float32)
    decided = int(row[0].argmax()) if decide is None else int(decide(row)[0])
    return decided if 0 <= decided < row.shape[1] else int(row[0].argmax())


def _common(first: Box, second: Box) -> Box:
    """The part of the image that lies in both boxes: all crops are central, so there is one."""
    left, top = max(first[0], second[0]), max(first[1], second[1])
    return left, top, min(first[2], second[2]), min(first[3], second[3])


def _within(part: Box, whole: Box) -> Box:
    """The part as shares of the whole, rather than of the image."""
    width, height = whole[2] - whole[0], whole[3] - whole[1]
    return (
        (part[0] - whole[0]) / width,
        (part[1] - whole[1]) / height,
        (part[2] - whole[0]) / width,
        (part[3] - whole[1]) / height,
    )


def _pixels(box: Box, width: int, height: int) -> tuple[int, int, int, int]:
    left, top = round(box[0] * width), round(box[1] * height)
    return left, top, max(left + 1, round(box[2] * width)), max(top + 1, round(box[3] * height))


def _scores(made: Sequence[_Compared], *, threshold: float, level: float) -> tuple[LocalizationScore, ...]:
    """Each score over the images, and between maps of different ones."""
    count = len(made)
    shifts = sorted({count * step // (_SHIFTS + 1) for step in range(1, _SHIFTS + 1)} - {0})
    unrelated = [
        stability(made[at].new, made[(at + shift) % count].current, threshold=threshold)
        for shift in shifts
        for at in range(count)
    ]
    return tuple(
        _score(
            name, [getattr(one.found, name) for one in made], [getattr(one, name) for one in unrelated], level
        )
        for name in SCORES
    )


def _score(name: str, values: Sequence[float], unrelated: Sequence[float], level: float) -> LocalizationScore:
    mean = mean_score(name, values, level=level)
    return LocalizationScore(
        name=SCORE_NAMES[name],
        mean=mean.mean,
        low=mean.low,
        high=mean.high,
        defined=mean.defined,
        unrelated=mean_score(name, unrelated).mean,
    )


def _number(value: float) -> Number:
    return None if math.isnan(value) else value


def _last_if_undefined(value: float) -> float:
    """An undefined score means that neither map has a positive patch: there is nothing to look at."""
    return math.inf if math.isnan(value) else value
