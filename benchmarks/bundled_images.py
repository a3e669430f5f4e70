"""Classification tasks made from real images that installed libraries bundle, and variants of them; no network.

Sources: scikit-learn (digits, two photographs), matplotlib (a photograph, a head MR, terrain heights) and pydicom (CT,
MR, ultrasound and a bone scan). A task of one picture consists of patches cut from it; their class is the band of the
picture that they lie in. The samples of each task are divided into three parts that share no pixel, so that a variant
never holds a sample of its original.
"""

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pydicom
from matplotlib import get_data_path
from PIL import Image
from scipy import ndimage
from sklearn.datasets import load_digits, load_sample_images

PARTS = ("original", "variant", "reference")
"""the samples of the tasks, of their variants, and those for bin edges and for training an extractor"""

SIDE = 64
"""pixels of all images, (SIDE, SIDE, 3), uint8"""

PATCH, CELL = 40, 64
"""pixels of a patch and of the cells of a picture; a patch lies in one cell, a cell belongs to one part"""

BANDS = 3
LEAST_CONTRAST = 4.0
"""standard deviation of grey values, 0 to 255; patches below it, such as air around a patient, are left out"""

Images = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class ImageSet:
    """Images (n, SIDE, SIDE, 3) as uint8, with labels (n,)."""

    images: Images
    labels: np.ndarray


def cut_task(name: str, part: str, samples: int, seed: int) -> ImageSet:
    """At most `samples` random samples of one part of a task; other parts of the same seed share none of them."""
    source = TASKS[name]
    if isinstance(source, tuple):
        return _cut_digits(source, part, samples, seed)
    return _cut_patches(source(), part, samples, seed)


def _generator(seed: int, part: str) -> np.random.Generator:
    return np.random.default_rng((seed, PARTS.index(part)))


def _cut_digits(classes: tuple[int, ...], part: str, samples: int, seed: int) -> ImageSet:
    pixels, labels = _digits()
    order = np.random.default_rng(seed).permutation(len(labels))  # the same for all parts
    chosen = order[PARTS.index(part) :: len(PARTS)]
    chosen = chosen[np.isin(labels[chosen], classes)][:samples]
    images = [_resized(pixels[index]) for index in chosen]
    return ImageSet(np.stack(images), np.searchsorted(classes, labels[chosen]))


def _cut_patches(pictures: Images, part: str, samples: int, seed: int) -> ImageSet:
    """Patches at random places of the part's cells; `pictures` is (frames, height, width, 3)."""
    rng = _generator(seed, part)
    rows, columns = pictures.shape[1] // CELL, pictures.shape[2] // CELL
    shift = np.random.default_rng(seed).integers(len(PARTS))  # the same for all parts
    cells = [
        (row, column)
        for row in range(rows)
        for column in range(columns)
        if (row + column + shift) % len(PARTS) == PARTS.index(part)
    ]
    found: list[Images] = []
    labels: list[int] = []
    for _ in range(50 * samples):
        if len(found) == samples:
            break
        row, column = cells[rng.integers(len(cells))]
        top, left = np.array((row, column)) * CELL + rng.integers(CELL - PATCH + 1, size=2)
        patch = pictures[rng.integers(len(pictures)), top : top + PATCH, left : left + PATCH]
        if patch.std() >= LEAST_CONTRAST:
            found.append(_resized(patch))
            labels.append(row * BANDS // rows)
    return ImageSet(np.stack(found), np.array(labels))


def _resized(pixels: Images) -> Images:
    return np.asarray(Image.fromarray(pixels).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC))


@cache
def _digits() -> tuple[Images, np.ndarray]:
    digits = load_digits()
    return np.round(digits.images * 255 / 16).astype(np.uint8), digits.target


def _picture(pixels: np.ndarray) -> Images:
    """Frames (n, height, width, 3) of at least four cells to a side."""
    frames = pixels if pixels.ndim == 4 else pixels[None]
    pictures = [Image.fromarray(frame).convert("RGB") for frame in frames]
    factor = max(1.0, 4 * CELL / min(pictures[0].size))
    width, height = (round(factor * length) for length in pictures[0].size)
    return np.stack([np.asarray(one.resize((width, height), Image.Resampling.BICUBIC)) for one in pictures])


def _grey(values: np.ndarray, low: float, high: float) -> Images:
    """Values between `low` and `high` as grey values, like the window of a radiological display."""
    return np.round(np.clip((values.astype(np.float64) - low) / (high - low), 0, 1) * 255).astype(np.uint8)


def _bundled(name: str) -> Path:
    return Path(get_data_path()) / "sample_data" / name


@cache
def _photograph(index: int) -> Images:
    return _picture(load_sample_images().images[index])


@cache
def _portrait() -> Images:
    return _picture(np.asarray(Image.open(_bundled("grace_hopper.jpg"))))


@cache
def _terrain() -> Images:
    with np.load(_bundled("jacksboro_fault_dem.npz")) as arrays:
        heights = arrays["elevation"]
    return _picture(_grey(heights, heights.min(), heights.max()))


@cache
def _head_mr() -> Images:
    with gzip.open(_bundled("s1045.ima.gz")) as file:
        values = np.frombuffer(file.read(), np.uint16).reshape(256, 256)
    return _picture(_grey(values, 0, np.quantile(values, 0.99)))


@cache
def _dicom(name: str, low: float | None = None, high: float | None = None) -> Images:
    """A DICOM test file; `low` and `high` of a monochrome one are its display window in stored values."""
    folder = Path(pydicom.__file__).parent / "data" / "test_files"
    pixels = pydicom.dcmread(folder / name).pixel_array
    return _picture(pixels if low is None or high is None else _grey(pixels, low, high))


TASKS: Mapping[str, tuple[int, ...] | Callable[[], Images]] = MappingProxyType(
    {
        "digits 0-1": (0, 1),
        "digits 2-4": (2, 3, 4),
        "digits 5-6": (5, 6),
        "digits 7-9": (7, 8, 9),
        "temple": lambda: _photograph(0),
        "flower": lambda: _photograph(1),
        "portrait": _portrait,
        "terrain": _terrain,
        "head MR": _head_mr,
        "abdomen MR": lambda: _dicom("examples_overlay.dcm", 0, 700),
        "brain CT": lambda: _dicom("693_J2KI.dcm", -1000, 2000),
        "skull base CT": lambda: _dicom("J2K_pixelrep_mismatch.dcm", -1000, 1500),
        "spine CT": lambda: _dicom("CT_small.dcm", 128, 2191),
        "heart ultrasound": lambda: _dicom("examples_ybr_color.dcm"),
        "Doppler ultrasound": lambda: _dicom("examples_jpeg2k.dcm"),
        "bone scan": lambda: _dicom("JPEG2000.dcm", 0, 120),
    }
)
"""classes of the digits, or a function that loads a picture"""


def _contrast(images: np.ndarray) -> np.ndarray:
    means = images.mean(axis=(1, 2, 3), keepdims=True)
    return means + 0.5 * (images - means)


def _rescale(images: np.ndarray) -> np.ndarray:
    """Half the resolution, back at the old size."""
    half = images.reshape(len(images), SIDE // 2, 2, SIDE // 2, 2, 3).mean(axis=(2, 4))
    return half.repeat(2, axis=1).repeat(2, axis=2)


_Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]
VARIANTS: Mapping[str, _Change] = MappingProxyType(
    {
        "other samples": lambda images, _: images,
        "rotated 90 degrees": lambda images, _: np.rot90(images, axes=(1, 2)),
        "inverted": lambda images, _: 255 - images,
        "blurred, 2 pixels": lambda images, _: ndimage.gaussian_filter(images, (0, 2, 2, 0)),
        "noise, 10 of 255": lambda images, rng: images + rng.normal(0, 10, images.shape),
        "half resolution": lambda images, _: _rescale(images),
        "half contrast": lambda images, _: _contrast(images),
        "one class fewer": lambda images, _: images,
    }
)


def make_variant(name: str, change: str, samples: int, seed: int) -> ImageSet:
    """Samples of the part `variant` of a task, changed as VARIANTS says."""
    one = cut_task(name, "variant", samples, seed)
    if change == "one class fewer":
        kept = one.labels != one.labels.max()
        one = ImageSet(one.images[kept], one.labels[kept])
    changed = VARIANTS[change](one.images.astype(np.float32), np.random.default_rng(seed))
    return ImageSet(np.clip(np.round(changed), 0, 255).astype(np.uint8), one.labels)
