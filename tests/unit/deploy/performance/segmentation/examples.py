"""Synthetic segmentation: discs of the foreground classes under noisy logits."""

import numpy as np

from lifelong_core.deploy.performance.segmentation import SegmentationCase


def draw_case(
    rng: np.random.Generator,
    *,
    classes: int = 2,
    shape: tuple[int, ...] = (24, 20),
    noise: float = 1.0,
    gain: float = 1.0,
    signal: float = 2.0,
    radius: float = 6.0,
    empty: tuple[int, ...] = (),
    shifted: tuple[float, ...] | None = None,
    group: str | None = None,
    name: str = "case",
) -> SegmentationCase:
    """Logits of a disc (ball) for each foreground class, and its labels."""
    grid = np.stack(np.meshgrid(*(np.arange(size) for size in shape), indexing="ij"))
    labels = np.zeros(shape, dtype=np.int64)
    for k in range(1, classes):
        if k not in empty:
            centre = np.array([rng.uniform(0.25 * size, 0.75 * size) for size in shape])
            distance = np.sqrt(((grid.T - centre).T ** 2).sum(axis=0))
            labels[distance < radius * rng.uniform(0.6, 1.2)] = k
    truth = (np.arange(classes).reshape(-1, *(1,) * len(shape)) == labels).astype(float)
    logits = gain * (signal * truth + noise * rng.normal(size=(classes, *shape)))
    if shifted is not None:
        logits += np.reshape(shifted, (-1, *(1,) * len(shape)))
    return SegmentationCase(logits.astype(np.float32), labels, name=name, group=group, is_logits=True)


def draw_cases(count: int, seed: int, **options) -> list[SegmentationCase]:
    """Independent cases."""
    rng = np.random.default_rng(seed)
    return [draw_case(rng, name=f"case {number}", **options) for number in range(count)]


def real_dice(case: SegmentationCase, k: int) -> float:
    """Dice of a class; nan where it is neither predicted nor there."""
    decided, there = case.scores.argmax(axis=0) == k, case.labels == k
    total = decided.sum() + there.sum()
    return float(2 * (decided & there).sum() / total) if total else float("nan")
