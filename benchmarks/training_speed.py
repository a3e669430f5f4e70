"""How many images does a training take in a second, and what limits it?

    python -m benchmarks.training_speed [--json] [--quick] [--device cuda] [--architecture NAME] [--size EDGE]

Random images in memory, decoded and cached as those of a real training. `trainer`: one epoch of the product's trainer,
with random crops, the light augmentation and Adam. The peer is the inner loop of timm's own training script (timm's
optimiser and loss, autocast) on one batch that stays on the device, so that it loads nothing: `ratio` is what is left
of its speed. `batches`: preparation alone, in as many threads as the trainer uses; where it is slower than the peer,
loading limits the training, else the model does. On a GPU all is measured with and without mixed precision.
"""

# pyright: reportPrivateImportUsage=false

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.machine import describe
from lifelong_core.develop.training.augmentation.transform import policy_transform
from lifelong_core.develop.training.data.prepared import PreparedImages
from lifelong_core.develop.training.export.exported_model import training_preprocessing
from lifelong_core.develop.training.optimisation.batches import TrainingBatches
from lifelong_core.develop.training.optimisation.classifier import (
    Computing,
    compute_on,
    create_classifier,
    training_device,
)
from lifelong_core.develop.training.optimisation.trainer import Phase, train_phase
from lifelong_core.develop.training.recipe import LIGHT, Optimisation, Recipe

from timm.loss import LabelSmoothingCrossEntropy  # isort: skip - after the classifier, which makes it importable
from timm.optim import create_optimizer_v2  # isort: skip

CLASSES = 8


@dataclass(frozen=True)
class Speed:
    """Images per second."""

    mixed: bool
    trainer: float
    peer: float
    batches: float
    ratio: float
    """of the trainer to the peer"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="a tenth of the images")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--architecture", default="resnet34")
    parser.add_argument("--size", type=int, default=224, help="edge of the images in pixels")
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()
    device = training_device(options.device)
    count = (20_000 if device.type == "cuda" else 640) // (10 if options.quick else 1)
    recipe = Recipe(
        architecture=options.architecture,
        initial_weights="random",
        image_size=options.size,
        optimisation=Optimisation(epochs=1, batch_size=options.batch_size, learning_rate=1e-3),
    )
    images = random_images(recipe, count)
    found = [
        measure(recipe, images, device, mixed=mixed)
        for mixed in ((False, True) if device.type == "cuda" else (False,))
    ]
    print(f"{'mixed':>6}{'trainer':>10}{'peer':>10}{'ratio':>8}{'batches':>10}   images per second")
    for one in found:
        print(f"{one.mixed!s:>6}{one.trainer:>10.0f}{one.peer:>10.0f}{one.ratio:>8.2f}{one.batches:>10.0f}")
    if options.json:
        facts = {"device": str(device), "architecture": options.architecture, "size": options.size}
        report = {"benchmark": "training_speed", **facts, **describe("torch", "timm")}
        print(json.dumps({**report, "speeds": [asdict(one) for one in found]}))


def measure(recipe: Recipe, images: PreparedImages, device: torch.device, *, mixed: bool) -> Speed:
    """Trainer, peer and preparation on the same images."""
    computing = compute_on(device, images.preprocessing, mixed_precision=mixed)
    optimisation = recipe.optimisation
    batches = TrainingBatches(
        images,
        None,
        transform=policy_transform(LIGHT, size=images.input_size),
        batch_size=optimisation.batch_size,
        seed=(0,),
    )
    phase = Phase("training", images, batches, np.full(CLASSES, 1 / CLASSES), optimisation, computing, 0)
    trainer = _trainer_speed(recipe, phase)
    peer = _peer_speed(recipe, phase, computing)
    prepared = _speed(lambda: _drain(batches.prepared(2, threads=phase.threads)), device)
    return Speed(mixed, trainer, peer, prepared, trainer / peer)


def random_images(recipe: Recipe, count: int) -> PreparedImages:
    """Images with a margin for random crops; an eighth of them validate."""
    preprocessing = training_preprocessing(recipe)
    edge = recipe.image_size or 224
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, edge + 32, edge + 32, 3), dtype=np.uint8)
    labels = np.arange(count) % CLASSES
    splits: Any = {"training": np.arange(count), "validation": np.arange(8 * CLASSES)}
    names = tuple(str(number) for number in range(count))
    classes = tuple(str(number) for number in range(CLASSES))
    return PreparedImages(
        classes, labels, None, names, splits, "", (), preprocessing, pixels, np.arange(count)
    )


def _trainer_speed(recipe: Recipe, phase: Phase) -> float:
    """The second epoch, after everything is warm."""
    module = create_classifier(recipe, CLASSES, size=phase.images.input_size, weights=None)
    module.to(phase.computing.device)
    optimisation = phase.optimisation.model_copy(update={"epochs": 2})
    warm = Phase(**{**vars(phase), "optimisation": optimisation})
    state = train_phase(
        module,
        warm,
        learning_rate=1e-3,
        state=None,
        on_batch=lambda *_: None,
        on_epoch=lambda _: None,
    )
    # Validation is a part of the epoch: its images go once forth, a third of the work.
    splits = phase.images.splits
    return (len(splits["training"]) + len(splits["validation"]) / 3) / state.epochs[-1].seconds


def _peer_speed(recipe: Recipe, phase: Phase, computing: Computing) -> float:
    module = create_classifier(recipe, CLASSES, size=phase.images.input_size, weights=None)
    module.to(computing.device).train()
    if computing.is_gpu:
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = create_optimizer_v2(module, opt="adam", lr=1e-3)
    loss_of = LabelSmoothingCrossEntropy(smoothing=0.0)
    batch = next(phase.batches.prepared(1, threads=1))
    inputs, labels = computing.inputs(batch.images), batch.labels.to(computing.device)

    def step() -> int:
        with computing.precision():
            loss = loss_of(module(inputs), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return len(labels)

    step()
    steps = max(3, phase.batches.per_epoch)
    return _speed(lambda: sum(step() for _ in range(steps)), computing.device)


def _drain(batches: Iterator[Any]) -> int:
    return sum(len(batch.images) for batch in batches)


def _speed(work: Callable[[], int], device: torch.device) -> float:
    begin = time.perf_counter()
    images = work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return images / (time.perf_counter() - begin)


if __name__ == "__main__":
    main()
