"""A small network trained on few samples of rare digits, and corrupted images for it; no network access.

The images are scikit-learn's digits, 8 x 8 pixels. Training, calibration and test images are different ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch
from scipy import ndimage
from sklearn.datasets import load_digits
from torch import nn

CLASSES = 10
SHARES = (0.4, 0.3, 0.3)
"""of the images of each digit: training, calibration, test"""
SEVERITIES = (1, 2, 3)
_EPOCHS, _RATE, _DECAY = 150, 3e-3, 1e-4

Images = np.ndarray
_Corruption = Callable[[Images, int, np.random.Generator], Images]


def _rotated(images: Images, severity: int, rng: np.random.Generator) -> Images:
    sign = 1 if rng.random() < 0.5 else -1
    return ndimage.rotate(images, sign * 10 * severity, axes=(1, 2), reshape=False, order=1)


def _covered(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """A black square of one to three pixels at a random place of each image."""
    result = images.copy()
    for image in result:
        top, left = rng.integers(1, 8 - severity, size=2)
        image[top : top + severity, left : left + severity] = 0
    return result


CORRUPTIONS: Mapping[str, _Corruption] = MappingProxyType(
    {
        "noise": lambda images, severity, rng: images + rng.normal(0, 0.12 * severity, images.shape),
        "salt and pepper": lambda images, severity, rng: np.where(
            rng.random(images.shape) < 0.04 * severity, rng.integers(0, 2, images.shape), images
        ),
        "blur": lambda images, severity, _: ndimage.gaussian_filter(
            images, (0, *[0.35 * severity + 0.2] * 2)
        ),
        "contrast": lambda images, severity, _: 0.5 + (1 - 0.22 * severity) * (images - 0.5),
        "brightness": lambda images, severity, _: images + 0.12 * severity,
        "darkness": lambda images, severity, _: images - 0.12 * severity,
        "rotation": _rotated,
        "shift": lambda images, severity, _: ndimage.shift(images, (0, 0, 0.5 * severity), order=1),
        "covered": _covered,
    }
)
"""changes of images (n, 8, 8) in 0..1 at a severity"""


@dataclass(frozen=True)
class Digits:
    """Images (n, 8, 8) in 0..1, with labels (n,)."""

    images: Images
    labels: np.ndarray

    def select(self, rows: np.ndarray) -> "Digits":
        """These images."""
        return Digits(self.images[rows], self.labels[rows])


def split_digits(rng: np.random.Generator) -> tuple[Digits, Digits, Digits]:
    """Training, calibration and test images, with the shares SHARES of each digit."""
    digits = load_digits()
    parts: list[list[np.ndarray]] = [[], [], []]
    for digit in range(CLASSES):
        mine = rng.permutation(np.flatnonzero(digits.target == digit))
        ends = np.round(np.cumsum(SHARES)[:-1] * mine.size).astype(int)
        for part, rows in zip(parts, np.split(mine, ends), strict=True):
            part.append(rows)
    everything = Digits(digits.images / 16, digits.target)
    train, calibration, test = (everything.select(np.concatenate(part)) for part in parts)
    return train, calibration, test


def corrupt(images: Images, name: str, severity: int, rng: np.random.Generator) -> Images:
    """Images changed by one of CORRUPTIONS, clipped to 0..1."""
    return np.clip(CORRUPTIONS[name](images, severity, rng), 0, 1)


class SmallNetwork:
    """Two convolutions and a linear layer, trained on the given images until it is sure of them."""

    def __init__(self, data: Digits, seed: int) -> None:
        torch.manual_seed(seed)
        self._model = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(512, CLASSES),
        )
        optimizer = torch.optim.Adam(self._model.parameters(), lr=_RATE, weight_decay=_DECAY)
        images, labels = self._tensor(data.images), torch.as_tensor(data.labels)
        for _ in range(_EPOCHS):
            for rows in torch.randperm(labels.numel()).split(64):
                optimizer.zero_grad()
                nn.functional.cross_entropy(self._model(images[rows]), labels[rows]).backward()
                optimizer.step()

    def logits(self, images: Images) -> np.ndarray:
        """Logits of images (n, 8, 8), shape (n, CLASSES)."""
        with torch.no_grad():
            return self._model(self._tensor(images)).numpy()

    @staticmethod
    def _tensor(images: Images) -> torch.Tensor:
        return torch.as_tensor(images[:, np.newaxis], dtype=torch.float32)
