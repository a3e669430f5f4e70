"""Estimated against real Dice under synthetic shifts: `python -m benchmarks.segmentation [--json] [--quick]`.

As the column ATLAS of table 1 in Li et al. 2022, on synthetic images: small or large lesions in textured images, a
pixel classifier (a small network on smoothed intensities) that was fitted to few images, 60 calibration cases, and
shifts of noise, contrast, sharpness, brightness and lesion size. Compared are the mean absolute errors of the estimated
Dice over the shifts.
"""

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import ndimage
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from benchmarks import machine
from lifelong_core.deploy.performance.segmentation import DICE_METHODS, SegmentationCase, estimate_dice

SIZE = 64
TRAINING, CALIBRATION, MAPS = 6, 60, 30
SMOOTHINGS = (0, 1, 2, 4)
REPLICATES = 50
LESIONS = {"small": 0.7, "large": 1.6}
"""Size of the lesions: about 0.7 % and 4 % of the pixels."""


@dataclass(frozen=True)
class Shift:
    """How images differ from those of the development."""

    name: str = "none"
    noise: float = 0.45
    contrast: float = 1.0
    blur: float = 0.0
    brightness: float = 0.0
    size: float = 1.0


def shifts() -> Iterator[Shift]:
    """No shift, and five kinds in several strengths."""
    yield Shift()
    for number in (0.35, 0.6, 0.9):
        yield Shift("noise", noise=number)
    for number in (0.6, 1.3):
        yield Shift("contrast", contrast=number)
    yield Shift("blur", blur=1.0)
    for number in (-0.4, 0.4):
        yield Shift("brightness", brightness=number)
    for number in (0.75, 1.3):
        yield Shift("lesion size", size=number)


def draw(rng: np.random.Generator, shift: Shift, lesions: str) -> tuple[np.ndarray, np.ndarray]:
    """An image (SIZE, SIZE) and the mask of its lesion."""
    rows, columns = np.mgrid[:SIZE, :SIZE]
    centre, radii = rng.uniform(12, SIZE - 12, 2), LESIONS[lesions] * shift.size * rng.uniform(2.5, 6, 2)
    mask = ((rows - centre[0]) / radii[0]) ** 2 + ((columns - centre[1]) / radii[1]) ** 2 < 1
    texture = 4 * ndimage.gaussian_filter(rng.normal(size=(SIZE, SIZE)), 4)
    image = ndimage.gaussian_filter(texture + 1.2 * mask, shift.blur) if shift.blur else texture + 1.2 * mask
    noisy = shift.contrast * image + shift.brightness + shift.noise * rng.normal(size=(SIZE, SIZE))
    return noisy, mask.astype(np.int64)


def features(image: np.ndarray) -> np.ndarray:
    """Smoothed intensities and gradients of each pixel, shape (SIZE * SIZE, F)."""
    smoothed = [ndimage.gaussian_filter(image, width) if width else image for width in SMOOTHINGS]
    edges = [ndimage.gaussian_gradient_magnitude(image, width) for width in SMOOTHINGS[1:]]
    return np.stack([*smoothed, *edges], axis=-1).reshape(SIZE * SIZE, -1)


def fit(seed: int, lesions: str) -> MLPClassifier:
    """A pixel classifier that is fitted to few images."""
    rng = np.random.default_rng(seed)
    drawn = [draw(rng, Shift(), lesions) for _ in range(TRAINING)]
    classifier = MLPClassifier((32, 32), alpha=0, max_iter=60, random_state=seed, learning_rate_init=0.005)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return classifier.fit(
            np.concatenate([features(image) for image, _ in drawn]),
            np.concatenate([mask.ravel() for _, mask in drawn]),
        )


def cases_of(
    classifier: MLPClassifier, rng: np.random.Generator, count: int, shift: Shift, lesions: str
) -> list[SegmentationCase]:
    """Cases with the classifier's probabilities."""
    found: list[SegmentationCase] = []
    for _ in range(count):
        image, mask = draw(rng, shift, lesions)
        probabilities = classifier.predict_proba(features(image)).T.reshape(2, SIZE, SIZE)
        found.append(SegmentationCase(probabilities.astype(np.float32), mask))
    return found


def real_dice(cases: list[SegmentationCase]) -> float:
    """Mean Dice of the lesion."""
    found = []
    for case in cases:
        decided, there = case.scores.argmax(axis=0) == 1, case.labels == 1
        found.append(2 * (decided & there).sum() / (decided.sum() + there.sum()))
    return float(np.mean(found))


def compare(seed: int, lesions: str, several: list[Shift]) -> list[dict[str, object]]:
    """Estimated and real Dice of each method and shift."""
    rng, classifier = np.random.default_rng([seed, 1]), fit(seed, lesions)
    calibration = cases_of(classifier, rng, CALIBRATION, Shift(), lesions)
    rows: list[dict[str, object]] = []
    for shift in several:
        maps = cases_of(classifier, rng, MAPS, shift, lesions)
        real = real_dice(maps)
        for method in DICE_METHODS:
            found = estimate_dice(calibration, maps, method=method, replicates=REPLICATES).classes[1]
            rows.append(
                {
                    "lesions": lesions,
                    "shift": shift.name,
                    "method": method,
                    "real": real,
                    "estimate": found.value,
                }
                | {"covered": found.low <= real <= found.high, "calibration": found.calibration_dice}
            )
    return rows


def main() -> None:
    """Compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.add_argument("--quick", action="store_true", help="one seed and five shifts")
    options = parser.parse_args()
    started = time.perf_counter()
    several, seeds = list(shifts()), (1, 2)
    if options.quick:
        several, seeds = several[::4], (1,)
    found = {"seeds": seeds, "mean_absolute_error": {}, "ratio_to_class_agnostic": {}}
    for lesions in LESIONS:
        rows = [row for seed in seeds for row in compare(seed, lesions, several)]
        errors = _print(lesions, rows)
        found["mean_absolute_error"][lesions] = errors
        found["ratio_to_class_agnostic"][lesions] = {
            f"CS-{name}": errors[f"CS-{name}"] / errors[name] for name in ("TS", "DoC", "ATC", "TS-ATC")
        }
    print(f"\n{len(several)} shifts, {len(seeds)} seeds, {time.perf_counter() - started:.0f} s")
    if options.json:
        print(json.dumps({**found, "machine": machine.describe("numpy", "scipy", "scikit-learn")}))


def _print(lesions: str, rows: list[dict[str, object]]) -> dict[str, float]:
    """Print a table; mean absolute error of each method, in points."""
    real = [row["real"] for row in rows]
    print(f"\n{lesions} lesions: real Dice {min(real):.2f} to {max(real):.2f}\n")
    print("| method | mean absolute error, points | bias, points | without a shift | interval covers |")
    print("|---|---|---|---|---|")
    errors: dict[str, float] = {}
    for method in DICE_METHODS:
        own = [row for row in rows if row["method"] == method]
        gaps = 100 * np.array([row["estimate"] - row["real"] for row in own])
        still = np.abs([gap for gap, row in zip(gaps, own, strict=True) if row["shift"] == "none"]).mean()
        errors[method] = float(np.abs(gaps).mean())
        covers = np.mean([row["covered"] for row in own])
        print(
            f"| {method} | {errors[method]:.1f} | {gaps.mean():+.1f} | {still:.1f} | {covers:.2f} |",
            flush=True,
        )
    return errors


if __name__ == "__main__":
    main()
