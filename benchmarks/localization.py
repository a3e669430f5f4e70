"""Does localization stability tell models that look elsewhere? `python -m benchmarks.localization`.

Small CNNs tell the digits 3 and 8 on 32 x 32 images. One recipe must look at the digit; for the other one, a marker in
the corner tells the class. Both are right on images whose marker tells the class. Compared are models of one recipe,
which differ by the seed and by a random half of the training images, and models of different recipes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn

from lifelong_core.develop.localization.occlusion import LogitsOf
from lifelong_core.promotion.compare_localization import ImageModel, LabelledImage, compare_localization
from lifelong_core.values.preprocessing import Preprocessing

SEEDS = (1, 2, 3)
TRAINING = 240
COMPARED = 48
STEPS = 300
SHOWN = ("positive Jaccard", "adjusted Jaccard (kappa)", "Spearman correlation")
GREY = Preprocessing(colour="grey")


@dataclass(frozen=True, eq=False)
class Digits:
    """Images (N, 1, 32, 32) in [0, 1] and classes (N,): digits at random places, and a marker in the corner of some."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]


def draw_digits(*, marker_tells: bool) -> Digits:
    """The digits 3 (class 0) and 8; the marker is on all 8s and no other, or on a random half."""
    digits = load_digits()
    chosen = np.isin(digits.target, [3, 8])
    labels = (digits.target[chosen] == 8).astype(np.int64)
    rng = np.random.default_rng(0)
    images = np.zeros((len(labels), 1, 32, 32), dtype=np.float32)
    for image, digit in zip(images, digits.images[chosen], strict=True):
        row, column = rng.integers(6, 14), rng.integers(2, 14)
        image[0, row : row + 16, column : column + 16] = np.kron(digit / 16, np.ones((2, 2)))
    marked = labels == 1 if marker_tells else rng.random(len(labels)) < 0.5
    images[marked, 0, :4, :4] = 1
    return Digits(images, labels)


def train(data: Digits, seed: int) -> LogitsOf:
    """Logits of a CNN that has seen a random half of the training images."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    net = nn.Sequential(
        *(layer for channels in ((1, 16), (16, 32), (32, 32)) for layer in _block(*channels)),
        nn.Flatten(),
        nn.Linear(512, 2),
    )
    seen = rng.choice(TRAINING, TRAINING // 2, replace=False)
    images, labels = torch.from_numpy(data.images[seen]), torch.from_numpy(data.labels[seen])
    optimiser = torch.optim.Adam(net.parameters(), 2e-3)
    for _ in range(STEPS):
        batch = torch.from_numpy(rng.integers(0, len(seen), 32))
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
        optimiser.step()
    net.eval()

    def logits_of(given: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            return net(torch.from_numpy(given)).numpy()

    return logits_of


def _block(given: int, made: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(given, made, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)


def main() -> None:
    """Train, compare, print."""
    torch.set_num_threads(1)
    by_digit, by_marker = draw_digits(marker_tells=False), draw_digits(marker_tells=True)
    models = {
        "digit": [train(by_digit, seed) for seed in SEEDS],
        "marker": [train(by_marker, seed) for seed in SEEDS],
    }
    for name, several in models.items():
        shares = [_accuracy(model, data) for model in several for data in (by_digit, by_marker)]
        print(
            f"{name}: accuracy {np.mean(shares[::2]):.2f} with a random marker, {np.mean(shares[1::2]):.2f} with one"
            " that tells the class"
        )
    images = [
        LabelledImage(image=Image.fromarray(np.rint(255 * pixels[0]).astype(np.uint8)), true_class=int(label))
        for pixels, label in zip(by_marker.images[TRAINING:], by_marker.labels[TRAINING:], strict=True)
    ][:COMPARED]
    pairs = {
        "two that look at the digit": list(combinations(models["digit"], 2)),
        "two that look at the marker": list(combinations(models["marker"], 2)),
        "one of each": list(product(models["digit"], models["marker"])),
    }
    print(f"\n| models | pairs | {' | '.join(SHOWN)} |\n|---|---|{'---|' * len(SHOWN)}")
    for name, several in pairs.items():
        found = [_scores(*pair, images) for pair in several]
        cells = (f"{np.mean([one[k] for one in found]):.2f} ({_range(found, k)})" for k in range(len(SHOWN)))
        print(f"| {name} | {len(several)} | {' | '.join(cells)} |")


def _accuracy(model: Callable[[NDArray[np.float32]], NDArray[np.floating]], data: Digits) -> float:
    return float((model(data.images[TRAINING:]).argmax(axis=1) == data.labels[TRAINING:]).mean())


def _scores(new: LogitsOf, current: LogitsOf, images: list[LabelledImage]) -> list[float]:
    compared = (ImageModel(logits_of=model, preprocessing=GREY) for model in (new, current))
    found = {one.name: one.mean for one in compare_localization(*compared, images, most_examples=0).scores}
    return [float(found[name] or 0) for name in SHOWN]


def _range(found: list[list[float]], index: int) -> str:
    values = [one[index] for one in found]
    return f"{min(values):.2f} to {max(values):.2f}"


if __name__ == "__main__":
    main()
