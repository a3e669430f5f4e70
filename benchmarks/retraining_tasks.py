"""Small tasks for the benchmark of retraining, from scikit-learn's digits at 32 x 32 pixels; no network.

Each task tells three digits apart in one of five variants (plain, inverted, rotated, noisy, pale). Two tasks share a
variant, each digit is in three tasks, and no image is in two tasks.
"""

import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from lifelong_core.develop.features.sources.entry import Entry, Opened
from lifelong_core.develop.training.data.prepared import PreparedImages, prepare_images
from lifelong_core.develop.training.export.exported_model import training_preprocessing
from lifelong_core.develop.training.recipe import Recipe, SplitName

EDGE = 32
VARIANTS = ("plain", "inverted", "rotated", "noisy", "pale")
DIGITS = 10
STEPS = (0, 3, 7)
"""Task k tells the digits k, k + 3 and k + 7 (modulo 10) apart."""
TASKS = tuple(f"digits-{number}-{VARIANTS[number % len(VARIANTS)]}" for number in range(DIGITS))
SPLITS: tuple[tuple[SplitName, int], ...] = (
    ("training", 14),
    ("validation", 6),
    ("calibration", 2),
    ("test", 36),
)
"""images of each class"""


class MemorySource:
    """Encoded images by their entries."""

    def __init__(self, files: dict[Entry, bytes]) -> None:
        self._files = files

    def entries(self) -> Iterator[Entry | None]:
        """All images."""
        yield from self._files

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        """Open these images."""
        for entry in wanted:
            yield entry, BytesIO(self._files[entry])


def digits_of(task: str) -> tuple[int, ...]:
    """The digits that a task tells apart, in the order of its classes."""
    number = TASKS.index(task)
    return tuple(sorted((number + step) % DIGITS for step in STEPS))


def task_images(task: str, seed: int) -> dict[tuple[SplitName, int], np.ndarray]:
    """Images (n, EDGE, EDGE), uint8, by split and digit; another seed gives others."""
    number = TASKS.index(task)
    rng = np.random.default_rng((seed, number))
    found: dict[tuple[SplitName, int], np.ndarray] = {}
    for digit in digits_of(task):
        # The digit is in three tasks, each with a third of its images.
        place = STEPS.index((digit - number) % DIGITS)
        images = _digits(digit)[np.random.default_rng((seed, digit)).permutation(len(_digits(digit)))]
        own = images[place :: len(STEPS)]
        begin = 0
        for split, count in SPLITS:
            found[split, digit] = _changed(own[begin : begin + count], VARIANTS[number % len(VARIANTS)], rng)
            begin += count
    return found


def task_source(task: str, seed: int) -> MemorySource:
    """The images of a task as files, each with its class and split."""
    files: dict[Entry, bytes] = {}
    for (split, digit), images in task_images(task, seed).items():
        for number, pixels in enumerate(images):
            data = as_png(pixels)
            entry = Entry(f"{split}/{digit}/{number}.png", f"digit-{digit}", size=len(data), split=split)
            files[entry] = data
    return MemorySource(files)


def prepare_task(task: str, seed: int, recipe: Recipe) -> PreparedImages:
    """The decoded images of a task."""
    with tempfile.TemporaryDirectory() as folder:
        # The memory map outlives its file.
        return prepare_images(
            task_source(task, seed),
            training_preprocessing(recipe),
            shares=recipe.shares.by_split(),
            seed=recipe.seed,
            folder=Path(folder),
        )


def as_png(pixels: np.ndarray) -> bytes:
    """A grey image as a file."""
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@cache
def _digits(digit: int) -> np.ndarray:
    images, labels = load_digits(return_X_y=True)
    small = np.round(images[labels == digit].reshape(-1, 8, 8) * 255 / 16).astype(np.uint8)
    enlarged = [Image.fromarray(one).resize((EDGE, EDGE), Image.Resampling.BICUBIC) for one in small]
    return np.stack([np.asarray(one) for one in enlarged])


def _changed(images: np.ndarray, variant: str, rng: np.random.Generator) -> np.ndarray:
    values = images.astype(np.float64)
    match variant:
        case "inverted":
            values = 255 - values
        case "rotated":
            values = np.rot90(values, axes=(1, 2))
        case "noisy":
            values = values + rng.normal(0, 60, values.shape)
        case "pale":
            values = 180 + 0.25 * values
        case _:
            pass
    return np.clip(np.round(values), 0, 255).astype(np.uint8)
