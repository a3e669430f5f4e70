"""Feature extractors for the benchmark of fingerprints; none needs a network."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.bundled_images import TASKS, Images, cut_task
from lifelong_core.develop.features.backbone import Backbone, load_backbone
from lifelong_core.develop.fingerprints.extractor import (
    ExtractorDocument,
    ExtractorReference,
    measure_edges,
)
from lifelong_core.values.preprocessing import Preprocessing

import timm  # isort: skip - after the backbone, which makes torchvision importable

MEAN, STANDARD_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""of ImageNet, on the scale 0 to 1"""

BATCH = 64
DIGITS = tuple(name for name in TASKS if name.startswith("digits"))
DIGITS_ARCHITECTURE = "resnet10t"


@dataclass(frozen=True)
class Extractor:
    """A backbone under a name of the tables."""

    name: str
    backbone: Backbone

    def features(self, images: Images) -> np.ndarray:
        """Features (n, m), float32, of images (n, SIDE, SIDE, 3)."""
        batches = [images[start : start + BATCH] for start in range(0, len(images), BATCH)]
        return np.concatenate([self.backbone.extract(_normalised(batch)) for batch in batches])

    def reference(self, features: np.ndarray) -> ExtractorReference:
        """The extractor with bin edges from the features of reference images."""
        document = ExtractorDocument(
            architecture=self.backbone.architecture,
            weights=self.backbone.weights,
            preprocessing=Preprocessing(mean=MEAN, standard_deviation=STANDARD_DEVIATION),
            reference_images=len(features),
            reference_names=("part `reference` of the bundled images",),
        )
        return ExtractorReference(document, measure_edges(features))


def random_extractor(architecture: str, seed: int) -> Extractor:
    """A timm model with its random initial weights: features without any learning."""
    torch.manual_seed(seed)
    module = timm.create_model(architecture, num_classes=0)
    return Extractor(f"{architecture}, random", Backbone(architecture, module, torch.device("cpu")))


def file_extractor(architecture: str, weights: Path) -> Extractor:
    """A timm model with weights of a local file."""
    return Extractor(f"{architecture}, {weights.name}", load_backbone(architecture, weights, device="cpu"))


def digits_extractor(seed: int, epochs: int = 20) -> Extractor:
    """A small network trained on the ten digits of the part `reference`, at random contrast, inverted or not.

    It has seen the classes of the digit tasks, but none of their samples, and nothing of the other tasks.
    """
    sets = [cut_task(name, "reference", 10_000, seed) for name in DIGITS]
    images = np.concatenate([one.images for one in sets])
    offsets = np.cumsum([0, *(one.labels.max() + 1 for one in sets[:-1])])
    labels = np.concatenate([one.labels + offset for one, offset in zip(sets, offsets, strict=True)])
    torch.manual_seed(seed)
    module = timm.create_model(DIGITS_ARCHITECTURE, num_classes=int(labels.max()) + 1)
    _train(module, images, labels, epochs, np.random.default_rng(seed))
    module.reset_classifier(0)  # type: ignore[operator]
    return Extractor(
        f"{DIGITS_ARCHITECTURE}, digits", Backbone(DIGITS_ARCHITECTURE, module, torch.device("cpu"))
    )


def _train(
    module: torch.nn.Module, images: Images, labels: np.ndarray, epochs: int, rng: np.random.Generator
) -> None:
    optimiser = torch.optim.AdamW(module.parameters(), lr=2e-3, weight_decay=0.05)
    module.train()
    for _ in range(epochs):
        for chosen in _batches(rng.permutation(len(images)), 32):
            outputs = module(torch.from_numpy(_normalised(_recoloured(images[chosen], rng))))
            loss = torch.nn.functional.cross_entropy(outputs, torch.from_numpy(labels[chosen]))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def _batches(order: np.ndarray, size: int) -> Sequence[np.ndarray]:
    return [order[start : start + size] for start in range(0, len(order) - size + 1, size)]


def _recoloured(images: Images, rng: np.random.Generator) -> np.ndarray:
    """Other contrast, inverted or not, and another mean colour for each image."""
    shape = (len(images), 1, 1, 1)
    factors = rng.uniform(0.4, 1, shape) * rng.choice((-1, 1), shape)
    centres = rng.uniform(80, 175, (len(images), 1, 1, 3))
    return np.clip(centres + (images.astype(np.float32) - 127) * factors, 0, 255)


def _normalised(images: np.ndarray) -> np.ndarray:
    scaled = (images.astype(np.float32) / 255 - np.float32(MEAN)) / np.float32(STANDARD_DEVIATION)
    return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2), dtype=np.float32)
