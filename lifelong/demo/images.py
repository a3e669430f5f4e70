"""The demo's task: scikit-learn's handwritten digits, degraded and grouped into three classes of unequal severity.

Clean digits would leave nothing to correct. Blur and noise make the classifier right in about 83 % of a balanced set,
which is where many clinical classifiers stand.
"""

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter

CLASS_NAMES = ("harmless", "suspicious", "urgent")
DIGITS_OF_CLASS = ((0, 1, 2, 4, 6, 7), (3, 5), (8, 9))
COSTS = ((0.0, 1.0, 2.0), (1.0, 0.0, 1.0), (2.0, 2.0, 0.0))
"""Rows true class, columns decision: to miss an urgent case, or to treat a harmless one as urgent, costs twice."""

DEVELOPMENT_PREVALENCE = (1 / 3, 1 / 3, 1 / 3)
"""Enriched with rare classes, as development data usually is; the calibration images have the same mix."""
CLINIC_PREVALENCE = (10 / 12, 1 / 12, 1 / 12)
"""What the clinic really sees: ten harmless cases for each case of the other classes."""

IMAGE_SIZE = 24
CALIBRATION_PER_CLASS = 150
TRAINING_SHARE = 0.37
NOISE = 0.52
BLUR = 1.5


@dataclass(frozen=True)
class Split:
    """Clean digits (N, 8, 8) in 0..1 and their classes (N,)."""

    digits: NDArray[np.float64]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """PNG files in the order in which they are sent, with their true classes (N,)."""

    files: tuple[bytes, ...]
    labels: NDArray[np.int64]

    def select(self, chosen: NDArray[np.bool_]) -> "Stream":
        """The images where `chosen` (N,) is true."""
        files = tuple(file for file, keep in zip(self.files, chosen, strict=True) if keep)
        return Stream(files, self.labels[chosen])


def split_digits(rng: np.random.Generator) -> tuple[Split, Split, Split]:
    """Disjoint training (about 660), calibration (450) and held-out images (the rest)."""
    from sklearn.datasets import load_digits

    digits, targets = load_digits(return_X_y=True)
    class_of_digit = np.zeros(10, dtype=np.int64)
    for index, members in enumerate(DIGITS_OF_CLASS):
        class_of_digit[list(members)] = index
    labels = class_of_digit[targets]
    parts: tuple[list[NDArray[np.int64]], ...] = ([], [], [])
    for index in range(len(CLASS_NAMES)):
        members = rng.permutation(np.flatnonzero(labels == index))
        training = round(TRAINING_SHARE * len(members))
        cuts = [training, training + CALIBRATION_PER_CLASS]
        for part, chosen in zip(parts, np.split(members, cuts), strict=True):
            part.append(chosen)
    images = digits.reshape(-1, 8, 8) / 16
    training, calibration, held_out = (np.concatenate(part) for part in parts)
    return (
        Split(images[training], labels[training]),
        Split(images[calibration], labels[calibration]),
        Split(images[held_out], labels[held_out]),
    )


def degrade(digits: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Enlarge to 24 x 24 grey pixels, blur by a random amount and add noise, anew at each call."""
    scale = IMAGE_SIZE // digits.shape[1]
    large = digits.repeat(scale, axis=1).repeat(scale, axis=2)
    blurred = np.stack([gaussian_filter(image, BLUR * rng.uniform(0.5, 1.5)) for image in large])
    noisy = blurred + rng.normal(0, NOISE, blurred.shape)
    return np.rint(np.clip(0.2 + 0.6 * noisy, 0, 1) * 255).astype(np.uint8)


def as_png(image: NDArray[np.uint8]) -> bytes:
    """One grey image as a PNG file."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG")
    return buffer.getvalue()


def draw_stream(
    split: Split, prevalence: tuple[float, ...], samples: int, rng: np.random.Generator
) -> Stream:
    """Draw images by the given class probabilities, with fresh degradation each."""
    labels = rng.choice(len(CLASS_NAMES), size=samples, p=prevalence)
    chosen = np.array([rng.choice(np.flatnonzero(split.labels == label)) for label in labels])
    return Stream(tuple(as_png(image) for image in degrade(split.digits[chosen], rng)), labels)
