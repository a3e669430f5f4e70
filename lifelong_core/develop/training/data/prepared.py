"""The images of one task, ready to train on."""
# pyright: reportUnknownMemberType=false
# The types of torch are incomplete.

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from lifelong_core.develop.features.sources.entry import Entry, ImageSource
from lifelong_core.develop.training.data.cases import Cases, list_some, read_cases
from lifelong_core.develop.training.data.pixel_cache import PixelCache, cache_pixels, outer_preprocessing
from lifelong_core.develop.training.data.splits import (
    check_leaks,
    contradictory_labels,
    given_splits,
    split_cases,
    tied_units,
)
from lifelong_core.develop.training.recipe import SplitName
from lifelong_core.develop.training.result import SplitFacts
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing

MOST_UNREADABLE = 0.05
"""Largest share of the images that may be unreadable."""
_MOST_AT_ONCE = 256
_PIXELS_AT_ONCE = _MOST_AT_ONCE * 256**2
"""Of larger images, fewer are evaluated at once: memory grows with their pixels."""

_READ_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class PreparedImages:
    """Decoded images with their classes, groups and splits.

    Attributes:
        class_names: C names.
        labels: (N,).
        groups: N keys, None where an image names none; None: no image names one.
        names: N, of the images within their source.
        splits: ascending positions of the images of each split.
        digest: over names, classes, groups and pixels: equal for equal data.
        warnings: sentences on what may be wrong with the data.
    """

    class_names: tuple[str, ...]
    labels: NDArray[np.int64]
    groups: tuple[str | None, ...] | None
    names: tuple[str, ...]
    splits: Mapping[SplitName, NDArray[np.int64]]
    digest: str
    warnings: tuple[str, ...]
    preprocessing: Preprocessing
    _pixels: NDArray[np.uint8] | NDArray[np.float32]
    _rows: NDArray[np.int64]
    """of each image in `_pixels`, which is a file that may be larger than the memory"""
    _digests: tuple[str, ...] = ()
    """N, of the pixels of each image"""

    def pixels(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """Images for training, uint8 (n, C, H, W): resized, before the random crop to the size of the input."""
        found = self._pixels[self._rows[indices]]
        if found.dtype != np.uint8:
            found = np.rint(found).astype(np.uint8)
        return torch.from_numpy(found).permute(0, 3, 1, 2).contiguous()

    def inputs(self, indices: NDArray[np.int64]) -> NDArray[np.float32]:
        """Inputs of the model, (n, C, h, w): bit for bit those of the service's preprocessing."""
        crop = self.preprocessing.centre_crop
        found = self._pixels[self._rows[indices]]
        if crop is not None:
            top, left = (found.shape[1] - crop.height) // 2, (found.shape[2] - crop.width) // 2
            found = found[:, top : top + crop.height, left : left + crop.width]
        values = found.astype(np.float32)
        values /= np.float32(255)
        values -= np.asarray(self.preprocessing.mean, dtype=np.float32)
        values /= np.asarray(self.preprocessing.standard_deviation, dtype=np.float32)
        return np.ascontiguousarray(values.transpose(0, 3, 1, 2))

    def batches(self, positions: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
        """Inputs of the images at these positions, so many at once as fit into memory."""
        height, width = self.input_size
        at_once = min(_MOST_AT_ONCE, max(1, _PIXELS_AT_ONCE // (height * width)))
        for begin in range(0, len(positions), at_once):
            yield self.inputs(positions[begin : begin + at_once])

    @property
    def input_size(self) -> tuple[int, int]:
        """Height and width of the model's input."""
        crop = self.preprocessing.centre_crop
        return self._pixels.shape[1:3] if crop is None else (crop.height, crop.width)

    @property
    def splits_digest(self) -> str:
        """Digest of which image is in which split: a source may name other splits of equal images."""
        digest = hashlib.sha256()
        for name, positions in sorted(self.splits.items()):
            digest.update(f"{name} {len(positions)} ".encode() + positions.astype("<i8").tobytes())
        return digest.hexdigest()

    def overlap(self, source: "PreparedImages") -> str | None:
        """A warning that names images of a source task that are held out here; None: there are none."""
        held_out = {
            self._digests[at]
            for name in self.splits
            if name != "training"
            for at in _listed(self.splits[name])
        }
        used = (at for positions in source.splits.values() for at in _listed(positions))
        found = sorted(source.names[at] for at in used if source._digests[at] in held_out)
        if not found:
            return None
        return (
            f"{len(found)} images of the source task are identical to validation, calibration or test images of the"
            f" target, so that the figures of this training are too good: {list_some(found)}."
        )

    @property
    def facts(self) -> dict[SplitName, SplitFacts]:
        """Size of each split."""
        return {name: self._facts(positions) for name, positions in self.splits.items()}

    def _facts(self, positions: NDArray[np.int64]) -> SplitFacts:
        wanted: list[int] = positions.tolist()
        groups = None if self.groups is None else len({self.groups[at] or str(at) for at in wanted})
        counts = np.bincount(self.labels[positions], minlength=len(self.class_names))
        return SplitFacts(images=len(positions), groups=groups, counts=tuple(counts.tolist()))


def prepare_images(
    source: ImageSource,
    preprocessing: Preprocessing,
    *,
    shares: Mapping[SplitName, float],
    seed: int,
    folder: Path,
    class_names: Sequence[str] | None = None,
    on_image: Callable[[int, int], None] = lambda _done, _all: None,
    check_space: Callable[[int], None] = lambda _: None,
) -> PreparedImages:
    """Read, decode and split the images of a task.

    Args:
        source: of the images.
        preprocessing: from an image to the input of the model; all inputs have one size.
        shares: of the splits, where the source names none; splits without a share do not exist.
        seed: of the splits.
        folder: for the decoded images; an earlier attempt's are used again.
        class_names: in the order of the logits; None: those of the images, sorted.
        on_image: called with the number of decoded images and of all.
        check_space: called with the bytes that they take in the folder before they are written; raises to refuse that.

    Raises:
        InvalidInputError: classes, splits or images do not fit, or splits share a group or an identical image.
    """
    listed = read_cases(source, class_names)
    total = len(listed)
    cache = cache_pixels(
        source,
        listed.entries,
        outer_preprocessing(preprocessing),
        folder,
        most_problems=int(MOST_UNREADABLE * total),
        on_image=lambda done: on_image(done, total),
        check_space=check_space,
    )
    unreadable = _unreadable(listed, cache)
    kept = [position for position in range(total) if position not in cache.problems]
    cases, digests = listed.take(kept), [cache.digests[position] for position in kept]
    if cases.splits is None:
        splits = split_cases(cases, tied_units(cases, digests), shares, seed=seed)
    else:
        check_leaks(cases, digests, cases.splits)
        splits = given_splits(cases, cases.splits, tuple(shares))
    contradictions = contradictory_labels(cases, digests)
    return PreparedImages(
        class_names=cases.class_names,
        labels=cases.labels,
        groups=cases.groups if cases.has_groups else None,
        names=tuple(entry.name for entry in cases.entries),
        splits=splits,
        digest=_digest(cases, digests),
        warnings=tuple(text for text in (unreadable, contradictions) if text),
        preprocessing=preprocessing,
        _pixels=cache.pixels,
        _rows=np.array(kept, dtype=np.int64),
        _digests=tuple(digests),
    )


def _unreadable(cases: Cases, cache: PixelCache) -> str | None:
    """A warning that names unreadable images; None: there are none.

    Raises:
        InvalidInputError: there are more than `MOST_UNREADABLE`.
    """
    if not cache.problems:
        return None
    examples = [f"{cases.entries[at].name}: {text}" for at, text in sorted(cache.problems.items())]
    said = f"{len(examples)} of {len(cases)} images cannot be read: {list_some(examples)}"
    if len(examples) > MOST_UNREADABLE * len(cases):  # the others were not decoded
        raise InvalidInputError(f"at least {said}", field="images", hint="Repair or remove them.")
    return said


def _listed(positions: NDArray[np.int64]) -> list[int]:
    return positions.tolist()


def _digest(cases: Cases, digests: Sequence[str]) -> str:
    digest = hashlib.sha256("\n".join(cases.class_names).encode())
    for entry, label, group, pixels in zip(cases.entries, cases.labels, cases.groups, digests, strict=True):
        digest.update(f"\n{entry.name}\t{label}\t{group}\t{pixels}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def hold_out(images: PreparedImages, share: float, *, seed: int) -> tuple[PreparedImages, NDArray[np.int64]]:
    """Divide the training split by group and identical image, with every class in its share.

    Args:
        images: of the task.
        share: of the training images that are held out.
        seed: of the division.

    Returns:
        The images with a training split that lacks the held-out ones, and the positions of these.

    Raises:
        InvalidInputError: a part would have no image of a class.
    """
    training = images.splits["training"]
    positions: list[int] = training.tolist()
    cases = Cases(
        tuple(Entry(images.names[at]) for at in positions),
        images.class_names,
        images.labels[training],
        tuple(None if images.groups is None else images.groups[at] for at in positions),
        None,
    )
    shares: dict[SplitName, float] = {"training": 1 - share, "validation": share}
    parts = split_cases(cases, tied_units(cases, _digests(images, training)), shares, seed=seed)
    remaining = {**images.splits, "training": training[parts["training"]]}
    return replace(images, splits=remaining), training[parts["validation"]]


def _digests(images: PreparedImages, positions: NDArray[np.int64]) -> list[str]:
    """Of the pixels of each image."""
    return [
        hashlib.blake2b(pixels.tobytes(), digest_size=16).hexdigest()
        for begin in range(0, len(positions), _READ_AT_ONCE)
        for pixels in images.pixels(positions[begin : begin + _READ_AT_ONCE]).numpy()
    ]
