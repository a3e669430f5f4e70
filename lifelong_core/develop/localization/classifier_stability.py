"""How stably several classifiers find the same places: pairwise in each image, then over positive images.

After R. Romanova, Localization stability of weakly supervised deep neural networks (2020), sections II-C and V.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from lifelong_core.develop.localization.stability import (
    SCORES,
    THRESHOLD,
    MeanScore,
    Stability,
    mean_score,
    stability,
)
from lifelong_core.values.arrays import Floats, as_labels
from lifelong_core.values.documents import Frozen, FrozenDocument
from lifelong_core.values.errors import InvalidInputError

Maps: TypeAlias = Sequence[ArrayLike]
"""One map for each image: a score in [0, 1], or whether it is positive, for each of its instances."""

MOST_CLASSIFIERS = 50
MOST_NAME = 200


class ScoreOverImages(Frozen):
    """One stability score over the positive images."""

    score: str = Field(description="Name of the score, one of SCORES.")
    mean: float | None = Field(description="Over the images in which it is defined; None: in none.")
    low: float | None = Field(
        description="Lower end of the interval of the mean; None: fewer than two images."
    )
    high: float | None
    defined: int = Field(description="Images in which the score is defined.")
    undefined: int = Field(description="Positive images in which it is undefined (0 / 0).")

    @classmethod
    def of(cls, score: str, mean: MeanScore) -> "ScoreOverImages":
        """The document of a mean."""
        return cls(
            score=score,
            mean=mean.mean,
            low=mean.low,
            high=mean.high,
            defined=mean.defined,
            undefined=mean.undefined,
        )


class PairStability(Frozen):
    """Stability of two classifiers."""

    first: str
    second: str
    scores: tuple[ScoreOverImages, ...]


class ImageStability(Frozen):
    """Stability in one positive image."""

    image: int = Field(description="Place of the image, from 0.")
    name: str | None = None
    scores: Mapping[str, float | None] = Field(
        description="Mean of each score over the pairs in which it is defined."
    )


class ClassifierStability(FrozenDocument):
    """Stability of several classifiers: for each pair, and as the mean over all pairs."""

    schema_version: int = 1
    classifiers: tuple[str, ...]
    images: int
    positive_images: int = Field(description="Images that count: the positive ones, or all without labels.")
    is_labelled: bool = Field(description="Whether it is known which images are positive.")
    threshold: float = Field(description="Instances with at least this score are positive.")
    level: float = Field(description="Nominal coverage of the intervals.")
    scores: tuple[ScoreOverImages, ...] = Field(
        description="Mean over the pairs in each image, then over the images."
    )
    pairs: tuple[PairStability, ...]
    by_image: tuple[ImageStability, ...] = Field(description="The images that count.")

    def pair(self, first: str, second: str) -> PairStability | None:
        """The stability of two classifiers, in either order; None for a classifier with itself."""
        wanted = {first, second}
        return next((one for one in self.pairs if {one.first, one.second} == wanted), None)


def classifier_stability(
    maps: Mapping[str, Maps],
    labels: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    threshold: float = THRESHOLD,
    level: float = 0.95,
) -> ClassifierStability:
    """Compare the maps of several classifiers for the same images.

    Each score is that of `stability`: it counts the instances of one image for one pair of classifiers. The result of a
    pair is the mean over the positive images; images in which the score is undefined (0 / 0) are left out and counted.
    The scores of the classifiers together are means over the pairs in each image, then over the images: their interval
    is that of independent images, and the pairs of one image are not independent.

    Args:
        maps: at least two classifiers by name; for each image a map of any shape, equal for all classifiers: scores in
            [0, 1] or booleans, one for each instance.
        labels: shape (N,), 1 for images that are positive and 0 for the others; None: not known, and all images count.
        names: of the images, N different texts.
        threshold: instances with at least this score are positive.
        level: nominal coverage of the intervals.

    Raises:
        InvalidInputError: the classifiers have maps of different images, a score is not in [0, 1], or no image is
            positive; the field is the classifier, or the argument.

    Examples:
        >>> maps = {"a": [[0.9, 0.7, 0.1]], "b": [[0.8, 0.2, 0.1]], "c": [[0.8, 0.3, 0.2]]}
        >>> found = classifier_stability(maps, [1])
        >>> [(one.first, one.second, one.scores[2].mean) for one in found.pairs]
        [('a', 'b', 0.5), ('a', 'c', 0.5), ('b', 'c', 1.0)]
        >>> found.scores[2].score, round(found.scores[2].mean, 3)
        ('positive_jaccard', 0.667)
    """
    checked = _checked(maps)
    images = len(next(iter(checked.values())))
    used = _positive(labels, images)
    if not 0 < level < 1:
        raise InvalidInputError(f"expected a number between 0 and 1, got {level}.", field="level")
    if names is not None and len(names) != images:
        raise InvalidInputError(f"expected {images} names, got {len(names)}.", field="names")
    values = {
        (first, second): [
            _scores(_compared(first, second, checked, image, threshold=threshold)) for image in used
        ]
        for first, second in combinations(checked, 2)
    }
    every = np.array(list(values.values()))  # (pairs, images, scores)
    together = _mean_of_defined(every)
    return ClassifierStability(
        classifiers=tuple(checked),
        images=images,
        positive_images=len(used),
        is_labelled=labels is not None,
        threshold=threshold,
        level=level,
        scores=_over_images(together, level),
        pairs=tuple(
            PairStability(first=first, second=second, scores=_over_images(np.array(rows), level))
            for (first, second), rows in values.items()
        ),
        by_image=tuple(
            ImageStability(
                image=image,
                name=None if names is None else names[image],
                scores={
                    score: None if np.isnan(value) else float(value)
                    for score, value in zip(SCORES, row, strict=True)
                },
            )
            for image, row in zip(used, together, strict=True)
        ),
    )


def _checked(maps: Mapping[str, Maps]) -> dict[str, list[NDArray[Any]]]:
    """Maps of the same images."""
    if not 2 <= len(maps) <= MOST_CLASSIFIERS:
        raise InvalidInputError(
            f"expected 2 to {MOST_CLASSIFIERS} classifiers, got {len(maps)}.", field="maps"
        )
    checked = {name[:MOST_NAME]: _as_maps(given, name) for name, given in maps.items()}
    if len(checked) < len(maps):
        raise InvalidInputError("expected different names.", field="maps")
    first, *others = checked
    for other in others:
        if len(checked[other]) != len(checked[first]):
            raise InvalidInputError(
                f"expected maps of {len(checked[first])} images, as {first} has, got {len(checked[other])}.",
                field=other,
            )
        for image, (one, another) in enumerate(zip(checked[first], checked[other], strict=True)):
            if one.shape != another.shape:
                raise InvalidInputError(
                    f"expected a map of shape {one.shape} for image {image}, as {first} has, got {another.shape}.",
                    field=other,
                    hint="Bring the maps of one image to the same instances, such as the same grid.",
                )
    return checked


def _as_maps(given: Maps, name: str) -> list[NDArray[Any]]:
    checked: list[NDArray[Any]] = []
    for image, values in enumerate(given):
        try:
            array = np.asarray(values)
        except ValueError as error:
            raise InvalidInputError(f"image {image}: expected rows of equal length.", field=name) from error
        if array.dtype.kind not in "biuf" or not array.size:
            raise InvalidInputError(
                f"image {image}: expected one number for each instance, got {array.dtype} of shape {array.shape}.",
                field=name,
            )
        if not (array.min() >= 0 and array.max() <= 1):
            raise InvalidInputError(
                f"image {image}: expected scores in [0, 1], or booleans.",
                field=name,
                hint="Give the probability that an instance is positive: for logits, 1 / (1 + exp(-logit)).",
            )
        checked.append(array)
    if not checked:
        raise InvalidInputError("expected at least one image.", field=name)
    return checked


def _positive(labels: ArrayLike | None, images: int) -> list[int]:
    """Places of the images that count."""
    if labels is None:
        return list(range(images))
    checked = as_labels(labels, classes=2)
    if checked.size != images:
        raise InvalidInputError(
            f"expected one for each of {images} images, got {checked.size}.", field="labels"
        )
    used = np.flatnonzero(checked).tolist()
    if not used:
        raise InvalidInputError(
            "no image is positive.",
            field="labels",
            hint="Give 1 for images with a finding, 0 for the others.",
        )
    return used


def _compared(
    first: str, second: str, maps: Mapping[str, Sequence[NDArray[Any]]], image: int, *, threshold: float
) -> Stability:
    return stability(maps[first][image], maps[second][image], threshold=threshold)


def _scores(scores: Stability) -> list[float]:
    return [getattr(scores, score) for score in SCORES]


def _mean_of_defined(values: Floats) -> Floats:
    """Mean over the first axis of what is not nan; nan where nothing is."""
    is_known = ~np.isnan(values)
    counts = is_known.sum(axis=0)
    sums = np.where(is_known, values, 0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _over_images(values: Floats, level: float) -> tuple[ScoreOverImages, ...]:
    """Each score over the images, from shape (images, scores)."""
    columns = zip(SCORES, values.T, strict=True)
    return tuple(
        ScoreOverImages.of(score, mean_score(score, column, level=level)) for score, column in columns
    )
